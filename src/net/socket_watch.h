// SocketWatch: which descriptors of a world have something to do? The kernel reports it (epoll), or
// the sockets of the planes are polled for packets.
//
// The kernel notifies the watcher of a socket of each packet that arrives, and the notification
// costs CPU time of the sender. So the planes are watched only while the world sleeps and for a
// moment after. A world that has been awake for longer polls them (docs/decisions/0027).
//
// Owned by one world. One thread at a time calls it; any thread may call wake().
#pragma once

#include <poll.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "os/alarm.h"
#include "os/file_descriptor.h"
#include "os/wake_event.h"
#include "world/world.h"

namespace weft::net {

class SocketWatch {
 public:
  enum class Source : std::uint8_t {
    kPlane,         // a plane has packets
    kPlaneHasRoom,  // a sending socket has room, or reports an ICMP error
    kHostListener,  // a packet at port 4791 of a plane (host_listener.h)
    kSharedMemory,
    kLinks,
    kWake,
  };
  struct Event {
    Source source = Source::kWake;
    std::uint8_t plane = 0;
    bool error = false;
  };

  // Errors: kSystem.
  static Result<std::unique_ptr<SocketWatch>> open();

  // --- what is watched
  // Adds a socket that receives packets of a plane. It is watched from now on, except while the
  // world polls. All such sockets are added before the first wait. Errors: kSystem.
  Result<void> add_plane(std::uint8_t plane, int fd);
  // Adds another descriptor, which is always watched. Errors: kSystem.
  Result<void> add(int fd, const Event& event);
  void remove(int fd);

  // --- waiting
  // The epoll descriptor: readable when there is an event, between prepare_wait() and end_wait().
  int fd() const { return epoll_.get(); }
  // Starts to watch the planes. False: the system cannot watch them (logged once).
  bool prepare_wait(Time now);
  void end_wait(Time now);
  // Ends the sleep() of another thread. Any thread may call it.
  void wake() const { wake_->signal(); }

  // --- events
  // Stops watching the planes if the last wait ended long ago. True: the planes are watched, so
  // events() reports their packets too. False: call poll_planes() for them.
  bool watches_planes(Time now);
  // The pending events; valid until the next call.
  std::span<const Event> events() { return read_events(0); }
  // Sleeps until there is an event, or until the monotonic clock reaches `until`. REQUIRES that the
  // planes are watched.
  std::span<const Event> sleep(Time until);
  // The planes that have packets, and whether there are other events, from one system call.
  struct Polled {
    std::uint32_t planes = 0;  // bit i: plane i
    bool others = false;
  };
  Polled poll_planes();

  // For a forked child: closes the descriptors, as UdpWorld::abandon() does.
  void abandon() const;

 private:
  SocketWatch() = default;
  std::span<const Event> read_events(int timeout);
  Result<void> watch_planes();
  void unwatch_planes();

  os::FileDescriptor epoll_;
  std::optional<os::Alarm> alarm_;  // ends sleeps
  std::optional<os::WakeEvent> wake_;
  std::vector<pollfd> polled_;          // the epoll descriptor, then the sockets of the planes
  std::vector<std::uint8_t> plane_of_;  // the plane of each socket in polled_
  std::array<Event, world::kPortsMax + 8> events_;
  bool watches_planes_ = false, waits_ = false, is_logged_ = false;
  Time waited_at_;  // when a wait was last prepared or ended
};

}  // namespace weft::net
