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
#include "cli/interruption.h"
#include "cli/say.h"
#include "net/clock.h"
#include "scenario/units.h"

namespace weft::cli {
namespace {

void say_carrier(const Bench& bench, const Connected& c) {
  if (c.carrier == NetEnd::Carrier::kSharedMemory) {
    say("over shared memory{}\n",
        bench.settings.rate ? ", which --rate does not cap; --no-shm for UDP" : "");
  } else {
    const std::size_t planes = c.end->plane_count();
    say("over UDP, {} plane{}, {} bytes a packet{}\n", planes, planes == 1 ? "" : "s", c.mtu,
        bench.secret.empty() ? "" : ", encrypted");
  }
}

// Does nothing for a while and gives the share of a core that it took, in per cent.
double measure_idle(BenchEnd& end, Duration how_long) {
  const auto cpu_us = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double before = cpu_us();
  const Time began = net::clock_now();
  // Ctrl-C is looked for now and then: the world sleeps on over it.
  for (Time now = began; now < began + how_long && !interrupted(); now = net::clock_now())
    end.answer(std::min(now + Duration::ms(100), began + how_long));
  return (cpu_us() - before) / (net::clock_now() - began).to_us() * 100;
}

}  // namespace

Result<void> lead(const Bench& bench, Stream* stream, std::span<const std::uint64_t> sizes) {
  const BenchArguments& arguments = bench.arguments;
  const Terms terms{.largest = *std::max_element(sizes.begin(), sizes.end()),
                    .qps = arguments.qps,
                    .burst = bench.settings.burst,
                    .latency = arguments.latency,
                    .bidirectional = arguments.bidirectional};
  if (stream != nullptr) WEFT_CHECK(propose(*stream, terms));
  WEFT_TRY(const Buffers buffers, Buffers::make(terms.largest));
  WEFT_TRY(Connected c, stream != nullptr ? connect(bench, terms, Role::kLeads, *stream, buffers)
                                          : connect_to_itself(bench, terms, buffers));
  say_carrier(bench, c);
  const TableStyle style{.json = arguments.json,
                         .latency = arguments.latency,
                         .bidirectional = arguments.bidirectional};
  show_header(style);
  nlohmann::json rows = nlohmann::json::array();
  Watch watch{.early = EarlyEnd(stream), .silence = Silence(*c.end, c.qps[0], c.carrier)};
  EarlyEnd& early = watch.early;
  for (const std::uint64_t size : sizes) {
    if (early.is_here(net::clock_now())) break;
    // As many as take some tenths of a second.
    constexpr std::uint64_t kBytes = 1ull << 30;
    std::uint64_t iterations = arguments.iterations;
    if (iterations == 0)
      iterations = arguments.latency ? 2000 : std::clamp<std::uint64_t>(kBytes / size, 4, 50'000);
    buffers.memory().landing[size - 1] = std::byte{0};
    if (stream != nullptr) {
      WEFT_CHECK(tell(*stream, {.size = size, .iterations = iterations}));
      const auto ready = hear(*stream);
      if (interrupted()) break;
      WEFT_CHECK(ready);
      if (ready->iterations == 0) {
        early.set();
        break;
      }
    }
    const auto bytes = static_cast<std::uint32_t>(size);
    if (arguments.latency) {
      auto us = measure_latency(
          *c.end, c.qps[0], buffers.memory(),
          {.size = bytes, .iterations = iterations, .completions = arguments.completions}, watch);
      if (!us) return watch.silence.explain(us.error());
      if (!us->empty()) rows.push_back(show_latency(style, size, std::move(*us)));
    } else {
      const Time began = net::clock_now();
      auto measured = measure_bandwidth(
          *c.end, c.qps, buffers.memory(),
          {.size = bytes,
           .iterations = iterations,
           .depth = depth_for(size),
           .time = Duration::us(static_cast<std::int64_t>(arguments.seconds * 1e6))},
          watch);
      if (!measured) return watch.silence.explain(measured.error());
      Bandwidth& b = *measured;
      if (terms.bidirectional && !early.is_here(net::clock_now())) {
        const auto done = hear_while_answering(*stream, *c.end);
        if (!interrupted()) WEFT_CHECK(done);
        if (done && done->iterations == 0) early.set();
      }
      b.seconds = (net::clock_now() - began).to_us() * 1e-6;  // until both are done
      rows.push_back(show_bandwidth(style, size, b));
    }
    if (std::fflush(stdout) != 0)
      return Error{ErrorKind::kSystem, fmt::format("stdout: {}", std::strerror(errno))};
  }
  nlohmann::json all{{"rows", std::move(rows)}};
  if (const auto window = c.end->window_bytes(c.qps[0])) all["cwnd_bytes"] = *window;
  all["carrier"] = c.carrier == NetEnd::Carrier::kSharedMemory ? "shared memory" : "planes";
  const bool ended_early = early.is_here(net::clock_now());
  if (ended_early) all["interrupted"] = true;
  if (!arguments.idle.empty() && !ended_early) {
    const auto how_long = scenario::duration_from(arguments.idle);
    const double idle = measure_idle(*c.end, *how_long);
    all["idle_cpu_pct"] = idle;
    if (!arguments.json) fmt::print("idle: {:.2f} % of a core\n", idle);
  }
  const Round last = interrupted() ? kInterruption : Round();
  const auto told = stream != nullptr ? tell(*stream, last) : Result<void>();
  if (arguments.json) {
    all["counters"] = counters_json(*c.end);
    fmt::print("{}\n", all.dump());
  }
  if (interrupted()) return interruption();
  if (ended_early) return other_interrupted();
  return told;
}

}  // namespace weft::cli
