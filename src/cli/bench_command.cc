#include "cli/bench_command.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/bench_tables.h"
#include "cli/bench_write.h"
#include "cli/interruption.h"
#include "cli/load_scenario.h"
#include "cli/net_settings.h"
#include "settings/secret_file.h"
#include "cli/stream.h"
#include "cli/whole_number.h"
#include "net/clock.h"
#include "scenario/units.h"

namespace weft::cli {
namespace {

struct BenchArguments {
  std::string host;
  bool listen = false, latency = false, bidirectional = false, json = false;
  std::string idle;
  std::vector<std::string> sizes;
  std::string fabric;  // a scenario: the lab that this end is in
  std::uint32_t fabric_host = 0;
  std::uint64_t iterations = 0;
  double seconds = 0;
  std::uint32_t qps = 1, clients = 1;
  std::uint32_t receive_buffer = 0;  // of each plane's socket; 0: as much as there is
  std::uint16_t control_port = 18'515;
  SettingFlags flags;
};

// How one run is done: what was asked for, and what it means here.
struct Bench {
  BenchArguments arguments;
  NetSettings settings;
  std::vector<net::PlaneChoice> planes;
  std::vector<std::byte> secret;  // what is in the file of it
};

// What is measured: the one that leads says it, the other follows.
struct Terms {
  std::uint64_t largest = 0;
  std::uint32_t qps = 1, mtu = 4096, burst = 15;
  bool latency = false, bidirectional = false;
};

constexpr std::uint64_t kSizeMax = 1ull << 30;
constexpr std::uint32_t kQpsMax = 1024;

Result<void> propose(Stream& stream, const Terms& terms) {
  std::array<std::byte, 24> bytes{};
  const Bytes out(bytes);
  base::store64(out, 0, terms.largest);
  base::store32(out, 8, terms.qps);
  base::store32(out, 12, terms.mtu);
  base::store32(out, 16, terms.burst);
  base::store32(out, 20, (terms.latency ? 1u : 0u) | (terms.bidirectional ? 2u : 0u));
  return stream.send(bytes);
}

Result<Terms> accept_terms(Stream& stream) {
  std::array<std::byte, 24> bytes;
  WEFT_CHECK(stream.receive(bytes));
  const ConstBytes in(bytes);
  const std::uint32_t flags = base::load32(in, 20);
  const Terms terms{.largest = base::load64(in, 0),
                    .qps = base::load32(in, 8),
                    .mtu = base::load32(in, 12),
                    .burst = base::load32(in, 16),
                    .latency = (flags & 1) != 0,
                    .bidirectional = (flags & 2) != 0};
  const bool possible = terms.largest >= 1 && terms.largest <= kSizeMax && terms.qps >= 1 &&
                        terms.qps <= kQpsMax && terms.mtu >= 256 && terms.mtu <= 9000 &&
                        terms.burst >= 1 && terms.burst <= 64;
  if (!possible) return Error{ErrorKind::kSystem, "the other end asks for what cannot be"};
  return terms;
}

constexpr std::uint64_t kRegionMin = 64ull << 20;

Error interruption() { return {ErrorKind::kSystem, "interrupted"}; }

// Waits for the other end's word and keeps answering its packets meanwhile.
Result<Round> hear_while_answering(Stream& stream, NetEnd& end) {
  while (!stream.has_something() && !interrupted())
    end.world().step(net::clock_now() + Duration::us(500));
  if (interrupted()) return interruption();
  return hear(stream);
}

// Both ends' memory: what is sent, and where it lands.
class Buffers {
 public:
  static Result<Buffers> make(std::uint64_t size) {
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
  std::span<std::byte> source() const { return halves_[0]; }
  std::span<std::byte> landing() const { return halves_[1]; }

 private:
  std::array<std::span<std::byte>, 2> halves_;  // for the life of the process
};

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

struct Connected {
  std::unique_ptr<NetEnd> end;
  std::vector<BenchQp> qps;
  NetEnd::Carrier carrier = NetEnd::Carrier::kPlanes;
};

Result<std::unique_ptr<NetEnd>> open_end(const Bench& bench, const Terms& terms) {
  NetOptions options;
  WEFT_CHECK(choose_planes(bench, options.world));
  options.world.evs_per_plane = bench.settings.evs;
  options.world.mtu = terms.mtu;
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

// The QPs of one who leads, by `end`.
Result<std::vector<BenchQp>> connect_qps(const Bench& bench, const Terms& terms, Stream& stream,
                                         const Buffers& buffers, NetEnd& end,
                                         NetEnd::Carrier& carrier) {
  std::vector<BenchQp> out;
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
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const transport::Qpn qpn = ours[i];
    const Hello& peer = peers[i];
    if (peer.region_size < buffers.source().size())
      return Error{ErrorKind::kInvalid, "the other end's region is smaller than ours"};
    WEFT_TRY(carrier, end.connect(qpn, peer));
    const bool must = bench.settings.shared_memory == SharedMemory::kMust;
    if (must && carrier != NetEnd::Carrier::kSharedMemory) {
      return Error{ErrorKind::kSystem,
                   "no shared memory with the other end; it must run on this host, as the same "
                   "user, without --no-shm"};
    }
    out.push_back({.qpn = qpn, .peer = peer});
  }
  return out;
}

Result<Connected> connect(const Bench& bench, const Terms& terms, Stream& stream,
                          const Buffers& buffers) {
  Connected out;
  WEFT_TRY(out.end, open_end(bench, terms));
  WEFT_TRY(out.qps, connect_qps(bench, terms, stream, buffers, *out.end, out.carrier));
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

std::uint32_t depth_for(std::uint64_t size) {
  constexpr std::uint64_t kUnderWay = 16ull << 20;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kUnderWay / std::max<std::uint64_t>(size, 1), 2, 128));
}

// The end that follows: answers until the other says that it is over.
Result<void> follow(const Bench& bench, Stream& stream) {
  const BenchArguments& arguments = bench.arguments;
  WEFT_TRY(const Terms terms, accept_terms(stream));
  WEFT_TRY(const Buffers buffers, Buffers::make(terms.largest));
  WEFT_TRY(Connected c, connect(bench, terms, stream, buffers));
  EarlyEnd early(stream);
  for (;;) {
    // Until the other has all of its completions.
    const auto heard = hear_while_answering(stream, *c.end);
    if (interrupted()) {
      WEFT_CHECK(tell(stream, {}));
      return interruption();
    }
    WEFT_TRY(const Round round, heard);
    if (round.iterations == 0) {
      if (arguments.listen && arguments.json)
        fmt::print("{}\n", nlohmann::json{{"counters", counters_json(*c.end)}}.dump());
      return {};
    }
    if (round.size > buffers.landing().size() || round.size == 0)
      return Error{ErrorKind::kInvalid, "the other end asks for a size that was not agreed"};
    buffers.landing()[round.size - 1] = std::byte{0};
    WEFT_CHECK(tell(stream, round));  // ready
    if (terms.latency) {
      WEFT_CHECK(measure_latency(*c.end, c.qps[0], buffers.source(), buffers.landing(),
                                 {.size = static_cast<std::uint32_t>(round.size),
                                  .iterations = round.iterations,
                                  .begins = false},
                                 early));
    } else if (terms.bidirectional) {
      WEFT_CHECK(measure_bandwidth(*c.end, c.qps, buffers.source(),
                                   {.size = static_cast<std::uint32_t>(round.size),
                                    .iterations = round.iterations,
                                    .depth = depth_for(round.size)},
                                   early));
    }
    if (early.is_here(net::clock_now())) continue;             // why is what is heard next
    if (terms.bidirectional) WEFT_CHECK(tell(stream, round));  // done
  }
}

// Several that lead at once, all to this one end: it answers until the last says that it is over.
Result<void> serve(const Bench& bench, std::vector<Stream> streams) {
  std::vector<Terms> terms;
  Terms all{.qps = 0};
  for (Stream& stream : streams) {
    WEFT_TRY(const Terms one, accept_terms(stream));
    if (one.latency || one.bidirectional)
      return Error{ErrorKind::kInvalid, "--clients is for bandwidth in one direction"};
    all = {.largest = std::max(all.largest, one.largest),
           .qps = all.qps + one.qps,
           .mtu = one.mtu,
           .burst = one.burst};
    terms.push_back(one);
  }
  WEFT_TRY(const Buffers buffers, Buffers::make(all.largest));
  WEFT_TRY(const auto end, open_end(bench, all));
  NetEnd::Carrier carrier{};
  for (std::size_t i = 0; i < streams.size(); ++i)
    WEFT_CHECK(connect_qps(bench, terms[i], streams[i], buffers, *end, carrier));
  std::vector<bool> over(streams.size(), false);
  while (std::find(over.begin(), over.end(), false) != over.end()) {
    end->world().step(net::clock_now() + Duration::us(500));
    if (interrupted()) return interruption();
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (over[i] || !streams[i].has_something()) continue;
      WEFT_TRY(const Round round, hear(streams[i]));
      over[i] = round.iterations == 0;
      if (!over[i]) WEFT_CHECK(tell(streams[i], round));  // ready
    }
  }
  if (bench.arguments.json)
    fmt::print("{}\n", nlohmann::json{{"counters", counters_json(*end)}}.dump());
  return {};
}

void say_carrier(const Bench& bench, const Connected& c) {
  if (c.carrier == NetEnd::Carrier::kSharedMemory) {
    fmt::print(stderr, "over shared memory\n");
  } else {
    fmt::print(stderr, "over UDP, {} planes, {} bytes a packet\n",
               c.end->world().addresses().size(), bench.settings.mtu);
  }
}

// Does nothing for a while and gives the share of a core that it took, in per cent.
Result<double> measure_idle(NetEnd& end, Duration how_long) {
  const auto cpu_us = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double before = cpu_us();
  end.world().step(net::clock_now() + how_long);
  return (cpu_us() - before) / how_long.to_us() * 100;
}

// The end that leads: says what is measured, measures, shows.
Result<void> lead(const Bench& bench, Stream& stream, std::span<const std::uint64_t> sizes) {
  const BenchArguments& arguments = bench.arguments;
  const Terms terms{.largest = *std::max_element(sizes.begin(), sizes.end()),
                    .qps = arguments.qps,
                    .mtu = bench.settings.mtu,
                    .burst = bench.settings.burst,
                    .latency = arguments.latency,
                    .bidirectional = arguments.bidirectional};
  WEFT_CHECK(propose(stream, terms));
  WEFT_TRY(const Buffers buffers, Buffers::make(terms.largest));
  WEFT_TRY(Connected c, connect(bench, terms, stream, buffers));
  say_carrier(bench, c);
  const TableStyle style{.json = arguments.json,
                         .latency = arguments.latency,
                         .bidirectional = arguments.bidirectional};
  show_header(style);
  nlohmann::json rows = nlohmann::json::array();
  EarlyEnd early(stream);
  for (const std::uint64_t size : sizes) {
    if (early.is_here(net::clock_now())) break;
    // As many as take some tenths of a second.
    constexpr std::uint64_t kBytes = 1ull << 30;
    std::uint64_t iterations = arguments.iterations;
    if (iterations == 0)
      iterations = arguments.latency ? 2000 : std::clamp<std::uint64_t>(kBytes / size, 4, 50'000);
    buffers.landing()[size - 1] = std::byte{0};
    WEFT_CHECK(tell(stream, {.size = size, .iterations = iterations}));
    const auto ready = hear(stream);
    if (interrupted()) break;
    WEFT_CHECK(ready);
    if (ready->iterations == 0) {
      early.set();
      break;
    }
    const auto bytes = static_cast<std::uint32_t>(size);
    if (arguments.latency) {
      WEFT_TRY(auto us, measure_latency(*c.end, c.qps[0], buffers.source(), buffers.landing(),
                                        {.size = bytes, .iterations = iterations}, early));
      if (!us.empty()) rows.push_back(show_latency(style, size, std::move(us)));
    } else {
      const Time began = net::clock_now();
      WEFT_TRY(Bandwidth b,
               measure_bandwidth(
                   *c.end, c.qps, buffers.source(),
                   {.size = bytes,
                    .iterations = iterations,
                    .depth = depth_for(size),
                    .time = Duration::us(static_cast<std::int64_t>(arguments.seconds * 1e6))},
                   early));
      if (terms.bidirectional && !early.is_here(net::clock_now())) {
        const auto done = hear_while_answering(stream, *c.end);
        if (!interrupted()) WEFT_CHECK(done);
        if (done && done->iterations == 0) early.set();
      }
      b.seconds = (net::clock_now() - began).to_us() * 1e-6;  // until both are done
      rows.push_back(show_bandwidth(style, size, b));
    }
    if (std::fflush(stdout) != 0) return Error{ErrorKind::kSystem, "stdout is closed"};
  }
  nlohmann::json all{{"rows", std::move(rows)}};
  all["cwnd_bytes"] = c.end->endpoint().view(c.qps[0].qpn).cwnd_bytes;
  all["carrier"] = c.carrier == NetEnd::Carrier::kSharedMemory ? "shared memory" : "planes";
  const bool ended_early = early.is_here(net::clock_now());
  if (ended_early) all["interrupted"] = true;
  if (!arguments.idle.empty() && !ended_early) {
    const auto how_long = scenario::duration_from(arguments.idle);
    WEFT_TRY(const double idle, measure_idle(*c.end, *how_long));
    all["idle_cpu_pct"] = idle;
    if (!arguments.json) fmt::print("idle: {:.2f} % of a core\n", idle);
  }
  const auto told = tell(stream, {});
  if (arguments.json) {
    all["counters"] = counters_json(*c.end);
    fmt::print("{}\n", all.dump());
  }
  if (interrupted()) return interruption();
  if (ended_early) return Error{ErrorKind::kSystem, "the other end was interrupted"};
  return told;
}

Result<std::vector<std::uint64_t>> sizes_of(const BenchArguments& arguments) {
  std::vector<std::uint64_t> sizes;
  if (arguments.sizes.empty()) {
    if (arguments.latency) return std::vector<std::uint64_t>{8, 64, 512, 4096, 65536};
    return std::vector<std::uint64_t>{64, 4096, 65536, 1ull << 20, 16ull << 20, 64ull << 20};
  }
  for (const std::string& text : arguments.sizes) {
    const auto size = scenario::size_from(text);
    if (!size || *size == 0 || *size > kSizeMax) {
      return Error{ErrorKind::kInvalid,
                   fmt::format("--size {}: expected 1 to 1GiB, as 4096, 64KiB or 16MB", text)};
    }
    sizes.push_back(*size);
  }
  return sizes;
}

// Both ends here: this process leads, a child follows.
Result<void> run_alone(const Bench& bench, std::span<const std::uint64_t> sizes) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return Error{ErrorKind::kSystem, fmt::format("socketpair: {}", std::strerror(errno))};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return Error{ErrorKind::kSystem, fmt::format("fork: {}", std::strerror(errno))};
  if (child == 0) {
    // It ends with its parent, however that ends; Ctrl-C is for the parent, which then says so.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_DFL);
    close(pair[0]);
    if (getppid() != parent) _exit(1);
    Stream stream(pair[1]);
    const auto done = follow(bench, stream);
    // Not exit(): what the parent opened is the parent's.
    _exit(done ? 0 : 1);
  }
  close(pair[1]);
  Result<void> done;
  {
    Stream stream(pair[0]);
    done = lead(bench, stream, sizes);
  }
  if (!done) kill(child, SIGTERM);
  int ended = 0;
  waitpid(child, &ended, 0);
  if (done && (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0))
    return Error{ErrorKind::kSystem, "the other end failed"};
  return done;
}

Result<void> check(const BenchArguments& arguments) {
  if (arguments.listen && !arguments.host.empty())
    return Error{ErrorKind::kInvalid, "--listen waits for the other end; leave HOST out"};
  if (arguments.seconds > 0 && (arguments.latency || arguments.bidirectional)) {
    return Error{ErrorKind::kInvalid,
                 "--seconds is for bandwidth in one direction; give --iterations instead"};
  }
  if (arguments.latency && arguments.bidirectional)
    return Error{ErrorKind::kInvalid,
                 "--latency goes both ways already; leave --bidirectional out"};
  if (!arguments.idle.empty() && !scenario::duration_from(arguments.idle))
    return Error{ErrorKind::kInvalid,
                 fmt::format("--idle {}: expected a duration, as 1s", arguments.idle)};
  return {};
}

// "planes: 10.0.1.7 (eth0), 10.0.2.7 (eth1)".
std::string words_of_planes(const Bench& bench) {
  if (!bench.arguments.fabric.empty()) {
    return fmt::format("planes: those of host {} of {}", bench.arguments.fabric_host,
                       bench.arguments.fabric);
  }
  return "planes: " + net::text_of(bench.planes);
}

Result<void> run(const BenchArguments& arguments) {
  WEFT_TRY(const auto sizes, sizes_of(arguments));
  WEFT_CHECK(check(arguments));
  Bench bench{.arguments = arguments, .settings = {}, .planes = {}, .secret = {}};
  WEFT_TRY(bench.settings, load_settings(arguments.flags));
  if (!bench.settings.secret_file.empty()) {
    WEFT_TRY(bench.secret, read_secret_file(bench.settings.secret_file));
  }
  if (arguments.fabric.empty()) {
    WEFT_TRY(bench.planes, planes_of(bench.settings));
  }
  catch_interruption();
  if (arguments.listen) {
    WEFT_TRY(std::vector<Stream> streams,
             accept_some(arguments.control_port, arguments.clients, "; " + words_of_planes(bench)));
    return arguments.clients > 1 ? serve(bench, std::move(streams)) : follow(bench, streams[0]);
  }
  fmt::print(stderr, "{}\n", words_of_planes(bench));
  if (arguments.host.empty()) return run_alone(bench, sizes);
  WEFT_TRY(Stream stream, dial({.host = arguments.host, .port = arguments.control_port}));
  return lead(bench, stream, sizes);
}

}  // namespace

