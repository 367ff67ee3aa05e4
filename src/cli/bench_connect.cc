#include "cli/bench_connect.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/bench_engine.h"
#include "cli/bench_mrc.h"
#include "net/host_facts.h"

namespace weft::cli {
namespace {

constexpr std::uint64_t kRegionMin = 64ull << 20;

// The selected planes, or the planes of a host in a lab, where packets are steered by uSIDs.
Result<void> choose_planes(const Bench& bench, net::UdpWorldConfig& out) {
  out.planes.clear();
  for (const os::PlaneChoice& plane : bench.planes) out.planes.push_back(plane.address);
  if (!bench.fabric) return {};
  WEFT_TRY(const fabric::Topology topology, fabric::Topology::make(bench.fabric->topology));
  out.ev_mode = net::EvMode::kSrv6;
  out.place = net::FabricPlace{topology, bench.arguments.fabric_host};
  return {};
}

// All QPs of a stream lead to the same process, so one agreement is valid for all of them.
Result<engine::Offer> agree_on(Role role, os::Stream& stream, BenchEnd& end,
                               const engine::Hello& peer) {
  WEFT_TRY(const engine::Offer ours, end.offer(peer));
  std::array<std::byte, engine::Offer::kSize> bytes;
  if (role == Role::kLeads) WEFT_CHECK(stream.send(ours.to_bytes()));
  WEFT_CHECK(stream.receive(bytes));
  const engine::Offer agreed = engine::NetEnd::agree(ours, engine::Offer::from_bytes(bytes));
  if (role == Role::kFollows) WEFT_CHECK(stream.send(agreed.to_bytes()));
  return agreed;
}

// Either end may insist on shared memory; both ends learn it if that is not available.
Result<void> accept_carrier(const Bench& bench, engine::NetEnd::Carrier carrier,
                            os::Stream& stream) {
  const bool refuses = bench.settings.shared_memory == SharedMemory::kMust &&
                       carrier != engine::NetEnd::Carrier::kSharedMemory;
  std::array<std::byte, 1> word{static_cast<std::byte>(refuses ? 1 : 0)};
  WEFT_CHECK(stream.send(word));
  WEFT_CHECK(stream.receive(word));
  if (refuses) {
    return Error{ErrorKind::kInvalid,
                 "no shared memory with the other end; it must run on this host, as the same user, "
                 "without --no-shm or a secret"};
  }
  if (word[0] != std::byte{0}) {
    return Error{ErrorKind::kInvalid,
                 "the other end insists on shared memory (--shm), and there is none between these "
                 "two; leave --shm out there, or --no-shm here"};
  }
  return {};
}

}  // namespace

Result<Buffers> Buffers::make(std::uint64_t size) {
  const std::size_t bytes = std::max(size, kRegionMin);
  Buffers out;
  for (auto* const half : {&out.memory_.source, &out.memory_.landing}) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return Error{ErrorKind::kSystem, fmt::format("no memory for {} bytes", bytes)};
    *half = {static_cast<std::byte*>(memory), bytes};
  }
  return out;
}

void Buffers::touch() const {
  constexpr std::size_t kPage = 4096;
  for (const auto& half : {memory_.source, memory_.landing}) {
    for (std::size_t at = 0; at < half.size(); at += kPage)
      *const_cast<volatile std::byte*>(&half[at]) = std::byte{0};
  }
}

Result<std::unique_ptr<BenchEnd>> open_end(const Bench& bench, const Terms& terms,
                                           const Buffers& buffers) {
  if (bench.arguments.api == BenchApi::kMrc)
    return open_mrc_end(bench, terms.qps, buffers.memory());
  engine::NetOptions options;
  options.world.ev_mode = bench.settings.ev_mode;
  WEFT_CHECK(choose_planes(bench, options.world));
  options.world.evs_per_plane = bench.settings.evs;
  options.world.srv6 = bench.settings.srv6;
  options.mtu = bench.settings.mtu;
  options.world.job_secret = bench.secret;
  options.world.rate_cap = bench.settings.rate;
  options.burst = terms.burst;
  options.qps_max = terms.qps;
  options.world.spin = bench.settings.spin ? *bench.settings.spin : net::usual_spin();
  if (bench.settings.icrc) options.world.icrc = *bench.settings.icrc;
  options.world.shared_memory = bench.settings.shared_memory != SharedMemory::kOff;
  if (bench.arguments.receive_buffer != 0)
    options.world.receive_buffer_bytes = bench.arguments.receive_buffer;
  return open_engine_end(options, buffers.memory());
}

