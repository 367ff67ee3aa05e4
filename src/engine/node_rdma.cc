#include "engine/node_rdma.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"
#include "fabric/address.h"
#include "wire/framing.h"

namespace weft::engine {
namespace {

constexpr std::size_t kDataHeaderSize = 36;  // BTH, METH, TSETH, RETH
constexpr std::size_t kSackHeaderSize = 48;  // BTH, SETH, CC_STATE

std::array<world::Address, world::kPortsMax> ports_of(const fabric::Topology& topology,
                                                      fabric::HostIndex host) {
  std::array<world::Address, world::kPortsMax> ports{};
  for (std::uint32_t plane = 0; plane < topology.spec().planes; ++plane)
    ports[plane] = world::Address::of(fabric::address_of({.host = host, .plane = plane}));
  return ports;
}

std::uint32_t wire_size(std::size_t header, std::uint32_t payload) {
  return static_cast<std::uint32_t>(
      wire::wire_size({.header_size = header, .payload_size = payload, .srv6 = true}));
}

// Sizes of a group's description: the host, then for each QP its number and first PSN.
constexpr std::size_t kGroupHead = 4, kQpWords = 8;
// Size of a region's description: host, key, address, size.
constexpr std::size_t kRegionWords = 24;

}  // namespace

NodeRdmaOptions node_options(const fabric::Topology& topology, fabric::HostIndex host,
                             const NodeBounds& bounds) {
  const std::uint32_t planes = topology.spec().planes;
  NodeRdmaOptions out;
  out.topology = &topology;
  out.host = host;
  out.evs_per_plane = bounds.evs_per_plane;
  out.sends_max = bounds.sends_max;
  out.receives_max = bounds.receives_max;
  transport::EndpointConfig& endpoint = out.endpoint;
  endpoint.port_count = planes;
  endpoint.ports = ports_of(topology, host);
  endpoint.host = host;
  endpoint.qp_count_max = endpoint.peer_count_max = bounds.qps_max;
  endpoint.ev_count_max = bounds.qps_max * planes * bounds.evs_per_plane;
  endpoint.bad_ev_count_max =
      std::min(endpoint.ev_count_max, transport::EndpointConfig().bad_ev_count_max);
  // The blocks of 64 PSNs that the windows of all QPs take at the largest MPR.
  endpoint.psn_block_count_max = bounds.qps_max * (out.qp.mpr * 128 / 64 + 2);
  endpoint.completion_queue_max = bounds.sends_max + bounds.receives_max;
  endpoint.batch_max = world::kBatchMin;
  endpoint.tell_failures = true;
  endpoint.seed = Prng(bounds.seed).fork("endpoint", host).next();
  const Duration base_rtt = topology.idle_rtt_max(wire_size(kDataHeaderSize, endpoint.mtu),
                                                  wire_size(kSackHeaderSize, 0));
  out.qp.nscc.rate = Rate::bps(topology.spec().host_rate.bits_per_second() * planes);
  out.qp.nscc.base_rtt = base_rtt;
  out.qp.ev_active = planes * bounds.evs_per_plane;
  return out;
}

NodeRdma::NodeRdma(const NodeRdmaOptions& options, sim::ByteMemory& memory, Trace* trace)
    : EndpointRdma(&endpoint_, {.planes = static_cast<std::uint8_t>(options.endpoint.port_count),
                                .sends_max = options.sends_max,
                                .receives_max = options.receives_max}),
      set_up_(std::make_unique<SetUp>(SetUp{
          .options = options, .memory = memory, .prng = Prng(options.endpoint.seed).fork("qps")})),
      endpoint_(options.endpoint, memory.of(options.host), trace) {
  set_prefetch(endpoint_);
}

NodeRdma::NodeRdma(const transport::EndpointConfig& config, world::Memory& memory, Trace* trace)
    : EndpointRdma(&endpoint_, {.planes = static_cast<std::uint8_t>(config.port_count)}),
      endpoint_(config, memory, trace) {
  set_prefetch(endpoint_);
}

Result<rdma::QpIndex> NodeRdma::create_qp(const transport::QpConfig& config, Psn first_psn) {
  WEFT_TRY(const transport::Qpn qpn, endpoint_.create_qp(config, first_psn));
  return add_qp(qpn, first_psn);
}

// --- set-up ------------------------------------------------------------------------------------

Result<NodeRdma::SetUp*> NodeRdma::set_up() {
  if (set_up_ == nullptr)
    return Error{ErrorKind::kInvalid, "the owner of this node sets up its QPs and memory"};
  return set_up_.get();
}

Result<rdma::Region> NodeRdma::keep_region(SetUp& set_up, const sim::ByteMemory::Range& range) {
  set_up.keys.push_back(range.key);
  return rdma::Region{
      .id = add_range(range.at, range.size), .bytes = range.bytes, .size = range.size};
}

Result<rdma::Region> NodeRdma::allocate(std::uint64_t size) {
  WEFT_TRY(SetUp* const own, set_up());
  if (size == 0) return Error{ErrorKind::kInvalid, "a region has at least one byte"};
  WEFT_TRY(const auto range, own->memory.allocate(own->options.host, size));
  return keep_region(*own, range);
}

Result<rdma::Region> NodeRdma::add_region(std::span<std::byte> memory) {
  WEFT_TRY(SetUp* const own, set_up());
  WEFT_TRY(const auto range, own->memory.add(own->options.host, memory));
  return keep_region(*own, range);
}

Result<void> NodeRdma::remove_region(rdma::RegionId id) {
  WEFT_TRY(SetUp* const own, set_up());
  WEFT_TRY(OwnRegion* const region, find_region(id));
  own->memory.remove(own->keys[id]);
  region->is_there = false;
  return {};
}

Result<rdma::Group> NodeRdma::create_group(const rdma::GroupRequest& request) {
  WEFT_TRY(SetUp* const own, set_up());
  transport::QpConfig config = own->options.qp;
  const fabric::Ev any{};  // a placeholder: connect() sets the paths
  config.evs = {&any, 1};
  config.ev_active = 1;
  return create_qps(Time(), request, config, own->prng);
}

Result<void> NodeRdma::destroy_group(Time now, rdma::GroupId id) {
  WEFT_TRY(GroupState* const state, find_group(id));
  endpoint_.flush_answers(now);
  if (set_up_ != nullptr)
    std::erase_if(set_up_->mapped, [id](const SetUp::Mapped& one) { return one.group == id; });
  return destroy_qps(now, *state);
}

std::vector<std::byte> NodeRdma::describe(rdma::GroupId id) const {
  WEFT_ASSERT(set_up_ != nullptr);
  const rdma::Group& group = this->group(id).group;
  std::vector<std::byte> out(kGroupHead + group.qps * kQpWords);
  const Bytes bytes(out);
  base::store32(bytes, 0, set_up_->options.host);
  for (std::uint32_t i = 0; i < group.qps; ++i) {
    const OneQp& one = qp(group.first_qp + i);
    base::store32(bytes, kGroupHead + i * kQpWords, one.qpn);
    base::store32(bytes, kGroupHead + i * kQpWords + 4, one.first_psn.value());
  }
  return out;
}

Result<void> NodeRdma::connect(Time now, rdma::GroupId id, ConstBytes peer) {
  WEFT_TRY(SetUp* const own, set_up());
  WEFT_TRY(GroupState* const state, find_group(id));
  const NodeRdmaOptions& options = own->options;
  if (state->is_connected)
    return Error{ErrorKind::kWrongState, fmt::format("group {} is connected already", id)};
  const std::size_t expected = kGroupHead + state->group.qps * kQpWords;
  if (peer.size() != expected) {
    return Error{ErrorKind::kInvalid, fmt::format("the peer describes its group in {} bytes; "
                                                  "expected {}, for {} QPs as here",
                                                  peer.size(), expected, state->group.qps)};
  }
  const fabric::HostIndex to = base::load32(peer, 0);
  if (to >= options.topology->spec().hosts || to == options.host) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("the peer says that it is host {}; expected another of {} hosts", to,
                             options.topology->spec().hosts)};
  }
  for (std::uint32_t i = 0; i < state->group.qps; ++i) {
    const transport::Qpn qpn = qp(state->group.first_qp + i).qpn;
    Prng prng = own->prng.fork("evs", qpn);
    const auto evs = fabric::draw_evs(*options.topology, options.forwarding, options.host, to,
                                      options.evs_per_plane, prng);
    transport::QpConfig config = options.qp;
    config.evs = evs;
    bound_queues(state->request, config);
    WEFT_CHECK(endpoint_.configure_qp(qpn, config));
    transport::PeerInfo info;
    info.ports = ports_of(*options.topology, to);
    info.host = to;
    info.qpn = base::load32(peer, kGroupHead + i * kQpWords);
    info.first_psn = Psn(base::load32(peer, kGroupHead + i * kQpWords + 4));
    WEFT_CHECK(endpoint_.connect(now, qpn, info));
  }
  state->is_connected = true;
  return {};
}

