#include "cli/bench_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "cli/argument_checks.h"
#include "cli/bench_connect.h"
#include "cli/bench_follow.h"
#include "cli/bench_lead.h"
#include "cli/bench_mrc.h"
#include "cli/bench_terms.h"
#include "config/units.h"
#include "os/interruption.h"
#include "os/say.h"
#include "os/stream.h"
#include "run/load_scenario.h"

namespace weft::cli {
namespace {

Result<std::vector<std::uint64_t>> sizes_of(const BenchArguments& arguments) {
  std::vector<std::uint64_t> sizes;
  if (arguments.sizes.empty()) {
    if (arguments.latency) return std::vector<std::uint64_t>{8, 64, 512, 4096, 65536};
    return std::vector<std::uint64_t>{64, 4096, 65536, 1ull << 20, 16ull << 20, 64ull << 20};
  }
  for (const std::string& text : arguments.sizes) {
    const auto size = config::size_from(text);
    if (!size || *size == 0 || *size > kSizeMax) {
      return Error{ErrorKind::kInvalid,
                   fmt::format("--size {}: expected 1 to 1GiB, as 4096, 64KiB or 16MB", text)};
    }
    sizes.push_back(*size);
  }
  return sizes;
}

// Reads a short text that another process wrote with one call. Closes `fd`.
std::string read_all(int fd) {
  std::array<char, 512> buffer;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  close(fd);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

// Refuses `--size 4KiB 64KiB`: CLI11 would take the second size for the name of a host.
CLI::Validator no_size() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        if (!config::size_from(text)) return {};
        return fmt::format(
            "{} is a size, and a host was expected; sizes are one word with commas, as "
            "--size 4KiB,64KiB",
            text);
      },
      "");
}

Result<void> follow_parent(const Bench& bench, os::Stream stream) {
  WEFT_TRY(const Terms terms, accept_terms(stream));
  Client parent{.stream = std::move(stream), .terms = terms};
  return follow(bench, parent);
}

// Both ends on this host: this process leads, and a child process follows.
Result<void> run_alone(const Bench& bench, std::span<const std::uint64_t> sizes) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return Error{ErrorKind::kSystem, fmt::format("socketpair: {}", std::strerror(errno))};
  int words[2];  // a pipe for the child's error message
  if (pipe2(words, O_CLOEXEC) != 0)
    return Error{ErrorKind::kSystem, fmt::format("pipe: {}", std::strerror(errno))};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return Error{ErrorKind::kSystem, fmt::format("fork: {}", std::strerror(errno))};
  if (child == 0) {
    // The child must not outlive its parent. Only the parent handles Ctrl-C and hangup; it then
    // informs the child.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGTERM, SIG_DFL);
    close(pair[0]);
    if (getppid() != parent) _exit(1);
    const auto done = follow_parent(bench, os::Stream(pair[1]));
    if (!done) {
      const std::string& why = done.error().message;
      [[maybe_unused]] const auto told = write(words[1], why.data(), why.size());
    }
    // Use _exit(): the objects that the parent opened must not be destroyed in the child.
    _exit(done ? 0 : 1);
  }
  close(pair[1]);
  close(words[1]);
  Result<void> done;
  bool noticed_gone = false;
  {
    os::Stream stream(pair[0]);
    done = lead(bench, &stream, sizes);
    noticed_gone = !done && done.error().message == stream.gone().message;
  }
  if (!done) kill(child, SIGTERM);
  int ended = 0;
  waitpid(child, &ended, 0);
  const std::string why = read_all(words[0]);
  // If the child failed, its error message is more precise than the resulting error of this end.
  const bool failed = !WIFEXITED(ended) || WEXITSTATUS(ended) != 0;
  if (failed && (done || noticed_gone)) {
    return Error{ErrorKind::kSystem,
                 "the other end: " + (why.empty() ? std::string("it was killed") : why)};
  }
  return done;
}

// A flag that only the dialling end may use, if the user gave one to the listening end; otherwise
// empty.
std::string_view dialling_only_flag(const BenchArguments& arguments) {
  if (!arguments.sizes.empty()) return "--size";
  if (arguments.latency) return "--latency";
  if (arguments.bidirectional) return "--bidirectional";
  if (arguments.iterations != 0) return "--iterations";
  if (arguments.seconds > 0) return "--seconds";
  if (arguments.qps != 1) return "--qps";
  if (!arguments.idle.empty()) return "--idle";
  return {};
}

