#include "cli/bench_connect.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cli/load_scenario.h"

namespace weft::cli {
namespace {

constexpr std::uint64_t kRegionMin = 64ull << 20;

// The planes that were chosen, or those of a host in a lab, steered by uSIDs.
Result<void> choose_planes(const Bench& bench, net::UdpWorldConfig& out) {
  out.planes.clear();
  for (const net::PlaneChoice& plane : bench.planes) out.planes.push_back(plane.address);
  if (bench.arguments.fabric.empty()) return {};
  WEFT_TRY(const scenario::Scenario scenario, load_scenario(bench.arguments.fabric));
  WEFT_TRY(const fabric::Topology topology, fabric::Topology::make(scenario.topology));
  out.ev_mode = net::EvMode::kSrv6;
  out.place = net::FabricPlace{topology, bench.arguments.fabric_host};
  return {};
}

// All QPs of a stream lead to one process: what is agreed for one holds for all.
Result<Offer> agree_on(Role role, Stream& stream, NetEnd& end, const Hello& peer) {
  WEFT_TRY(const Offer ours, end.offer(peer));
  std::array<std::byte, Offer::kSize> bytes;
  if (role == Role::kLeads) WEFT_CHECK(stream.send(ours.to_bytes()));
  WEFT_CHECK(stream.receive(bytes));
  const Offer agreed = NetEnd::agree(ours, Offer::from_bytes(bytes));
  if (role == Role::kFollows) WEFT_CHECK(stream.send(agreed.to_bytes()));
  return agreed;
}

}  // namespace

Result<Buffers> Buffers::make(std::uint64_t size) {
  const std::size_t bytes = std::max(size, kRegionMin);
  Buffers out;
  for (auto& half : out.halves_) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
      return Error{ErrorKind::kSystem, fmt::format("no memory for {} bytes", bytes)};
    half = {static_cast<std::byte*>(memory), bytes};
  }
  return out;
}

Result<std::unique_ptr<NetEnd>> open_end(const Bench& bench, const Terms& terms) {
  NetOptions options;
  WEFT_CHECK(choose_planes(bench, options.world));
  options.world.evs_per_plane = bench.settings.evs;
  options.world.srv6 = bench.settings.srv6;
  options.mtu = bench.settings.mtu;
  options.world.job_secret = bench.secret;
  options.world.rate_cap = bench.settings.rate;
  options.burst = terms.burst;
  options.qps_max = terms.qps;
  options.world.spin = bench.settings.spin;
  options.world.shared_memory = bench.settings.shared_memory != SharedMemory::kOff;
  if (bench.arguments.receive_buffer != 0)
    options.world.receive_buffer_bytes = bench.arguments.receive_buffer;
  return NetEnd::open(options);
}

Result<Links> connect_qps(const Bench& bench, const Terms& terms, Role role, Stream& stream,
                          const Buffers& buffers, NetEnd& end) {
  Links out;
  // Word by word, so that neither end fills the stream. All are heard before any is refused: who
  // closes with words unread takes its own last ones back.
  std::vector<transport::Qpn> ours;
  std::vector<Hello> peers;
  for (std::uint32_t i = 0; i < terms.qps; ++i) {
    WEFT_TRY(const Hello hello, end.create_qp(buffers.landing()));
    ours.push_back(hello.qpn);
    WEFT_CHECK(stream.send(hello.to_bytes()));
    std::array<std::byte, Hello::kSize> bytes;
    WEFT_CHECK(stream.receive(bytes));
    WEFT_TRY(Hello peer, Hello::from_bytes(bytes));
    peers.push_back(std::move(peer));
  }
  WEFT_TRY(const Offer agreed, agree_on(role, stream, end, peers.front()));
  out.mtu = agreed.mtu;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const transport::Qpn qpn = ours[i];
    const Hello& peer = peers[i];
    if (peer.region_size < buffers.source().size())
      return Error{ErrorKind::kInvalid, "the other end's region is smaller than ours"};
    WEFT_TRY(out.carrier, end.connect(qpn, peer, agreed));
    const bool must = bench.settings.shared_memory == SharedMemory::kMust;
    if (must && out.carrier != NetEnd::Carrier::kSharedMemory) {
      return Error{ErrorKind::kSystem,
                   "no shared memory with the other end; it must run on this host, as the same "
                   "user, without --no-shm"};
    }
    out.qps.push_back({.qpn = qpn, .peer = peer});
  }
  return out;
}

Result<Connected> connect(const Bench& bench, const Terms& terms, Role role, Stream& stream,
                          const Buffers& buffers) {
  Connected out;
  WEFT_TRY(out.end, open_end(bench, terms));
  WEFT_TRY(static_cast<Links&>(out), connect_qps(bench, terms, role, stream, buffers, *out.end));
  return out;
}

nlohmann::json counters_json(NetEnd& end) {
  nlohmann::json counters;
  for (const auto& table : {end.endpoint().counters(), end.world().counters()}) {
    for (const Counter& counter : table) {
      if (counter.value != 0) counters[std::string(counter.name)] = counter.value;
    }
  }
  return counters;
}

}  // namespace weft::cli