std::vector<std::byte> NodeRdma::describe_region(rdma::RegionId id) const {
  WEFT_ASSERT(set_up_ != nullptr);
  std::vector<std::byte> out(kRegionWords);
  const Bytes bytes(out);
  base::store32(bytes, 0, set_up_->options.host);
  base::store32(bytes, 4, set_up_->keys[id]);
  base::store64(bytes, 8, region(id).at);
  base::store64(bytes, 16, region(id).size);
  return out;
}

Result<rdma::RemoteRegion> NodeRdma::open_region(rdma::GroupId id, ConstBytes peer) {
  WEFT_TRY(SetUp* const own, set_up());
  WEFT_TRY(const GroupState* const state, find_group(id));
  if (!state->is_connected)
    return Error{ErrorKind::kWrongState, fmt::format("group {} is not connected", id)};
  if (peer.size() != kRegionWords) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("a region's description has {} bytes; expected {}", peer.size(), kRegionWords)};
  }
  rdma::RemoteRegion out{
      .at = base::load64(peer, 8), .size = base::load64(peer, 16), .rkey = base::load32(peer, 4)};
  const std::uint32_t machine = own->options.machine_hosts;
  if (base::load32(peer, 0) / machine != own->options.host / machine) return out;
  if (const auto shared = own->memory.share(out.rkey, out.size)) {
    out.mapped = shared.get();
    own->mapped.push_back({id, shared});
  }
  return out;
}

