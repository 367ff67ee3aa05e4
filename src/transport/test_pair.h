// For tests: endpoints joined by a simple wire. Every datagram takes 5 us (or what a test sets), in
// order, unless its fate says otherwise. Nothing here allocates after construction, so that a test
// can count the endpoints' allocations.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ring.h"
#include "transport/endpoint.h"
#include "transport/test_memory.h"

namespace weft::transport::test {

// kLate: ten times the delay of the wire, so that later datagrams overtake this one.
enum class Fate : std::uint8_t {
  kDeliver,
  kDrop,
  kMark,
  kTrim,
  kTrimLastHop,
  kDamage,
  kDouble,
  kLate
};

class Pair {
 public:
  static constexpr Duration kDelay = Duration::us(5);
  static constexpr int kEnds = 2;
  struct Options {
    EndpointConfig endpoint{};
    QpConfig qp{};
    EvShape evs{.ports = 2, .per_port = 8};
    Trace* trace = nullptr;
    Duration delay = kDelay;
    // Changes the configuration of one end, for tests in which the ends differ.
    std::function<void(int end, EndpointConfig&)> suit_endpoint{};
    std::function<void(int end, QpConfig&)> suit_qp{};
  };
  static Options defaults() {
    Options options;
    options.endpoint.port_count = 2;
    options.endpoint.mtu = 1024;
    options.qp.mpr = options.qp.mpr_dest = 8;
    options.qp.ev_active = 12;
    options.qp.nscc.rate = Rate::gbps(100);
    options.qp.nscc.base_rtt = kDelay * 2;
    return options;
  }

  explicit Pair(const Options& options = defaults())
      : options_(options), evs_(make_evs({options.endpoint.port_count, options.evs.per_port})) {
    for (int i = 0; i < kEnds; ++i) {
      EndpointConfig config = options.endpoint;
      config.host = static_cast<std::uint32_t>(i);
      for (std::uint32_t port = 0; port < config.port_count; ++port)
        config.ports[port] = address(i, port);
      if (options.suit_endpoint) options.suit_endpoint(i, config);
      ends_[i] = std::make_unique<Endpoint>(config, memory[i], options.trace);
    }
  }

  static Address address(int end, std::uint32_t port) {
    return {.high = 0xfd00, .low = static_cast<std::uint64_t>(end) * 16 + port + 1};
  }
  Endpoint& end(int i) { return *ends_[i]; }

