// EV events: from the processes whose QPs find a path bad or good again to the controllers that
// asked, without a daemon.
//
// A controller that wants events listens on a socket in the device's NAME.events directory; an
// application connects to every socket there and sends one record an event. Bounded on both ends: at
// most kQueuesMax listeners, kSendersMax senders a listener, and what the kernel holds for one
// sender, at least kEventsMin. Who meets a full queue counts, and says the count with its next event,
// so that a gap is known to the event. What a sender lost last dies with it if it dies before it can
// say so.
//
// Records come from other processes, and are looked at as such: what is none is counted and dropped.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "control/ctl_model.h"
#include "os/file_descriptor.h"

namespace weft::control {

struct EvEvent {
  std::uint64_t profile_id = 0;
  CtlEv ev{};
  EvState state = EvState::kGood;  // good or assumed bad
  std::uint32_t drop_count = 0;    // events lost between the last one of this sender and this one
  friend bool operator==(const EvEvent&, const EvEvent&) = default;
};

inline constexpr std::size_t kEvEventBytes = 56;
inline constexpr std::uint32_t kEventQueuesMax = 8;
inline constexpr std::uint32_t kEventSendersMax = 256;
inline constexpr std::uint32_t kEventsMin = 256;

void emit_ev_event(const EvEvent& event, Bytes out);  // REQUIRES kEvEventBytes
std::optional<EvEvent> parse_ev_event(ConstBytes in);

// The controller's end.
class EvEventQueue {
 public:
  // A socket of its own in that directory, taken away with the object; those of dead controllers are
  // cleared away. Errors: kExhausted (kEventQueuesMax there), kSystem.
  static Result<std::unique_ptr<EvEventQueue>> open(os::FileDescriptor directory);
  ~EvEventQueue();
  EvEventQueue(const EvEventQueue&) = delete;
  EvEventQueue& operator=(const EvEventQueue&) = delete;

  // Takes what has come, without waiting.
  std::size_t poll(std::span<EvEvent> out);
  // Readable when there may be something to poll.
  int fd() const { return epoll_.get(); }
  std::uint64_t malformed() const { return malformed_; }

 private:
  EvEventQueue() = default;
  bool accept_one();
  bool take(std::uint32_t sender, EvEvent& out);

  os::FileDescriptor directory_, listener_, epoll_;
  std::string name_;
  std::array<os::FileDescriptor, kEventSendersMax> senders_;
  std::uint64_t malformed_ = 0;
};

// The application's end. Not thread safe.
class EvEventSender {
 public:
  // Looks who listens now. Call it when the controller's generation has changed. Errors: kSystem.
  Result<void> refresh(const os::FileDescriptor& directory);
  // To everyone who listens; never waits.
  void send(const EvEvent& event);
  std::size_t listeners() const { return targets_.size(); }
  // Events that were not delivered to some listener, in all.
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Target {
    std::string name{};
    os::FileDescriptor socket{};
    std::uint32_t dropped = 0;  // not yet said
    bool alive = true;
  };
  std::vector<Target> targets_;
  std::uint64_t dropped_ = 0;
};

}  // namespace weft::control