Time NodeRdma::spend(Time now, std::uint64_t bytes) {
  if (set_up_ == nullptr || set_up_->options.core.bits_per_second() == 0) return now;
  core_free_at_ = std::max(core_free_at_, now) + set_up_->options.core.time_for(bytes);
  return core_free_at_;
}

// --- world::Node -------------------------------------------------------------------------------

void NodeRdma::step_if_news(Time now) {
  const std::uint64_t health = endpoint_.path_changes();
  if (!endpoint_.has_news() && health == health_seen_ && now < program_->next_deadline()) return;
  health_seen_ = health;
  stepped_at_ = now;
  program_->step(now, *this);
}

void NodeRdma::on_datagrams(Time now, std::span<const world::Datagram> in) {
  endpoint_.on_datagrams(now, in);
  step_if_news(now);
}

void NodeRdma::on_port(Time now, world::PortIndex port, world::PortState state) {
  endpoint_.on_port(now, port, state);
  step_if_news(now);
}

void NodeRdma::on_deadline(Time now, Duration late_by) {
  if (now >= endpoint_.next_deadline()) endpoint_.on_deadline(now, late_by);
  step_if_news(now);
}

Time NodeRdma::next_deadline() const {
  // What a step left unpolled, or caused itself (a failed group), is news for another step at once.
  if (endpoint_.has_news()) return stepped_at_;
  return std::min(program_->next_deadline(), endpoint_.next_deadline());
}

std::size_t NodeRdma::poll_transmit(Time now, std::span<const world::PortRoom> room,
                                    std::span<world::Datagram> out) {
  return endpoint_.poll_transmit(now, room, out);
}

}  // namespace weft::engine
