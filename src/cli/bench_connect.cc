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
#include "os/waiter.h"

namespace weft::cli {
namespace {

constexpr std::uint64_t kRegionMin = 64ull << 20;

// Sets the planes that the user selected. In a lab, packets follow the uSIDs of the scenario's
// fabric.
Result<void> choose_planes(const Bench& bench, net::UdpWorldConfig& out) {
  out.planes.clear();
  for (const os::PlaneChoice& plane : bench.planes) out.planes.push_back(plane.address);
  if (!bench.fabric) return {};
  WEFT_TRY(const fabric::Topology topology, fabric::Topology::make(bench.fabric->topology));
  out.ev_carrier = fabric::EvCarrier::kSrv6;
  out.place = net::FabricPlace{topology, bench.arguments.fabric_host};
  return {};
}

// Sends `ours` and receives as many bytes. The leading end sends first and the other receives
// first: if both sent first, both could block on a full stream.
Result<std::vector<std::byte>> exchange(os::Stream& stream, Role role, ConstBytes ours) {
  std::vector<std::byte> theirs(ours.size());
  if (role == Role::kLeads) WEFT_CHECK(stream.send(ours));
  WEFT_CHECK(stream.receive(theirs));
  if (role == Role::kFollows) WEFT_CHECK(stream.send(ours));
  return theirs;
}

// Either end may require shared memory. If there is none, both ends fail with an error that says
// so.
Result<void> accept_carrier(const Bench& bench, const BenchLink& link, os::Stream& stream) {
  const bool refuses =
      bench.settings.shared_memory == SharedMemory::kMust && !link.over_shared_memory;
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
  engine::NetRdmaOptions options;
  options.world.ev_carrier = bench.settings.ev_carrier;
  WEFT_CHECK(choose_planes(bench, options.world));
  options.world.evs_per_plane = bench.settings.evs;
  options.world.srv6 = bench.settings.srv6;
  options.mtu = bench.settings.mtu;
  options.world.job_secret = bench.secret;
  options.world.rate_cap = bench.settings.rate;
  options.burst = terms.burst;
  options.qps_max = terms.qps;
  options.sends_max = terms.qps * kBenchDepthMax;
  options.receives_max = 0;
  options.world.spin = bench.settings.spin ? *bench.settings.spin : os::usual_spin();
  if (bench.settings.icrc) options.world.icrc = *bench.settings.icrc;
  options.world.shared_memory =
      bench.settings.shared_memory != SharedMemory::kOff && !bench.arguments.to_itself;
  if (bench.arguments.receive_buffer != 0)
    options.world.receive_buffer_bytes = bench.arguments.receive_buffer;
  return open_engine_end(options, buffers.memory());
}

Result<BenchLink> connect_group(const Bench& bench, const Terms& terms, Role role,
                                os::Stream& stream, const Buffers& buffers, BenchEnd& end) {
  WEFT_TRY(const BenchEnd::Created ours, end.create_group(terms.qps));
  // Receive everything before refusing anything: closing a stream with unread bytes discards the
  // bytes that this end sent last.
  WEFT_TRY(const auto group, exchange(stream, role, ours.description));
  WEFT_TRY(const auto landing, exchange(stream, role, end.describe_landing()));
  WEFT_TRY(const std::uint32_t there, end.payload_that_arrives(group));
  // Only one end may know that a path takes less.
  std::array<std::byte, 4> word;
  base::store32(Bytes(word), 0, there);
  WEFT_TRY(const auto here, exchange(stream, role, word));
  WEFT_TRY(BenchLink link,
           end.connect(ours.group, {.group = group,
                                    .landing = landing,
                                    .payload_max = std::min(there, base::load32(here, 0))}));
  if (link.landing.size < buffers.memory().source.size())
    return Error{ErrorKind::kInvalid, "the other end's region is smaller than ours"};
  WEFT_CHECK(accept_carrier(bench, link, stream));
  return link;
}

Result<Connected> connect(const Bench& bench, const Terms& terms, Role role, os::Stream& stream,
                          const Buffers& buffers) {
  Connected out;
  WEFT_TRY(out.end, open_end(bench, terms, buffers));
  WEFT_TRY(out.link, connect_group(bench, terms, role, stream, buffers, *out.end));
  buffers.touch();
  return out;
}

std::string carrier_text(const Bench& bench, const BenchLink& link, const BenchEnd& end) {
  if (link.over_shared_memory) {
    return fmt::format("over shared memory{}",
                       bench.settings.rate ? ", which --rate does not cap; --no-shm for UDP" : "");
  }
  const std::size_t planes = end.plane_count();
  return fmt::format("over UDP, {} plane{}, {} bytes a packet{}", planes, planes == 1 ? "" : "s",
                     link.mtu, bench.secret.empty() ? "" : ", encrypted");
}

Result<Connected> connect_to_itself(const Bench& bench, const Terms& terms,
                                    const Buffers& buffers) {
  Connected out;
  Terms both = terms;
  both.qps = 2 * terms.qps;
  WEFT_TRY(out.end, open_end(bench, both, buffers));
  WEFT_TRY(const BenchEnd::Created sender, out.end->create_group(terms.qps));
  WEFT_TRY(const BenchEnd::Created receiver, out.end->create_group(terms.qps));
  const auto landing = out.end->describe_landing();
  WEFT_TRY(const std::uint32_t payload, out.end->payload_that_arrives(receiver.description));
  WEFT_TRY(out.link, out.end->connect(sender.group, {.group = receiver.description,
                                                     .landing = landing,
                                                     .payload_max = payload}));
  WEFT_CHECK(out.end->connect(
      receiver.group, {.group = sender.description, .landing = landing, .payload_max = payload}));
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
