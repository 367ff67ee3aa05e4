#include "softswitch/live_fabric_loop.h"

#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "os/clock.h"
#include "softswitch/fault_text.h"

namespace weft::softswitch {
namespace {

// The most batches received in a row, before packets that are due are sent.
constexpr int kBatchesMax = 4;
constexpr int kNice = -20;
constexpr std::uint64_t kDelayUsMax = 10'000'000;

std::string error_line(const Error& error) { return "error: " + error.message; }

// The number behind "key=" in `text`. nullopt: it is missing, or other characters follow before the
// next space.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  text = text.substr(0, text.find(' '));
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

LiveFabricLoop::LiveFabricLoop(const LiveFabricConfig& config, std::unique_ptr<FabricEdge> edge,
                               std::optional<os::ControlSocket> control,
                               const LiveFabricLoopOptions& options)
    : options_(options),
      waiter_({.back_early = options.spin}),
      fabric_(config),
      edge_(std::move(edge)) {
  if (control) control_.emplace(std::move(*control));
}

void LiveFabricLoop::take_packets() {
  for (int batch = 0; batch < kBatchesMax; ++batch) {
    const std::size_t count = edge_->receive(os::clock_now(), in_);
    for (std::size_t i = 0; i < count; ++i)
      fabric_.on_packet(in_[i].at, in_[i].from.host, in_[i].from.plane, in_[i].packet);
    edge_->release();
    if (count < in_.size()) return;
  }
}

void LiveFabricLoop::give_packets() {
  for (;;) {
    const Time now = os::clock_now();
    const std::size_t count = fabric_.poll(now, out_);
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const Duration late = now - out_[i].at;
      ++late_.packets;
      late_.sum += late;
      late_.most = std::max(late_.most, late);
      late_.above_1ms += late > Duration::ms(1);
    }
    edge_->send(std::span(out_).first(count));
  }
}

// Sleeps until there is work. False: `stop_fd` is readable.
bool LiveFabricLoop::wait(int stop_fd) {
  std::array<pollfd, 2 + os::ControlSocket::kClientsMax + 1> fds{};
  fds[0] = {.fd = stop_fd, .events = POLLIN, .revents = 0};
  fds[1] = {.fd = edge_->fd(), .events = POLLIN, .revents = 0};
  std::size_t count = 2;
  if (control_) count += control_->descriptors(std::span(fds).subspan<2>());
  if (!waiter_.sleep(std::span(fds).first(count), fabric_.next_deadline())) return true;
  if (fds[0].revents != 0) return false;
  for (std::size_t i = 2; i < count; ++i) {
    if (fds[i].revents == 0) continue;
    answer_requests();
    break;
  }
  return true;
}

// Raises the priority of this process over the hosts' programs if permitted, because a late switch
// acts like a slow network. A loop that spins does not: it would leave the programs no CPU time.
void LiveFabricLoop::raise_priority() {
  sched_param first{};
  first.sched_priority = 1;
  if (options_.spin == Duration() &&
      sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0) {
    precedence_ = "realtime";
  } else if (setpriority(PRIO_PROCESS, 0, kNice) == 0) {
    precedence_ = "nice";
  }
}

void LiveFabricLoop::run(int stop_fd) {
  // The kernel's default may wake a sleeper 50 us late.
  prctl(PR_SET_TIMERSLACK, 1);
  raise_priority();
  do {
    take_packets();
    give_packets();
  } while (wait(stop_fd));
}

void LiveFabricLoop::answer_requests() {
  // Handles a bounded number of requests, so that a client with many requests does not delay
  // packets.
  for (std::size_t i = 0; i < os::ControlSocket::kClientsMax; ++i) {
    const auto request = control_->next();
    if (!request) return;
    control_->answer(*request, answer_to(request->text));
  }
}

std::string LiveFabricLoop::answer_to(std::string_view request) {
  constexpr std::string_view kFault = "fault ", kDelay = "delay ", kRate = "rate ";
  if (request == "counters") return counters_json();
  if (request == "links") {
    std::string out;
    for (fabric::LinkId link = 0; link < fabric_.topology().link_count(); ++link)
      out += fmt::format("{} {}\n", link, fabric_.topology().describe(link));
    return out;
  }
  if (request == "traffic") {
    std::string out;
    for (fabric::LinkId link = 0; link < fabric_.topology().link_count(); ++link) {
      const LinkCounters& l = fabric_.counters(link);
      out += fmt::format("{} {} {} {} {} {}\n", link, l.packets, l.bytes, l.trims, l.ecn_marks,
                         l.drops_queue + l.drops_down + l.drops_fault);
    }
    return out;
  }
  if (request == "heal") {
    fabric_.end_impairments(os::clock_now());
    return "ok";
  }
  Result<void> done = Error{ErrorKind::kInvalid,
                            "unknown request; expected counters, links, traffic, fault EVENT, "
                            "heal, delay link=N us=N or rate link=N bps=N"};
  if (request.starts_with(kFault)) done = carry_out(request.substr(kFault.size()));
  if (request.starts_with(kDelay)) done = set_delay(request.substr(kDelay.size()));
  if (request.starts_with(kRate)) done = set_rate(request.substr(kRate.size()));
  return done ? "ok" : error_line(done.error());
}

Result<void> LiveFabricLoop::carry_out(std::string_view text) {
  WEFT_TRY(const fabric::FaultEvent event, parse_fault_event(text));
  WEFT_CHECK(fabric_.apply(os::clock_now(), event));
  const bool down = event.action == fabric::FaultAction::kLinkDown;
  const bool up = event.action == fabric::FaultAction::kLinkUp && event.carrier;
  if ((!down && !up) || !fabric_.topology().is_last_hop(event.link)) return {};
  const fabric::LinkPlace at = fabric_.topology().place(event.link);
  return edge_->set_carrier({.host = at.lower, .plane = at.plane}, up || !event.carrier);
}

Result<void> LiveFabricLoop::set_delay(std::string_view arguments) {
  const auto link = number_of(arguments, "link="), us = number_of(arguments, "us=");
  if (!link || !us || *link >= fabric_.topology().link_count() || *us > kDelayUsMax) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("expected delay link=N us=N, a link from 0 to {} "
                             "and at most {} us",
                             fabric_.topology().link_count() - 1, kDelayUsMax)};
  }
  fabric_.set_extra_delay(static_cast<fabric::LinkId>(*link),
                          Duration::us(static_cast<std::int64_t>(*us)));
  return {};
}