Result<Links> connect_qps(const Bench& bench, const Terms& terms, Role role, os::Stream& stream,
                          const Buffers& buffers, BenchEnd& end) {
  Links out;
  // Sends and receives one hello at a time, so that neither end fills the stream. All hellos are
  // read before any is refused: closing a stream with unread bytes discards the last bytes that
  // were sent.
  for (std::uint32_t i = 0; i < terms.qps; ++i) {
    WEFT_TRY(const BenchEnd::Created ours, end.create_qp());
    WEFT_CHECK(stream.send(ours.hello.to_bytes()));
    std::array<std::byte, engine::Hello::kSize> bytes;
    WEFT_CHECK(stream.receive(bytes));
    WEFT_TRY(engine::Hello peer, engine::Hello::from_bytes(bytes));
    out.qps.push_back({.index = ours.index, .peer = std::move(peer)});
  }
  WEFT_TRY(const engine::Offer agreed, agree_on(role, stream, end, out.qps.front().peer));
  out.mtu = agreed.mtu;
  for (const BenchQp& qp : out.qps) {
    if (qp.peer.region_size < buffers.memory().source.size())
      return Error{ErrorKind::kInvalid, "the other end's region is smaller than ours"};
    WEFT_TRY(out.carrier, end.connect(qp, agreed));
  }
  WEFT_CHECK(accept_carrier(bench, out.carrier, stream));
  return out;
}

Result<Connected> connect(const Bench& bench, const Terms& terms, Role role, os::Stream& stream,
                          const Buffers& buffers) {
  Connected out;
  WEFT_TRY(out.end, open_end(bench, terms, buffers));
  WEFT_TRY(static_cast<Links&>(out), connect_qps(bench, terms, role, stream, buffers, *out.end));
  buffers.touch();
  return out;
}

std::string words_of_carrier(const Bench& bench, const Links& links, const BenchEnd& end) {
  if (links.carrier == engine::NetEnd::Carrier::kSharedMemory) {
    return fmt::format("over shared memory{}",
                       bench.settings.rate ? ", which --rate does not cap; --no-shm for UDP" : "");
  }
  const std::size_t planes = end.plane_count();
  return fmt::format("over UDP, {} plane{}, {} bytes a packet{}", planes, planes == 1 ? "" : "s",
                     links.mtu, bench.secret.empty() ? "" : ", encrypted");
}

Result<Connected> connect_to_itself(const Bench& bench, const Terms& terms,
                                    const Buffers& buffers) {
  Connected out;
  Terms both = terms;
  both.qps = 2 * terms.qps;
  WEFT_TRY(out.end, open_end(bench, both, buffers));
  std::vector<BenchQp> others;
  for (std::uint32_t i = 0; i < terms.qps; ++i) {
    WEFT_TRY(BenchEnd::Created sender, out.end->create_qp());
    WEFT_TRY(BenchEnd::Created receiver, out.end->create_qp());
    out.qps.push_back({.index = sender.index, .peer = std::move(receiver.hello)});
    others.push_back({.index = receiver.index, .peer = std::move(sender.hello)});
  }
  WEFT_TRY(engine::Offer agreed, out.end->offer(out.qps.front().peer));
  agreed.shared_memory = false;
  out.mtu = agreed.mtu;
  for (const auto& half : {out.qps, others}) {
    for (const BenchQp& qp : half) WEFT_CHECK(out.end->connect(qp, agreed));
  }
  buffers.touch();
  return out;
}

nlohmann::json counters_json(BenchEnd& end) {
  nlohmann::json counters;
  for (const CounterRow& row : rows_of(end.counters())) {
    if (row.value != 0) counters[row.name] = row.value;
  }
  return counters;
}

}  // namespace weft::cli
