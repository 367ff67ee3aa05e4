#include "control/ctl_events.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "os/system_error.h"

namespace weft::control {
namespace {

constexpr std::uint32_t kRecordMagic = 0x5745'4501;  // "WEE", version 1
constexpr std::uint32_t kListener = kEventSendersMax;
constexpr int kSendBufferBytes = 1 << 20;  // only a request: the kernel may give less

using os::system_error;

// A socket address has room for a short path only, so the path starts at the directory's
// descriptor.
sockaddr_un address_of(int directory, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory, name);
  WEFT_ASSERT(path.size() < sizeof address.sun_path);
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

os::FileDescriptor new_socket() {
  return os::FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool is_ours(const std::string& name) {
  return name.size() == 19 && name.compare(0, 3, "ev-") == 0;
}

Result<std::vector<std::string>> names_in(int directory) {
  // Open the directory again, because a duplicated descriptor would share the read position.
  const int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const list = again < 0 ? nullptr : fdopendir(again);
  if (list == nullptr) {
    const Error error = system_error("event sockets");
    if (again >= 0) close(again);
    return error;
  }
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(list)) {
    if (is_ours(entry->d_name) && names.size() < 1024) names.emplace_back(entry->d_name);
  }
  closedir(list);
  std::sort(names.begin(), names.end());
  return names;
}

// Empty if the listener is gone; then `error` is the errno value.
std::optional<os::FileDescriptor> connect_to(int directory, const std::string& name, int& error) {
  os::FileDescriptor out = new_socket();
  const sockaddr_un address = address_of(directory, name);
  error = 0;
  if (out.is_open() &&
      connect(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    (void)setsockopt(out.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
    return out;
  }
  error = errno;
  return std::nullopt;
}

}  // namespace

void emit_ev_event(const EvEvent& event, Bytes out) {
  WEFT_ASSERT(out.size() >= kEvEventBytes);
  std::fill_n(out.begin(), kEvEventBytes, std::byte{0});
  base::store32(out, 0, kRecordMagic);
  base::store32(out, 4, event.drop_count);
  base::store64(out, 8, event.profile_id);
  std::copy(event.ev.value.begin(), event.ev.value.end(), out.begin() + 16);
  base::store8(out, 48, event.ev.port);
  base::store8(out, 49, static_cast<std::uint32_t>(event.state));
}

std::optional<EvEvent> parse_ev_event(ConstBytes in) {
  if (in.size() != kEvEventBytes || base::load32(in, 0) != kRecordMagic) return std::nullopt;
  EvEvent event;
  event.drop_count = base::load32(in, 4);
  event.profile_id = base::load64(in, 8);
  std::copy_n(in.begin() + 16, event.ev.value.size(), event.ev.value.begin());
  event.ev.port = base::load8(in, 48);
  const std::uint8_t state = base::load8(in, 49);
  const bool known = state == static_cast<std::uint8_t>(EvState::kGood) ||
                     state == static_cast<std::uint8_t>(EvState::kAssumedBad);
  if (!known || event.profile_id >= kEvProfilesMax || event.ev.port == 0 ||
      event.ev.port > world::kPortsMax) {
    return std::nullopt;
  }
  event.state = static_cast<EvState>(state);
  return event;
}

// --- the controller's end ----------------------------------------------------------------------

Result<std::unique_ptr<EvEventQueue>> EvEventQueue::open(os::FileDescriptor directory) {
  std::unique_ptr<EvEventQueue> queue(new EvEventQueue);
  queue->directory_ = std::move(directory);
  const int at = queue->directory_.get();
  WEFT_TRY(const auto names, names_in(at));
  std::uint32_t living = 0;
  for (const std::string& name : names) {
    int error = 0;
    const auto answer = connect_to(at, name, error);
    if (!answer && error == ECONNREFUSED) {
      (void)unlinkat(at, name.c_str(), 0);
    } else {
      ++living;
    }
  }
  if (living >= kEventQueuesMax) {
    return Error{ErrorKind::kExhausted,
                 fmt::format("{} event queues are open already; close one", kEventQueuesMax)};
  }
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    return system_error("getrandom");
  }
  queue->listener_ = new_socket();
  queue->epoll_ = os::FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!queue->listener_.is_open() || !queue->epoll_.is_open()) return system_error("event queue");
  const std::string name = fmt::format("ev-{:016x}", random);
  const sockaddr_un address = address_of(at, name);
  if (bind(queue->listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    return system_error("event queue");
  }
  queue->name_ = name;  // from here on the destructor removes the name
  // Every process that may read the profiles may also report events.
  epoll_event watch{.events = EPOLLIN, .data = {.u32 = kListener}};
  if (fchmodat(at, name.c_str(), 0666, 0) != 0 ||
      listen(queue->listener_.get(), static_cast<int>(kEventSendersMax)) != 0 ||
      epoll_ctl(queue->epoll_.get(), EPOLL_CTL_ADD, queue->listener_.get(), &watch) != 0) {
    return system_error("event queue");
  }
  return queue;
}

EvEventQueue::~EvEventQueue() {
  if (!name_.empty()) (void)unlinkat(directory_.get(), name_.c_str(), 0);
}

bool EvEventQueue::accept_one() {
  os::FileDescriptor from(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!from.is_open()) return false;
  for (std::uint32_t i = 0; i < kEventSendersMax; ++i) {
    if (senders_[i].is_open()) continue;
    epoll_event watch{.events = EPOLLIN, .data = {.u32 = i}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, from.get(), &watch) == 0) {
      senders_[i] = std::move(from);
    }
    return true;
  }
  return true;  // no room for a sender: closing the connection makes it count the loss
}

bool EvEventQueue::take(std::uint32_t sender, EvEvent& out) {
  // One byte larger than a record, to detect records that are too long.
  std::array<std::byte, kEvEventBytes + 1> record;
  const ssize_t got = recv(senders_[sender].get(), record.data(), record.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    senders_[sender].reset();  // the sender is gone; closing removes the socket from the epoll set
    return false;
  }
  const auto event = parse_ev_event(ConstBytes(record).first(static_cast<std::size_t>(got)));
  if (!event) {
    ++malformed_;
    return false;
  }
  out = *event;
  return true;
}

std::size_t EvEventQueue::poll(std::span<EvEvent> out) {
  std::size_t count = 0;
  std::array<epoll_event, 64> ready;
  // The number of rounds is bounded, since senders may never stop. Each round takes one record from
  // each sender.
  for (std::size_t rounds = 0; count < out.size() && rounds < 4 * out.size() + 64; ++rounds) {
    const int woken = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    if (woken <= 0) break;
    for (int i = 0; i < woken && count < out.size(); ++i) {
      const std::uint32_t who = ready[static_cast<std::size_t>(i)].data.u32;
      if (who == kListener) {
        (void)accept_one();
      } else if (take(who, out[count])) {
        ++count;
      }
    }
  }
  return count;
}

// --- the application's end ---------------------------------------------------------------------

Result<void> EvEventSender::refresh(const os::FileDescriptor& directory) {
  WEFT_TRY(const auto names, names_in(directory.get()));
  std::erase_if(targets_, [&](const Target& target) {
    return !target.alive || std::find(names.begin(), names.end(), target.name) == names.end();
  });
  for (const std::string& name : names) {
    if (targets_.size() >= kEventQueuesMax) break;
    const bool known = std::any_of(targets_.begin(), targets_.end(),
                                   [&](const Target& target) { return target.name == name; });
    if (known) continue;
    int error = 0;
    auto socket = connect_to(directory.get(), name, error);
    if (socket) targets_.push_back({.name = name, .socket = std::move(*socket)});
  }
  return {};
}

void EvEventSender::send(const EvEvent& event) {
  std::array<std::byte, kEvEventBytes> record;
  for (Target& target : targets_) {
    if (!target.alive) continue;
    EvEvent said = event;
    said.drop_count = target.dropped;
    emit_ev_event(said, record);
    const ssize_t put =
        ::send(target.socket.get(), record.data(), record.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put == static_cast<ssize_t>(record.size())) {
      target.dropped = 0;
      continue;
    }
    if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) {
      if (target.dropped < std::numeric_limits<std::uint32_t>::max()) ++target.dropped;
      ++dropped_;
    } else {
      target.alive = false;  // the listener is gone
    }
  }
}

}  // namespace weft::control