Result<void> LiveFabricLoop::set_rate(std::string_view arguments) {
  constexpr std::uint64_t kBpsMin = 1'000'000, kBpsMax = 100'000'000'000'000;
  const auto link = number_of(arguments, "link="), bps = number_of(arguments, "bps=");
  if (!link || !bps || *link >= fabric_.topology().link_count() || *bps < kBpsMin ||
      *bps > kBpsMax) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("expected rate link=N bps=N, a link from 0 to {} "
                             "and {} to {} b/s",
                             fabric_.topology().link_count() - 1, kBpsMin, kBpsMax)};
  }
  fabric_.set_rate(static_cast<fabric::LinkId>(*link), Rate::bps(*bps));
  return {};
}

std::string LiveFabricLoop::counters_json() {
  const FabricEdge::Counters& s = edge_->counters();
  const double mean =
      late_.packets == 0 ? 0 : late_.sum.to_us() / static_cast<double>(late_.packets);
  return fmt::format(
      R"({{"precedence":"{}","late_us_mean":{:.1f},"late_us_max":{:.1f},"late_above_1ms":{},"too_large":{},)"
      R"("drops_receive":{},"drops_send":{},"fabric":{}}})",
      precedence_, mean, late_.most.to_us(), late_.above_1ms, s.too_large, s.drops_receive,
      s.drops_send, to_json(fabric_));
}

}  // namespace weft::softswitch
