#include "net/shm_link.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "os/system_error.h"

namespace weft::net {
namespace {

constexpr std::uint64_t kMagic = 0x7765'6674'7368'6d01;  // "weftshm", version 1
constexpr std::size_t kGreetingSize = 8 + kIpv6AddressSize + 2;
// The most connections that wait in the backlog until this process accepts them.
constexpr int kBacklog = 256;

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
};

Name name_of(const world::Address& who) {
  Name name;
  name.address.sun_family = AF_UNIX;
  // A leading zero byte makes the name abstract.
  const std::string text =
      fmt::format("weft/shm/{:016x}{:016x}/{}", who.high, who.low, who.process);
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

ShmSocket new_socket() {
  return ShmSocket(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Control data of a message that passes one descriptor (SCM_RIGHTS).
union Rights {
  cmsghdr aligned;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

// The descriptor passed with a message, owned by the caller; -1 if there is not exactly one.
// Alignment leaves room for a second descriptor: surplus ones are closed.
int only_descriptor(msghdr& message) {
  int only = -1, count = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
      if (only >= 0) close(only);
      std::memcpy(&only, CMSG_DATA(c) + at, sizeof(only));
      ++count;
    }
  }
  if (count > 1) close(std::exchange(only, -1));
  return only;
}

}  // namespace

ShmSocket& ShmSocket::operator=(ShmSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

ShmSocket::~ShmSocket() {
  if (fd_ >= 0) close(fd_);
}

bool ShmSocket::is_same_user() const {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

void ShmSocket::call() {
  const char word = 1;
  [[maybe_unused]] const auto sent = send(fd_, &word, sizeof(word), MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool ShmSocket::take_wakeups() {
  // Bounded, so that a peer that keeps writing does not block this process.
  for (int i = 0; i < 64; ++i) {
    std::array<char, 16> words;
    const ssize_t got = recv(fd_, words.data(), words.size(), MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  return true;
}

Result<ShmSocket> shm_listen(const world::Address& self) {
  ShmSocket listener = new_socket();
  if (listener.fd() < 0) return os::system_error("unix socket");
  const Name name = name_of(self);
  if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&name.address), name.size) != 0) {
    if (errno == EADDRINUSE)
      return Error{ErrorKind::kExhausted,
                   "another process listens for shared memory under our name"};
    return os::system_error("unix socket: bind");
  }
  if (listen(listener.fd(), kBacklog) != 0) return os::system_error("unix socket: listen");
  return listener;
}

Result<ShmOffer> shm_connect(const ShmOfferOptions& options) {
  ShmOffer offer;
  offer.socket = new_socket();
  if (offer.socket.fd() < 0) return os::system_error("unix socket");
  const Name name = name_of(options.peer);
  if (connect(offer.socket.fd(), reinterpret_cast<const sockaddr*>(&name.address), name.size) != 0)
    return Error{ErrorKind::kNotFound, "no such process on this host"};
  if (!offer.socket.is_same_user())
    return Error{ErrorKind::kNotFound, "that process is another user's"};
  WEFT_TRY(offer.memory, ShmMemory::create(options.capacity));

  std::array<std::byte, kGreetingSize> greeting;
  base::store64(Bytes(greeting), 0, kMagic);
  base::store_ipv6(Bytes(greeting), 8, options.self.ip());
  base::store16(Bytes(greeting), 8 + kIpv6AddressSize, options.self.process);
  iovec piece{greeting.data(), greeting.size()};
  Rights rights{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = rights.bytes.data();
  message.msg_controllen = rights.bytes.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = offer.memory.fd();
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  if (sendmsg(offer.socket.fd(), &message, MSG_NOSIGNAL) < 0)
    return os::system_error("unix socket: sendmsg");
  offer.memory.close_fd();
  return offer;
}

std::optional<ShmSocket> shm_accept(const ShmSocket& listener) {
  const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return ShmSocket(fd);
}

Result<ShmGreeting> shm_greeting(const ShmSocket& socket) {
  if (!socket.is_same_user())
    return Error{ErrorKind::kInvalid, "shared memory of another user is not taken"};
  std::array<std::byte, kGreetingSize + 1> greeting;
  iovec piece{greeting.data(), greeting.size()};
  Rights rights{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = rights.bytes.data();
  message.msg_controllen = rights.bytes.size();
  const ssize_t got = recvmsg(socket.fd(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Error{ErrorKind::kNotFound, {}};
  if (got < 0) return os::system_error("unix socket: recvmsg");
  WEFT_TRY(ShmMemory memory, ShmMemory::adopt(only_descriptor(message)));
  memory.close_fd();
  const ConstBytes in(greeting);
  if (got != static_cast<ssize_t>(kGreetingSize) || base::load64(in, 0) != kMagic)
    return Error{ErrorKind::kInvalid, "a process offers shared memory in words of another version"};
  return ShmGreeting{
      .from = world::Address::of(base::load_ipv6(in, 8), base::load16(in, 8 + kIpv6AddressSize)),
      .memory = std::move(memory)};
}

}  // namespace weft::net