void add_bench_command(CLI::App& app, int& status) {
  auto* const bench = app.add_subcommand("bench", "Measures the real network");
  bench->require_subcommand(1);
  auto* const write =
      bench->add_subcommand("write", "RDMA writes: bandwidth, message rate, latency");
  const auto arguments = std::make_shared<BenchArguments>();
  write->add_option("HOST", arguments->host,
                    "where `weft bench write --listen` runs; none: both ends here");
  write->add_flag("--listen", arguments->listen, "be the other end, once");
  write->add_option("--clients", arguments->clients, "with --listen: of so many at once")
      ->check(CLI::Range(1, 64));
  write->add_option("--receive-buffer", arguments->receive_buffer,
                    "bytes asked for where packets wait, of each plane");
  write->add_flag("--latency", arguments->latency, "ping-pong instead of bandwidth");
  write->add_flag("--bidirectional", arguments->bidirectional, "both ends write");
  write->add_option("--size", arguments->sizes,
                    "bytes of a message, as 4096, 64KiB, 1MB; several may be given");
  write->add_option("--iterations", arguments->iterations, "messages of each size")
      ->check(whole_number(1));
  write
      ->add_option("--seconds", arguments->seconds,
                   "for so long instead; --json then tells what completed in each millisecond")
      ->check(CLI::Range(0.01, 3600.0));
  write
      ->add_option("--fabric", arguments->fabric,
                   "the scenario whose lab this end is in: planes and paths follow from it")
      ->envname("WEFT_FABRIC");
  write->add_option("--fabric-host", arguments->fabric_host, "which host of it, from 0")
      ->envname("WEFT_FABRIC_HOST");
  write->add_option("--qps", arguments->qps, "QPs that share the messages")
      ->check(CLI::Range(1, 1024));
  write->add_option("--port", arguments->control_port,
                    "TCP port on which the ends find each other");
  write->add_option("--idle", arguments->idle,
                    "afterwards do nothing for that long, as 1s, and say what CPU it took");
  write->add_flag("--json", arguments->json, "one JSON object on stdout");
  add_setting_flags(*write, arguments->flags);
  write->callback([arguments, &status] {
    const auto done = run(*arguments);
    if (done) return;
    fmt::print(stderr, "weft: {}\n", done.error().message);
    status = interrupted() ? kInterruptedStatus : done.error().kind == ErrorKind::kInvalid ? 2 : 1;
  });
}

}  // namespace weft::cli
