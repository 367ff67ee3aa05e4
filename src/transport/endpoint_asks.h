// EndpointAsks: requests that a controller sends to other hosts, EV probes and port status updates,
// and the answers to them.
//
// Separate from the endpoint's own probes (EvProber, reverse EVs): these requests may go to hosts
// without a QP, each is sent once, and none changes any state. Bounded; owned by the endpoint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/ring.h"
#include "base/time.h"
#include "transport/config.h"
#include "wire/packet.h"

namespace weft::transport {

enum class AskClass : std::uint8_t { kData, kControl };

struct EndpointAsk {
  std::uint16_t id = 0;  // chosen by the controller, unique among open requests
  wire::EndpointOp op = wire::EndpointOp::kEvProbe;
  Address to{};
  PortIndex port = 0;
  std::uint32_t ev = 0;
  std::uint32_t port_status = 0;  // as on the wire: bit N is port N, counted from 1
  AskClass traffic = AskClass::kData;
};

struct EndpointAnswer {
  std::uint16_t id = 0;
  PortIndex port = 0;  // on which the answer arrived
  Duration rtt{};      // from sending to arrival, in the world's time
};

class EndpointAsks {
 public:
  explicit EndpointAsks(std::uint32_t outstanding_max)
      : outstanding_max_(outstanding_max), answers_(outstanding_max) {
    asks_.reserve(outstanding_max);
  }

  bool full() const { return asks_.size() + answers_.size() >= outstanding_max_; }
  bool has(std::uint16_t id) const {
    for (const Outstanding& ask : asks_) {
      if (ask.id == id) return true;
    }
    return false;
  }
  // REQUIRES !full(). `wire_id`: the request's number on the wire.
  void add(Time now, const EndpointAsk& ask, std::uint16_t wire_id) {
    WEFT_ASSERT(!full());
    asks_.push_back({.id = ask.id, .wire_id = wire_id, .to = ask.to, .sent_at = now});
  }
  void on_sent(Time now, std::uint16_t wire_id) {
    for (Outstanding& ask : asks_) {
      if (ask.wire_id == wire_id) ask.sent_at = now;
    }
  }
  // False: the packet answers none of these requests. The host must match; the process need not.
  struct Arrival {
    Address from{};
    PortIndex port = 0;
    Time at{};
    std::uint16_t wire_id = 0;
  };
  bool on_answer(const Arrival& in) {
    for (std::size_t i = 0; i < asks_.size(); ++i) {
      const Outstanding& ask = asks_[i];
      if (ask.wire_id != in.wire_id || !(ask.to.ip() == in.from.ip())) continue;
      answers_.push({.id = ask.id, .port = in.port, .rtt = in.at - ask.sent_at});
      asks_.erase(asks_.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  }
  // Takes answers in the order of arrival.
  std::size_t poll(std::span<EndpointAnswer> out) {
    std::size_t count = 0;
    for (; count < out.size() && !answers_.empty(); ++count) {
      out[count] = answers_.front();
      answers_.pop();
    }
    return count;
  }
  std::size_t bytes() const { return asks_.capacity() * sizeof(Outstanding) + answers_.bytes(); }
  // Forgets all open requests: the controller no longer waits for answers.
  void clear() {
    asks_.clear();
    answers_.clear();
  }

 private:
  struct Outstanding {
    std::uint16_t id = 0, wire_id = 0;
    Address to{};
    Time sent_at{};
  };
  std::uint32_t outstanding_max_;
  std::vector<Outstanding> asks_;  // capacity taken at construction
  Ring<EndpointAnswer> answers_;
};

}  // namespace weft::transport
