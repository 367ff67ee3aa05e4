#include "cli/bench_write.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "os/clock.h"
#include "os/interruption.h"

namespace weft::cli {
namespace {

// The longest wait in one progress().
constexpr Duration kPatience = Duration::ms(100);

// The interval between checks of the stream during a measurement.
constexpr Duration kLookEvery = Duration::ms(50);

}  // namespace

Result<void> send_round(os::Stream& stream, const Round& round) {
  std::array<std::byte, 16> bytes;
  base::store64(Bytes(bytes), 0, round.size);
  base::store64(Bytes(bytes), 8, round.iterations);
  return stream.send(bytes);
}

Result<Round> receive_round(os::Stream& stream) {
  std::array<std::byte, 16> bytes;
  WEFT_CHECK(stream.receive(bytes));
  return Round{.size = base::load64(ConstBytes(bytes), 0),
               .iterations = base::load64(ConstBytes(bytes), 8)};
}

Error other_interrupted() { return {ErrorKind::kSystem, "the other end was interrupted"}; }

bool EarlyEnd::must_end(Time now) {
  if (must_end_ || os::interrupted()) return must_end_ = true;
  if (now < look_next_) return false;
  look_next_ = now + kLookEvery;
  std::array<std::byte, 16> bytes;
  must_end_ = stream_ != nullptr && stream_->peek(bytes) && base::load64(ConstBytes(bytes), 8) == 0;
  return must_end_;
}

namespace {

// Returns how many writes have completed since the last call. Errors: kSystem with the status of
// the first write that failed.
Result<std::uint64_t> take_completions(rdma::Rdma& rdma) {
  // A small array, because it is used in each iteration and usually stays empty.
  std::array<rdma::Completion, 4> batch;
  std::uint64_t done = 0;
  for (;;) {
    const std::size_t count = rdma.poll(batch);
    for (const rdma::Completion& one : std::span(batch).first(count)) {
      if (one.status == rdma::Status::kOk) continue;
      return Error{
          ErrorKind::kSystem,
          fmt::format("a write failed: {}", one.status == rdma::Status::kRetryExceeded
                                                ? "the other end does not answer"
                                            : one.status == rdma::Status::kRemoteAccess
                                                ? "the other end refused the address or the key"
                                                : "failed")};
    }
    done += count;
    if (count < batch.size()) return done;
  }
}

// Returns false if the QP's queue is full.
bool post(BenchEnd& end, const BenchLink& link, rdma::QpIndex qp, const rdma::Write& write) {
  rdma::Write one = write;
  one.from = end.source();
  one.to = &link.landing;
  return end.rdma().post_writes(end.now(), qp, {&one, 1}) == 1;
}

}  // namespace

Result<Bandwidth> measure_bandwidth(BenchEnd& end, const BenchLink& link, const BenchMemory& memory,
                                    const BandwidthPlan& plan, Watch& watch) {
  // Successive messages are at different places of both regions, so that large messages do not stay
  // in the cache.
  const std::uint64_t places =
      std::max<std::uint64_t>(memory.source.size() / std::max(plan.size, 1u), 1);
  std::uint64_t posted = 0, done = 0;
  const Time start = os::clock_now();
  Time progress = start;
  Duration pause;
  const bool timed = plan.time > Duration();
  std::optional<base::Timeline> timeline;
  if (timed) timeline.emplace(start, plan.time);
  const auto is_over = [&] {
    return timed ? end.now() - start >= plan.time : posted >= plan.iterations;
  };
  while ((done < posted || !is_over()) && !watch.early.must_end(end.now())) {
    while (!is_over() && posted - done < plan.depth * link.group.qps) {
      const auto qp = static_cast<rdma::QpIndex>(link.group.first_qp + posted % link.group.qps);
      const std::uint64_t offset = posted / link.group.qps % places * plan.size;
      if (!post(end, link, qp, {.from_offset = offset, .to_offset = offset, .size = plan.size}))
        break;
      ++posted;
    }
    end.progress(end.now() + kPatience);
    watch.silence.check_once(end.now());
    WEFT_TRY(const std::uint64_t more, take_completions(end.rdma()));
    done += more;
    if (more > 0) {
      if (timeline) timeline->add(end.now(), more * plan.size);
      pause = std::max(pause, end.now() - progress);
      progress = end.now();
    }
    if (end.now() - progress > Duration::s(30))
      return Error{ErrorKind::kSystem, "nothing completed for 30 s"};
  }
  const Duration elapsed = os::clock_now() - start;
  return Bandwidth{.seconds = elapsed.to_us() * 1e-6,
                   .bytes = done * plan.size,
                   .messages = done,
                   .longest_pause_us = pause.to_us(),
                   .timeline = std::move(timeline)};
}

Result<std::vector<double>> measure_latency(BenchEnd& end, const BenchLink& link,
                                            const BenchMemory& memory, const LatencyPlan& plan,
                                            Watch& watch) {
  // Bounds the memory reserved at once: the user may ask for more iterations than fit in memory,
  // and end the run early.
  constexpr std::uint64_t kReserveMax = 1u << 20;
  constexpr std::uint64_t kRestEvery = 16;
  std::vector<double> halves;
  halves.reserve(std::min(plan.iterations, kReserveMax));
  const auto send = [&](std::uint64_t round) {
    memory.source[plan.size - 1] = static_cast<std::byte>(round + 1);
    return post(end, link, link.group.first_qp, {.size = plan.size});
  };
  // volatile: the device writes this byte, which the compiler cannot know.
  const volatile std::byte* const last = &memory.landing[plan.size - 1];
  Time start = os::clock_now();
  std::uint64_t completed = 0;
  const auto has_arrived = [&](std::uint64_t round) {
    return *last == static_cast<std::byte>(round + 1) && (!plan.completions || completed > round);
  };
  for (std::uint64_t round = 0; round < plan.iterations; ++round) {
    if (plan.begins) WEFT_ASSERT(send(round));
    while (!has_arrived(round)) {
      end.progress(end.now() + kPatience);
      // Check memory first, like a program that waits for a message. The other checks are made only
      // while nothing has arrived, and in every kRestEvery-th round.
      if (round % kRestEvery != 0 && has_arrived(round)) break;
      WEFT_TRY(const std::uint64_t taken, take_completions(end.rdma()));
      completed += taken;
      if (watch.early.must_end(end.now())) return halves;
      watch.silence.check_once(end.now());
      if (end.now() - start > Duration::s(30))
        return Error{ErrorKind::kSystem, "nothing came back for 30 s"};
    }
    // Only the measuring end reads the clock in each round.
    const Time over = plan.begins ? os::clock_now() : end.now();
    if (!plan.begins) WEFT_ASSERT(send(round));
    if (plan.begins) halves.push_back((over - start).to_us() / 2);
    start = over;
  }
  // The last message and its acknowledgement must still be sent.
  end.answer(os::clock_now() + Duration::ms(5));
  return halves;
}

}  // namespace weft::cli
