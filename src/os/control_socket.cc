#include "os/control_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "os/system_error.h"

namespace weft::os {
namespace {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(out.sun_path)) {
    return Error{ErrorKind::kInvalid, path + ": expected a path of 1 to " +
                                          std::to_string(sizeof(out.sun_path) - 1) + " bytes"};
  }
  std::memcpy(out.sun_path, path.c_str(), path.size());
  return out;
}

int connect_to(int fd, const sockaddr_un& address) {
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

}  // namespace

Result<ControlSocket> ControlSocket::listen(const std::string& path) {
  WEFT_TRY(const sockaddr_un address, address_of(path));
  FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return system_error("unix socket");
  const auto bind_it = [&] {
    return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  };
  if (!bind_it()) {
    if (errno != EADDRINUSE) return system_error(path);
    const FileDescriptor probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (connect_to(probe.get(), address) == 0 || errno != ECONNREFUSED)
      return Error{ErrorKind::kWrongState, path + ": in use; end its owner or give another path"};
    if (unlink(path.c_str()) != 0 || !bind_it()) return system_error(path);
  }
  if (chmod(path.c_str(), 0600) != 0 || ::listen(fd.get(), static_cast<int>(kClientsMax)) != 0) {
    const Error error = system_error(path);
    unlink(path.c_str());
    return error;
  }
  ControlSocket out;
  out.fd_ = std::move(fd);
  out.path_ = path;
  return out;
}

ControlSocket::ControlSocket(ControlSocket&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      clients_(other.clients_),
      buffer_(other.buffer_) {
  other.clients_.fill(-1);
}

ControlSocket::~ControlSocket() {
  for (std::size_t i = 0; i < clients_.size(); ++i) close_client(i);
  if (fd_.is_open()) unlink(path_.c_str());
}

void ControlSocket::close_client(std::size_t client) {
  const int fd = std::exchange(clients_[client], -1);
  if (fd >= 0) close(fd);
}

std::size_t ControlSocket::descriptors(std::span<pollfd, kClientsMax + 1> out) const {
  std::size_t count = 0;
  for (const int fd : clients_) {
    if (fd >= 0) out[count++] = {.fd = fd, .events = POLLIN, .revents = 0};
  }
  // When kClientsMax clients are connected, further clients wait in the kernel's backlog.
  if (count < kClientsMax) out[count++] = {.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return count;
}

void ControlSocket::accept_clients() {
  for (int& client : clients_) {
    if (client < 0) client = accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return;
  }
}

std::optional<ControlSocket::Request> ControlSocket::next() {
  accept_clients();
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i] < 0) continue;
    const ssize_t got = recv(clients_[i], buffer_.data(), buffer_.size(), MSG_TRUNC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0 || static_cast<std::size_t>(got) > buffer_.size()) {
      close_client(i);
      continue;
    }
    std::string_view text(buffer_.data(), static_cast<std::size_t>(got));
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    return Request{.client = i, .text = text};
  }
  return std::nullopt;
}

void ControlSocket::answer(const Request& request, std::string_view text) {
  const int fd = clients_[request.client];
  if (text.size() > kAnswerMax) text = text.substr(0, kAnswerMax);
  const int room = static_cast<int>(2 * kAnswerMax);
  if (text.size() > 64 * 1024) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  // A client that does not read its answer is disconnected; the process never blocks on it.
  if (send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    close_client(request.client);
}

Result<std::string> ask(const std::string& path, std::string_view request, Duration timeout) {
  WEFT_TRY(const sockaddr_un address, address_of(path));
  const FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return system_error("unix socket");
  if (connect_to(fd.get(), address) != 0)
    return Error{ErrorKind::kNotFound,
                 path + ": nobody answers there (" + std::strerror(errno) + ")"};
  const timeval wait{.tv_sec = static_cast<time_t>(timeout.us() / 1'000'000),
                     .tv_usec = static_cast<suseconds_t>(timeout.us() % 1'000'000)};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return system_error(path);
  std::string answer(ControlSocket::kAnswerMax, '\0');
  const ssize_t got = recv(fd.get(), answer.data(), answer.size(), 0);
  if (got < 0) return system_error(path);
  if (got == 0) return Error{ErrorKind::kSystem, path + ": closed without an answer"};
  answer.resize(static_cast<std::size_t>(got));
  return answer;
}

}  // namespace weft::os
