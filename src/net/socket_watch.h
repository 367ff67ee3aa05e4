// SocketWatch: which descriptors of a world have something to do? The kernel announces it (epoll),
// or the sockets of the planes are polled for packets.
//
// The kernel notifies the watcher of a socket at each packet that arrives, in the sender's time. So
// the planes are watched only while the world sleeps and for a moment after. A world that has been
// awake for longer polls them (docs/decisions/0027).
//
// Owned by one world. One thread at a time, except wake().
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
    kPlaneHasRoom,  // a sending socket of a plane has room, or an ICMP error
    kHostListener,  // a request for the host, in a plane
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
  // A socket that receives packets of a plane. It is watched now, and later only at times. All of
  // them are added before the first wait. Errors: kSystem.
  Result<void> add_plane(std::uint8_t plane, int fd);
  // Another descriptor, which is watched from now on. Errors: kSystem.
  Result<void> add(int fd, const Event& event);
  void remove(int fd);

  // --- waiting
  // Readable when there is an event, between prepare_wait() and end_wait().
  int fd() const { return epoll_.get(); }
  // From now on the planes are watched. False: the system cannot (logged once).
  bool prepare_wait(Time now);
  void end_wait(Time now);
  // Ends the sleep of the thread that is in sleep(). Any thread.
  void wake() const { wake_->signal(); }

  // --- events
  // Planes are not watched any more if the last wait is long ago. True: they are watched, so that
  // events() has their packets too; otherwise poll_planes() does.
  bool watches_planes(Time now);
  // The events that there are now; valid until the next call.
  std::span<const Event> events() { return read_events(0); }
  // Sleeps until there is an event, or until `until` by the monotonic clock. REQUIRES that planes
  // are watched.
  std::span<const Event> sleep(Time until);
  // The planes that have packets, and whether there are other events, in one system call.
  struct Polled {
    std::uint32_t planes = 0;  // bit i: plane i
    bool others = false;
  };
  Polled poll_planes();

  // For a forked child: as UdpWorld::abandon().
  void abandon() const;

 private:
  SocketWatch() = default;
  std::span<const Event> read_events(int timeout);
  Result<void> watch_planes();
  void unwatch_planes();

  os::FileDescriptor epoll_;
  std::optional<os::Alarm> alarm_;  // ends sleeps
  std::optional<os::WakeEvent> wake_;
  std::vector<pollfd> polled_;          // epoll_, then the sockets of the planes
  std::vector<std::uint8_t> plane_of_;  // of polled_
  std::array<Event, world::kPortsMax + 8> events_;
  bool watches_planes_ = false, waits_ = false, is_logged_ = false;
  Time waited_at_;  // when a wait last ended or was prepared
};

}  // namespace weft::net