  // A QP at each end, connected. The first PSNs are near the wrap.
  struct Qps {
    Qpn qpn[kEnds];
    Psn first[kEnds];
  };
  Qps connect() {
    Qps qps = create();
    for (int i = 0; i < kEnds; ++i) connect_one(qps, i);
    return qps;
  }
  Qps create() {
    Qps qps{};
    for (int i = 0; i < kEnds; ++i) {
      QpConfig config = options_.qp;
      config.evs = evs_;
      if (options_.suit_qp) options_.suit_qp(i, config);
      qps.first[i] = Psn(0xff'ffe0 + static_cast<std::uint32_t>(i) * 8);
      qps.qpn[i] = end(i).create_qp(config, qps.first[i]).value();
    }
    return qps;
  }
  void connect_one(const Qps& qps, int i) {
    PeerInfo peer;
    for (std::uint32_t port = 0; port < options_.endpoint.port_count; ++port)
      peer.ports[port] = address(1 - i, port);
    peer.host = static_cast<std::uint32_t>(1 - i);
    peer.qpn = qps.qpn[1 - i];
    peer.first_psn = qps.first[1 - i];
    end(i).connect(now, qps.qpn[i], peer).value();
  }

  // A write into the peer's region, at `offset`.
  struct Write {
    std::uint64_t id = 1;
    std::uint32_t offset = 0, size = 100;
    bool with_immediate = false, signalled = true;
    std::uint32_t immediate = 0;
    std::uint32_t rkey = 0x77;
  };
  static std::uint64_t source_of(const Write& write) { return 0x4000'0000 + write.offset; }
  Result<void> write(int from, Qpn qpn, const Write& w) {
    return end(from).post_write(now, qpn,
                                {.id = w.id,
                                 .local_at = source_of(w),
                                 .remote_at = memory[1 - from].options().at + w.offset,
                                 .rkey = w.rkey,
                                 .size = w.size,
                                 .with_immediate = w.with_immediate,
                                 .immediate = w.immediate,
                                 .signalled = w.signalled});
  }
  bool arrived(int from, const Write& w) const {
    return memory[1 - from].holds(memory[1 - from].options().at + w.offset, source_of(w), w.size);
  }

  // Decides the fate of each datagram; null: all are delivered. Ports that are down carry nothing.
  using Decide = std::function<Fate(int from, const world::Datagram& d)>;
  Decide fate;
  // Called with each datagram just before an endpoint gets it; may be null.
  std::function<void(int to, const world::Datagram& d)> on_arrival;

  void set_port(int i, PortIndex port, bool up) {
    up_[i][port] = up;
    end(i).on_port(now, port, {.up = up});
  }

  // Runs everything that happens up to `limit`. False if no event is left.
  bool run_until(Time limit) {
    for (;;) {
      transmit();
      Time next = std::min(next_arrival(flights_), next_arrival(late_flights_));
      for (auto& e : ends_) next = std::min(next, e->next_deadline());
      if (next > limit) {
        now = limit;
        return next != kNever;
      }
      now = std::max(now, next);
      land(flights_);
      land(late_flights_);
      for (auto& e : ends_) {
        if (e->next_deadline() <= now) e->on_deadline(now, Duration());
      }
    }
  }
  bool run_for(Duration d) { return run_until(now + d); }

  std::vector<Completion> completions(int i) {
    std::vector<Completion> all(64);
    all.resize(end(i).poll_completions(all));
    return all;
  }
  std::uint64_t counter(int i, std::string_view name) {
    const CounterTable table = end(i).counters();
    WEFT_ASSERT(has_counter(table, name));
    return value_of(table, name);
  }

  Time now = Time::from_start(Duration::us(1));
  TestMemory memory[kEnds]{TestMemory({}), TestMemory({})};
  std::uint64_t sent = 0;  // datagrams sent

 private:
  struct Flight {
    Time at;
    int to = 0;
    std::uint8_t header_size = 0;
    world::Datagram datagram;
    std::array<std::byte, wire::kHeaderSizeMax> header;
  };

  static Time next_arrival(Ring<Flight>& flights) {
    return flights.empty() ? kNever : flights.front().at;
  }
  void land(Ring<Flight>& flights) {
    while (next_arrival(flights) <= now) {
      Flight& f = flights.front();
      f.datagram.header = ConstBytes(f.header).first(f.header_size);
      if (on_arrival) on_arrival(f.to, f.datagram);
      ends_[f.to]->on_datagrams(now, {&f.datagram, 1});
      flights.pop();
    }
  }
  void transmit() {
    std::array<world::PortRoom, world::kPortsMax> room;
    room.fill({.packets = 16});
    for (int i = 0; i < kEnds; ++i) {
      for (std::size_t n = 1; n > 0;) {
        n = ends_[i]->poll_transmit(now, room, out_);
        for (std::size_t k = 0; k < n; ++k) carry(i, out_[k]);
      }
    }
  }
  void carry(int from, const world::Datagram& d) {
    ++sent;
    const Fate f = fate ? fate(from, d) : Fate::kDeliver;
    if (f == Fate::kDrop || !up_[from][d.port] || !up_[1 - from][d.port]) return;
    for (int copies = f == Fate::kDouble ? 2 : 1; copies > 0; --copies) {
      Flight& flight = (f == Fate::kLate ? late_flights_ : flights_).push_slot();
      flight.at = now + options_.delay * (f == Fate::kLate ? 10 : 1);
      flight.to = 1 - from;
      flight.header_size = static_cast<std::uint8_t>(d.header.size());
      std::copy(d.header.begin(), d.header.end(), flight.header.begin());
      flight.datagram = d;
      flight.datagram.peer = address(from, d.port);
      flight.datagram.received_at = flight.at;
      if (f == Fate::kMark) flight.datagram.ecn = world::Ecn::kCe;
      if (f == Fate::kDamage) flight.datagram.intact = false;
      const bool trimmable =
          d.dscp == world::Dscp::kTrimmable || d.dscp == world::Dscp::kTrimmableRetx;
      if (trimmable && (f == Fate::kTrim || f == Fate::kTrimLastHop)) {
        flight.datagram.dscp =
            f == Fate::kTrim ? world::Dscp::kTrimmed : world::Dscp::kTrimmedLastHop;
        flight.datagram.payload.size = 0;
      }
    }
  }

  Options options_;
  std::vector<fabric::Ev> evs_;
  std::unique_ptr<Endpoint> ends_[kEnds];
  bool up_[kEnds][world::kPortsMax] = {{true, true, true, true, true, true, true, true},
                                       {true, true, true, true, true, true, true, true}};
  Ring<Flight> flights_{4096}, late_flights_{4096};  // each in order of arrival
  std::array<world::Datagram, 64> out_;
};

// The opcode of a datagram.
inline wire::Opcode opcode_of(const world::Datagram& d) {
  return static_cast<wire::Opcode>(std::to_integer<std::uint8_t>(d.header[0]));
}

}  // namespace weft::transport::test