Result<void> check(const BenchArguments& arguments) {
  if (arguments.listen && !arguments.host.empty())
    return Error{ErrorKind::kInvalid, "--listen waits for the other end; leave HOST out"};
  if (const auto word = dialling_only_flag(arguments); arguments.listen && !word.empty()) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} is for the end that calls, which says what is measured; leave it "
                             "out beside --listen",
                             word)};
  }
  if (arguments.seconds > 0 && (arguments.latency || arguments.bidirectional)) {
    return Error{ErrorKind::kInvalid,
                 "--seconds is for bandwidth in one direction; give --iterations instead"};
  }
  if (arguments.latency && arguments.bidirectional)
    return Error{ErrorKind::kInvalid,
                 "--latency goes both ways already; leave --bidirectional out"};
  if (arguments.to_itself && (arguments.listen || !arguments.host.empty() || arguments.latency ||
                              arguments.bidirectional || arguments.clients > 1))
    return Error{ErrorKind::kInvalid, "--self is for bandwidth, with no other end; leave it out"};
  if (arguments.fabric_host != 0 && arguments.fabric.empty())
    return Error{ErrorKind::kInvalid,
                 "--fabric-host is a host of the lab's scenario; add --fabric FILE"};
  if (arguments.clients > 1 && !arguments.listen)
    return Error{ErrorKind::kInvalid, "--clients is for the end that waits for them; add --listen"};
  if (const auto idle = config::duration_from(arguments.idle);
      !arguments.idle.empty() && (!idle || *idle < Duration::ms(1))) {
    return Error{
        ErrorKind::kInvalid,
        fmt::format("--idle {}: expected a duration from 1ms to 1000s, as 1s", arguments.idle)};
  }
  return {};
}

// Text such as "planes: 10.0.1.7 (eth0), 10.0.2.7 (eth1)".
std::string words_of_planes(const Bench& bench) {
  if (!bench.arguments.fabric.empty()) {
    return fmt::format("planes: those of host {} of {}", bench.arguments.fabric_host,
                       bench.arguments.fabric);
  }
  return "planes: " + os::text_of(bench.planes);
}

// Opens everything once and closes it again, so that errors of this host are found before clients
// connect.
Result<void> try_out(const Bench& bench) {
  WEFT_TRY(const Buffers buffers, Buffers::make(1));
  WEFT_CHECK(open_end(bench, Terms{}, buffers));
  return {};
}

Result<void> run(const BenchArguments& arguments) {
  WEFT_TRY(const auto sizes, sizes_of(arguments));
  WEFT_CHECK(check(arguments));
  Bench bench{.arguments = arguments, .settings = {}, .planes = {}, .secret = {}};
  WEFT_TRY(bench.settings, load_settings(arguments.flags));
  if (!bench.settings.cpus.empty()) WEFT_CHECK(os::run_on(bench.settings.cpus));
  if (!bench.settings.secret_file.empty()) {
    WEFT_TRY(bench.secret, read_secret_file(bench.settings.secret_file));
  }
  if (arguments.fabric.empty()) {
    WEFT_TRY(bench.planes, planes_of(bench.settings));
  }
  if (arguments.api == BenchApi::kMrc) WEFT_CHECK(check_mrc(bench));
  if (!arguments.fabric.empty()) {
    WEFT_TRY(bench.fabric, run::load_scenario(arguments.fabric));
    if (const std::uint32_t hosts = bench.fabric->topology.hosts; arguments.fabric_host >= hosts) {
      return Error{ErrorKind::kInvalid,
                   fmt::format("--fabric-host {}: expected a host of {}, 0 to {}",
                               arguments.fabric_host, arguments.fabric, hosts - 1)};
    }
  }
  os::catch_interruption();
  if (!bench.secret.empty() && bench.settings.shared_memory == SharedMemory::kMust) {
    return Error{ErrorKind::kInvalid,
                 "no shared memory with a job secret: rings are not sealed; leave --shm or the "
                 "secret out"};
  }
  if (arguments.listen) {
    WEFT_CHECK(try_out(bench));
    WEFT_TRY(std::vector<Client> clients, accept_clients(arguments, "; " + words_of_planes(bench)));
    return arguments.clients > 1 ? serve(bench, std::move(clients)) : follow(bench, clients[0]);
  }
  if (arguments.to_itself && bench.settings.shared_memory == SharedMemory::kMust)
    return Error{ErrorKind::kInvalid, "--self goes over UDP; leave --shm out"};
  os::say("{}\n", words_of_planes(bench));
  if (arguments.to_itself) return lead(bench, nullptr, sizes);
  if (arguments.host.empty()) return run_alone(bench, sizes);
  WEFT_CHECK(try_out(bench));  // report this host's errors before clients connect
  WEFT_TRY(os::Stream stream, os::dial({.host = arguments.host, .port = arguments.control_port}));
  return lead(bench, &stream, sizes);
}

}  // namespace

