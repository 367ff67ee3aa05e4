// Endpoint: its counters as tables.
#include <algorithm>

#include "transport/endpoint.h"

namespace weft::transport {
namespace {

static_assert(PerPlane::kPlanesMax == world::kPortsMax);

constexpr std::array<std::string_view, kStatusCount> kStatusWords = {
    "ok",           "retry_exceeded", "remote_access", "remote_invalid", "remote_operation",
    "local_access", "flushed"};

// Adds families of counters, with one counter per plane or per reason.
class TableWriter {
 public:
  explicit TableWriter(std::uint32_t port_count) : port_count_(port_count) {}

  void add(std::string_view name, std::string_view unit, std::uint64_t value) {
    table_.push_back({.name = name, .unit = unit, .value = value});
  }
  void add(std::string_view name, std::string_view unit, const PerPlane& counts) {
    add_per_plane({.name = name, .unit = unit}, counts, port_count_, table_);
  }
  struct Reason {
    std::string_view word;
    std::uint64_t value = 0;
  };
  void add(std::string_view name, std::string_view unit, std::initializer_list<Reason> reasons) {
    for (const Reason& reason : reasons) add_reason(name, unit, reason);
  }
  void add_reason(std::string_view name, std::string_view unit, const Reason& reason) {
    table_.push_back(
        {.name = name, .unit = unit, .value = reason.value, .labels = {.reason = reason.word}});
  }
  CounterTable take() { return std::move(table_); }

 private:
  std::uint32_t port_count_;
  CounterTable table_;
};

}  // namespace

CounterTable Endpoint::counters() const {
  const RequestorCounters& q = requestor_counters_;
  const ResponderCounters& p = responder_counters_;
  TableWriter out(ports_.count());
  out.add("transport.data_packets", "packets", q.packets);
  out.add("transport.data_bytes", "bytes", q.bytes);
  out.add("transport.control_packets", "packets", counters_.control_packets);
  out.add("transport.retransmits", "packets", q.retransmits);
  out.add("transport.spurious_losses", "packets", q.spurious);
  out.add("transport.lost", "packets",
          {{"inferred", q.lost_inferred},
           {"trimmed", q.lost_trimmed},
           {"port", q.lost_port},
           {"timer", q.lost_timer}});
  // Part of lost_inferred: the peer had no room for these packets.
  out.add("transport.lost_overflow", "packets", q.lost_overflow);
  out.add("transport.timeouts", "events", q.timeouts);
  out.add("transport.silences", "events", q.silences);
  out.add("transport.completion_resends", "packets", q.completion_resends);
  out.add("transport.nacks", "packets",
          {{"resource", q.nacks_resource}, {"window", q.nacks_window}});
  out.add("transport.marks", "packets", q.marks);
  out.add("transport.stale", "packets", q.stale);
  out.add("transport.unbalanced", "events", q.unbalanced);
  out.add("transport.reliability_probes", "packets", q.probes);
  out.add("transport.ev_probes", "packets", prober_.probes_queued() + reverse_evs_.probes());
  out.add("transport.quiet_sacks", "packets", counters_.quiet_sacks);
  out.add("transport.port_status_updates", "packets", ports_.updates_sent());
  out.add("transport.evs_condemned", "EVs", q.evs_condemned);
  out.add("transport.evs_withdrawn", "EVs", q.evs_withdrawn);
  out.add("transport.evs_revived", "EVs", counters_.evs_revived);
  out.add("transport.planes_condemned", "events", q.planes_condemned);
  out.add("transport.planes_revived", "events", counters_.planes_revived);
  out.add("transport.refusals", "events", counters_.refusals);
  out.add("transport.qps_refused", "QPs", counters_.qps_refused);
  for (std::size_t i = 1; i < kStatusCount; ++i)
    out.add_reason("transport.qp_failures", "QPs", {kStatusWords[i], counters_.qp_failures[i]});
  out.add("transport.packets_placed", "packets", p.packets_placed);
  out.add("transport.bytes_placed", "bytes", p.bytes_placed);
  out.add("transport.duplicates", "packets", p.duplicates);
  out.add("transport.trimmed_received", "packets", p.trimmed);
  out.add("transport.out_of_window_received", "packets", p.out_of_window);
  out.add("transport.sacks_sent", "packets", p.sacks);
  out.add("transport.nacks_sent", "packets", p.nacks);
  out.add("transport.transport_acks_sent", "packets", p.transport_acks);
  out.add("transport.naks_sent", "packets", p.naks);
  out.add("transport.control_overflow", "packets", control_.dropped());
  for (std::size_t i = 0; i < kDropReasonCount; ++i) {
    out.add_reason("transport.drop", "packets",
                   {to_string(static_cast<DropReason>(i)), counters_.drops[i]});
  }
  return out.take();
}

CounterTable Endpoint::peer_counters() const {
  struct OfPeer {
    PeerLabel label{};
    std::uint64_t qps = 0, window = 0, inflight = 0;
    Duration rtt{};  // the shortest base RTT; 0: no QP sends to this peer
  };
  std::vector<OfPeer> peers;
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    if (peer.first_qp == Peer::kNobody) continue;
    if (peers.size() <= kLabelledPeersMax) {
      const Address& address = peer.planes[0].address;
      const bool labelled = peers.size() < kLabelledPeersMax;
      peers.push_back({.label = labelled ? PeerLabel{.ip = address.ip(), .process = address.process}
                                         : kOtherPeers});
    }
    OfPeer& sum = peers.back();
    qps_.for_each_of(peer, [&sum](const Qp& qp) {
      ++sum.qps;
      if (!qp.may_send()) return;
      const Nscc& nscc = qp.requestor.congestion();
      sum.window += static_cast<std::uint64_t>(nscc.window());
      sum.inflight += static_cast<std::uint64_t>(nscc.inflight());
      const Duration rtt = nscc.base_rtt();
      sum.rtt = sum.rtt == Duration() ? rtt : std::min(sum.rtt, rtt);
    });
  }
  CounterTable table;
  const auto add = [&table](std::string_view name, std::string_view unit, const PeerLabel& label,
                            std::uint64_t value) {
    table.push_back({.name = name,
                     .unit = unit,
                     .value = value,
                     .labels = {.peer = label},
                     .kind = CounterKind::kGauge});
  };
  for (const OfPeer& peer : peers) {
    add("transport.qps", "QPs", peer.label, peer.qps);
    add("transport.window", "bytes", peer.label, peer.window);
    add("transport.inflight", "bytes", peer.label, peer.inflight);
    add("transport.rtt_min", "ps", peer.label, static_cast<std::uint64_t>(peer.rtt.ps()));
  }
  return table;
}

}  // namespace weft::transport
