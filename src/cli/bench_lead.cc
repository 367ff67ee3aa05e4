#include "cli/bench_lead.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/bench_connect.h"
#include "cli/bench_follow.h"
#include "cli/bench_tables.h"
#include "config/units.h"
#include "os/clock.h"
#include "os/interfaces.h"
#include "os/interruption.h"
#include "os/say.h"

namespace weft::cli {
namespace {

// Posts nothing for a while. Returns the CPU time that this end uses meanwhile, in per cent of a
// core.
double measure_idle(BenchEnd& end, Duration how_long) {
  const auto cpu_us = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double before = cpu_us();
  const Time began = os::clock_now();
  // Waits in short pieces to check for Ctrl-C, because a signal does not end the world's sleep.
  for (Time now = began; now < began + how_long && !os::interrupted(); now = os::clock_now())
    end.answer(std::min(now + Duration::ms(100), began + how_long));
  return (cpu_us() - before) / (os::clock_now() - began).to_us() * 100;
}

// Tells the user about planes that carry nothing: each reduces the rate, and no other message says
// so.
void say_planes_left_out(const Connected& c) {
  const std::uint8_t left_out = c.end->rdma().health(c.link.group.id).planes_left_out;
  for (std::size_t p = 0; p < c.end->plane_count(); ++p) {
    if ((left_out >> p & 1) == 0) continue;
    os::say(
        "plane {} carried nothing at last: what is sent to {} on it is not answered; its link may "
        "be down, or a filter drops UDP\n",
        p, os::text_of(c.link.peer_ports[p].ip()));
  }
}

// The number of iterations that the user set, or enough for some tenths of a second.
std::uint64_t iterations_of(const BenchArguments& arguments, std::uint64_t size) {
  constexpr std::uint64_t kBytes = 1ull << 30;
  if (arguments.iterations != 0) return arguments.iterations;
  return arguments.latency ? 2000 : std::clamp<std::uint64_t>(kBytes / size, 4, 50'000);
}

// A run of the leading end: all sizes in turn, then the final report. The constructor's arguments
// outlive it.
class Lead {
 public:
  Lead(const Bench& bench, os::Stream* stream, const Buffers& buffers, Connected& connected)
      : bench_(bench),
        stream_(stream),
        buffers_(buffers),
        connected_(connected),
        watch_{.early = EarlyEnd(stream), .silence = Silence(*connected.end, connected.link)} {
    show_header(style_);
  }

  // Measures one size and prints the result. Returns false if the run has ended early.
  Result<bool> measure(std::uint64_t size) {
    if (watch_.early.must_end(os::clock_now())) return false;
    const std::uint64_t iterations = iterations_of(bench_.arguments, size);
    buffers_.memory().landing[size - 1] = std::byte{0};
    WEFT_TRY(const bool ready, make_ready({.size = size, .iterations = iterations}));
    if (!ready) return false;
    const auto measured = bench_.arguments.latency ? measure_latency(size, iterations)
                                                   : measure_bandwidth(size, iterations);
    WEFT_CHECK(measured);
    if (std::fflush(stdout) != 0)
      return Error{ErrorKind::kSystem, fmt::format("stdout: {}", std::strerror(errno))};
    return true;
  }

  // Prints the results so far, then returns the error.
  Error give_up(const Error& why) {
    if (style_.json && !rows_.empty()) {
      const nlohmann::json all{{"rows", std::move(rows_)}, {"error", why.message}};
      fmt::print("{}\n", all.dump());
    }
    return why;
  }

  Result<void> finish() {
    BenchEnd& end = *connected_.end;
    say_planes_left_out(connected_);
    nlohmann::json all{{"rows", std::move(rows_)}};
    const auto window = end.rdma().health(connected_.link.group.id).window_bytes;
    if (window != 0) all["cwnd_bytes"] = window;
    all["carrier"] = connected_.link.over_shared_memory ? "shared memory" : "planes";
    const bool ended_early = watch_.early.must_end(os::clock_now());
    if (ended_early) all["interrupted"] = true;
    if (!bench_.arguments.idle.empty() && !ended_early) {
      const double idle = measure_idle(end, *config::duration_from(bench_.arguments.idle));
      all["idle_cpu_pct"] = idle;
      if (!style_.json) fmt::print("idle: {:.2f} % of a core\n", idle);
    }
    const Round last = os::interrupted() ? kInterruption : Round();
    const auto told = stream_ != nullptr ? send_round(*stream_, last) : Result<void>();
    if (style_.json) {
      all["counters"] = counters_json(end);
      fmt::print("{}\n", all.dump());
    }
    if (os::interrupted()) return os::interruption();
    if (ended_early) return other_interrupted();
    return told;
  }

 private:
  // Sends `round` to the other end and waits for its reply. Returns false if either end has ended
  // the run.
  Result<bool> make_ready(const Round& round) {
    if (stream_ == nullptr) return true;
    WEFT_CHECK(send_round(*stream_, round));
    const auto ready = receive_round(*stream_);
    if (os::interrupted()) return false;
    WEFT_CHECK(ready);
    if (ready->iterations == 0) watch_.early.set();
    return ready->iterations != 0;
  }

  Result<void> measure_latency(std::uint64_t size, std::uint64_t iterations) {
    auto us = cli::measure_latency(*connected_.end, connected_.link, buffers_.memory(),
                                   {.size = static_cast<std::uint32_t>(size),
                                    .iterations = iterations,
                                    .completions = bench_.arguments.completions},
                                   watch_);
    if (!us) return watch_.silence.explain(us.error());
    if (!us->empty()) rows_.push_back(show_latency(style_, size, std::move(*us)));
    return {};
  }

  Result<void> measure_bandwidth(std::uint64_t size, std::uint64_t iterations) {
    const Time began = os::clock_now();
    const double seconds = bench_.arguments.seconds;
    auto measured =
        cli::measure_bandwidth(*connected_.end, connected_.link, buffers_.memory(),
                               {.size = static_cast<std::uint32_t>(size),
                                .iterations = iterations,
                                .depth = depth_for(size),
                                .time = Duration::us(static_cast<std::int64_t>(seconds * 1e6))},
                               watch_);
    if (!measured) return watch_.silence.explain(measured.error());
    if (style_.bidirectional && !watch_.early.must_end(os::clock_now())) {
      const auto done = receive_round_while_answering(*stream_, *connected_.end);
      if (!os::interrupted()) WEFT_CHECK(done);
      if (done && done->iterations == 0) watch_.early.set();
    }
    // includes the time until both ends are done
    measured->seconds = (os::clock_now() - began).to_us() * 1e-6;
    rows_.push_back(show_bandwidth(style_, size, *measured));
    return {};
  }

  const Bench& bench_;
  os::Stream* stream_;  // null: both ends are in this process
  const Buffers& buffers_;
  Connected& connected_;
  TableStyle style_{.json = bench_.arguments.json,
                    .latency = bench_.arguments.latency,
                    .bidirectional = bench_.arguments.bidirectional};
  Watch watch_;
  nlohmann::json rows_ = nlohmann::json::array();
};

}  // namespace

Result<void> lead(const Bench& bench, os::Stream* stream, std::span<const std::uint64_t> sizes) {
  const Terms terms{.largest = *std::max_element(sizes.begin(), sizes.end()),
                    .qps = bench.arguments.qps,
                    .burst = bench.settings.burst,
                    .latency = bench.arguments.latency,
                    .bidirectional = bench.arguments.bidirectional};
  if (stream != nullptr) WEFT_CHECK(propose(*stream, terms));
  WEFT_TRY(const Buffers buffers, Buffers::make(terms.largest));
  WEFT_TRY(Connected connected, stream != nullptr
                                    ? connect(bench, terms, Role::kLeads, *stream, buffers)
                                    : connect_to_itself(bench, terms, buffers));
  os::say("{}\n", carrier_text(bench, connected.link, *connected.end));
  Lead run(bench, stream, buffers, connected);
  for (const std::uint64_t size : sizes) {
    const auto measured = run.measure(size);
    if (!measured) return run.give_up(measured.error());
    if (!*measured) break;
  }
  return run.finish();
}

}  // namespace weft::cli