void add_bench_command(CLI::App& app, int& status) {
  auto* const bench = app.add_subcommand("bench", "Measures the real network");
  bench->require_subcommand(1);
  auto* const write =
      bench->add_subcommand("write", "RDMA writes: bandwidth, message rate, latency");
  const auto arguments = std::make_shared<BenchArguments>();
  write
      ->add_option("HOST", arguments->host,
                   "where `weft bench write --listen` runs; none: both ends here")
      ->check(not_empty("the name or address of a host"))
      ->check(no_size());
  write
      ->add_option_function<std::string>(
          "--api",
          [arguments](const std::string& text) {
            if (text != "engine" && text != "mrc")
              throw CLI::ValidationError("--api " + text, "expected engine or mrc");
            arguments->api = text == "mrc" ? BenchApi::kMrc : BenchApi::kEngine;
          },
          "what this end is written against: engine (the default), or mrc, as other programs are")
      ->type_name("NAME");
  write->add_flag(
      "--self", arguments->to_itself,
      "write to itself: both ends in this process, on one thread, so that neither waits");
  write->add_flag("--listen", arguments->listen, "be the other end, once");
  write->add_option("--clients", arguments->clients, "with --listen: of so many at once")
      ->capture_default_str()
      ->check(whole_number(1, 64));
  write
      ->add_option(
          "--receive-buffer", arguments->receive_buffer,
          "bytes asked for where packets wait, of each plane (default: as much as there is)")
      ->check(whole_number(1, 1u << 30));
  CLI::Option* const latency =
      write->add_flag("--latency", arguments->latency,
                      "ping-pong instead of bandwidth; a time is half of a round trip");
  write
      ->add_flag("--completions", arguments->completions,
                 "each round waits for the completion of this end's write too, as programs do that "
                 "use their memory again")
      ->needs(latency);
  write->add_flag("--bidirectional", arguments->bidirectional,
                  "both ends write; what they move is added up");
  write
      ->add_option(
          "--size", arguments->sizes,
          "bytes of a message, as 4096, 64KiB, 1MB; several as 64,1MiB (default: 64 to 64MiB, with "
          "--latency 8 to 64KiB)")
      ->type_name("SIZE[,SIZE]...")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)  // so that the word after it is taken as HOST, not as another size
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  auto* const iterations =
      write
          ->add_option(
              "--iterations", arguments->iterations,
              "messages of each size (default: some tenths of a second; 2000 with --latency)")
          ->check(whole_number(1));
  write
      ->add_option("--seconds", arguments->seconds,
                   "for so long instead; --json then tells what completed in each millisecond")
      ->check(number(0.01, 3600))
      ->excludes(iterations);
  write
      ->add_option("--fabric", arguments->fabric,
                   "the scenario whose lab this end is in: planes and paths follow from it")
      ->check(not_empty("a file"))
      ->envname("WEFT_FABRIC");
  write->add_option("--fabric-host", arguments->fabric_host, "which host of it, from 0")
      ->capture_default_str()
      ->check(whole_number(0, ~0u))
      ->envname("WEFT_FABRIC_HOST");
  write->add_option("--qps", arguments->qps, "QPs that share the messages")
      ->capture_default_str()
      ->check(whole_number(1, 1024));
  write->add_option("--port", arguments->control_port, "TCP port on which the ends find each other")
      ->capture_default_str()
      ->check(whole_number(1, 65535));
  write
      ->add_option("--idle", arguments->idle,
                   "afterwards do nothing for that long, as 1s, and say what CPU it took")
      ->check(not_empty("a duration, as 1s"));
  write->add_flag("--json", arguments->json, "one JSON object on stdout");
  add_setting_flags(*write, arguments->flags);
  write->callback([arguments, &status] {
    const auto done = run(*arguments);
    if (done) return;
    status = os::fail(done.error());
    if (os::interrupted()) status = os::interrupted_status();
  });
}

}  // namespace weft::cli
