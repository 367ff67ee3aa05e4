// EV events. A process reports to controllers that its QPs found a path bad, or good again. Only
// controllers that listen get these events. There is no daemon.
//
// A controller that wants events listens on a socket in the device's NAME.events directory. An
// application connects to every socket there, and sends one record for each event. Both ends are
// bounded: at most kEventQueuesMax listeners, at most kEventSendersMax senders for each listener,
// and for each sender the events that the kernel holds, at least kEventsMin. A sender that finds a
// full queue counts the lost events, and reports their number with its next event, so that the
// listener knows the exact gap. If the sender dies before that, the listener does not learn of the
// gap.
//
// Records come from other processes and are not trusted: a malformed record is counted and dropped.
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
  EvState state = EvState::kGood;  // GOOD or ASSUMED_BAD
  std::uint32_t drop_count = 0;    // events lost since the previous event of this sender
  friend bool operator==(const EvEvent&, const EvEvent&) = default;
};

inline constexpr std::size_t kEvEventBytes = 56;
inline constexpr std::uint32_t kEventQueuesMax = 8;
inline constexpr std::uint32_t kEventSendersMax = 256;
inline constexpr std::uint32_t kEventsMin = 256;

void emit_ev_event(const EvEvent& event, Bytes out);  // REQUIRES out.size() >= kEvEventBytes
std::optional<EvEvent> parse_ev_event(ConstBytes in);

// The controller's end.
class EvEventQueue {
 public:
  // Makes a socket in `directory`, and removes it on destruction. Also removes the sockets of dead
  // controllers. Errors: kExhausted (there are already kEventQueuesMax), kSystem.
  static Result<std::unique_ptr<EvEventQueue>> open(os::FileDescriptor directory);
  ~EvEventQueue();
  EvEventQueue(const EvEventQueue&) = delete;
  EvEventQueue& operator=(const EvEventQueue&) = delete;

  // Takes the events that have arrived, without waiting.
  std::size_t poll(std::span<EvEvent> out);
  // Readable when poll() may return an event.
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
  // Connects to the listeners that are there now. Call it when the controller's generation has
  // changed. Errors: kSystem.
  Result<void> refresh(const os::FileDescriptor& directory);
  // Sends to all listeners; never waits.
  void send(const EvEvent& event);
  std::size_t listeners() const { return targets_.size(); }
  // Total number of events, over all listeners, that a listener did not get.
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Target {
    std::string name{};
    os::FileDescriptor socket{};
    std::uint32_t dropped = 0;  // lost events that are not yet reported to the listener
    bool alive = true;
  };
  std::vector<Target> targets_;
  std::uint64_t dropped_ = 0;
};

}  // namespace weft::control
