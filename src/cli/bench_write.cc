#include "cli/bench_write.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "cli/interruption.h"
#include "net/clock.h"

namespace weft::cli {
namespace {

// How long one wait for progress lasts at most.
constexpr Duration kPatience = Duration::ms(100);

Error failed(transport::Status status) {
  const char* why = "failed";
  switch (status) {
    case transport::Status::kRetryExceeded:
      why = "the other end does not answer";
      break;
    case transport::Status::kRemoteAccess:
      why = "the other end refused the address or the key";
      break;
    default:
      break;
  }
  return {ErrorKind::kSystem, fmt::format("a write failed: {}", why)};
}

// Progress, and what completed meanwhile.
Result<std::uint64_t> take(NetEnd& end) {
  std::array<transport::Completion, 4> batch;  // asked for each time round: usually there is none
  std::uint64_t done = 0;
  for (;;) {
    const std::size_t count = end.endpoint().poll_completions(batch);
    for (std::size_t i = 0; i < count; ++i) {
      if (batch[i].status != transport::Status::kOk) return failed(batch[i].status);
    }
    done += count;
    if (count < batch.size()) return done;
  }
}

// How often the other end's words are looked for during a measurement.
constexpr Duration kLookEvery = Duration::ms(50);

}  // namespace

Result<void> tell(Stream& stream, const Round& round) {
  std::array<std::byte, 16> bytes;
  base::store64(Bytes(bytes), 0, round.size);
  base::store64(Bytes(bytes), 8, round.iterations);
  return stream.send(bytes);
}

Result<Round> hear(Stream& stream) {
  std::array<std::byte, 16> bytes;
  WEFT_CHECK(stream.receive(bytes));
  return Round{.size = base::load64(ConstBytes(bytes), 0),
               .iterations = base::load64(ConstBytes(bytes), 8)};
}

bool EarlyEnd::is_here(Time now) {
  if (is_here_ || interrupted()) return is_here_ = true;
  if (now < look_next_) return false;
  look_next_ = now + kLookEvery;
  std::array<std::byte, 16> bytes;
  is_here_ = stream_->peek(bytes) && base::load64(ConstBytes(bytes), 8) == 0;
  return is_here_;
}

Result<Bandwidth> measure_bandwidth(NetEnd& end, std::span<const BenchQp> qps,
                                    std::span<std::byte> source, const BandwidthPlan& plan,
                                    EarlyEnd& early) {
  // Messages walk through both regions, so that large ones do not stay in the cache.
  const std::uint64_t places = std::max<std::uint64_t>(source.size() / std::max(plan.size, 1u), 1);
  std::uint64_t posted = 0, done = 0;
  const Time start = net::clock_now();
  Time progress = start;
  Duration pause;
  const bool timed = plan.time > Duration();
  std::optional<Timeline> timeline;
  if (timed) timeline.emplace(start, plan.time);
  const auto is_over = [&] {
    return timed ? end.world().now() - start >= plan.time : posted >= plan.iterations;
  };
  while ((done < posted || !is_over()) && !early.is_here(end.world().now())) {
    while (!is_over() && posted - done < plan.depth * qps.size()) {
      const BenchQp& qp = qps[posted % qps.size()];
      const std::uint64_t offset = posted / qps.size() % places * plan.size;
      const auto result = end.endpoint().post_write(
          end.world().now(), qp.qpn,
          {.id = posted,
           .local_at = reinterpret_cast<std::uintptr_t>(source.data()) + offset,
           .remote_at = qp.peer.region_at + offset,
           .rkey = qp.peer.rkey,
           .size = plan.size});
      if (!result) break;  // the queue of this QP is full
      ++posted;
    }
    end.world().progress(end.world().now() + kPatience);
    WEFT_TRY(const std::uint64_t more, take(end));
    done += more;
    if (more > 0) {
      if (timeline) timeline->add(end.world().now(), more * plan.size);
      pause = std::max(pause, end.world().now() - progress);
      progress = end.world().now();
    }
    if (end.world().now() - progress > Duration::s(30))
      return Error{ErrorKind::kSystem, "nothing completed for 30 s"};
  }
  const Duration elapsed = net::clock_now() - start;
  return Bandwidth{.seconds = elapsed.to_us() * 1e-6,
                   .bytes = done * plan.size,
                   .messages = done,
                   .longest_pause_us = pause.to_us(),
                   .timeline = std::move(timeline)};
}

Result<std::vector<double>> measure_latency(NetEnd& end, const BenchQp& qp,
                                            std::span<std::byte> source,
                                            std::span<const std::byte> landing,
                                            const LatencyPlan& plan, EarlyEnd& early) {
  // A person may ask for more than there is memory for, and end it in time.
  constexpr std::uint64_t kReserveMax = 1u << 20;
  std::vector<double> halves;
  halves.reserve(std::min(plan.iterations, kReserveMax));
  const auto send = [&](std::uint64_t round) {
    source[plan.size - 1] = static_cast<std::byte>(round + 1);
    return end.endpoint().post_write(end.world().now(), qp.qpn,
                                     {.local_at = reinterpret_cast<std::uintptr_t>(source.data()),
                                      .remote_at = qp.peer.region_at,
                                      .rkey = qp.peer.rkey,
                                      .size = plan.size});
  };
  // The payload lands behind the compiler's back.
  const volatile std::byte* const last = &landing[plan.size - 1];
  for (std::uint64_t round = 0; round < plan.iterations; ++round) {
    const Time start = net::clock_now();
    if (plan.begins) WEFT_CHECK(send(round));
    while (*last != static_cast<std::byte>(round + 1)) {
      end.world().progress(end.world().now() + kPatience);
      WEFT_CHECK(take(end));
      if (early.is_here(end.world().now())) return halves;
      if (end.world().now() - start > Duration::s(30))
        return Error{ErrorKind::kSystem, "nothing came back for 30 s"};
    }
    halves.push_back((net::clock_now() - start).to_us() / 2);
    if (!plan.begins) WEFT_CHECK(send(round));
  }
  // The last answer, and its acknowledgement.
  for (const Time until = net::clock_now() + Duration::ms(5); net::clock_now() < until;)
    end.world().pass();
  return halves;
}

}  // namespace weft::cli
