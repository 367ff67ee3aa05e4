#include "cli/bench_follow.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench_connect.h"
#include "os/clock.h"
#include "os/interruption.h"
#include "os/log.h"
#include "os/say.h"

namespace weft::cli {

Result<Round> receive_round_while_answering(os::Stream& stream, BenchEnd& end) {
  while (!stream.has_something() && !os::interrupted())
    end.answer(os::clock_now() + Duration::us(500));
  if (os::interrupted()) return os::interruption();
  return receive_round(stream);
}

std::uint32_t depth_for(std::uint64_t size) {
  constexpr std::uint64_t kUnderWay = 16ull << 20;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kUnderWay / std::max<std::uint64_t>(size, 1), 2, 128));
}

Result<void> follow(const Bench& bench, Client& client) {
  const BenchArguments& arguments = bench.arguments;
  const Terms& terms = client.terms;
  os::Stream& stream = client.stream;
  WEFT_TRY(const Buffers buffers, Buffers::make(terms.largest));
  WEFT_TRY(Connected c, connect(bench, terms, Role::kFollows, stream, buffers));
  if (!client.from.empty())
    os::say("{} has come, {}\n", client.from, carrier_text(bench, c.link, *c.end));
  Watch watch{.early = EarlyEnd(&stream), .silence = Silence(*c.end, c.link)};
  for (;;) {
    // Keep acknowledging until the other end has all of its completions.
    const auto heard = receive_round_while_answering(stream, *c.end);
    if (os::interrupted()) {
      WEFT_CHECK(send_round(stream, kInterruption));
      return os::interruption();
    }
    WEFT_TRY(const Round round, heard);
    if (round.iterations == 0) {
      if (arguments.listen && arguments.json)
        fmt::print("{}\n", nlohmann::json{{"counters", counters_json(*c.end)}}.dump());
      if (round.is_interruption()) return other_interrupted();
      return {};
    }
    if (round.size > buffers.memory().landing.size() || round.size == 0)
      return Error{ErrorKind::kInvalid, "the other end asks for a size that was not agreed"};
    buffers.memory().landing[round.size - 1] = std::byte{0};
    WEFT_CHECK(send_round(stream, round));  // this end is ready
    if (terms.latency) {
      WEFT_CHECK(measure_latency(*c.end, c.link, buffers.memory(),
                                 {.size = static_cast<std::uint32_t>(round.size),
                                  .iterations = round.iterations,
                                  .begins = false},
                                 watch));
    } else if (terms.bidirectional) {
      WEFT_CHECK(measure_bandwidth(*c.end, c.link, buffers.memory(),
                                   {.size = static_cast<std::uint32_t>(round.size),
                                    .iterations = round.iterations,
                                    .depth = depth_for(round.size)},
                                   watch));
    }
    // the next message of the other end says why
    if (watch.early.must_end(os::clock_now())) continue;
    if (terms.bidirectional) WEFT_CHECK(send_round(stream, round));  // this end is done
  }
}

namespace {

// The state of one of several leading ends.
enum class ClientState : std::uint8_t { kOpen, kOver, kInterrupted, kGone };

// Handles one message of a leading end. REQUIRES that the stream has bytes to read.
ClientState handle_round(os::Stream& stream) {
  const auto round = receive_round(stream);
  // If receive_round() failed because this process was interrupted, the caller handles that.
  if (!round) return os::interrupted() ? ClientState::kOpen : ClientState::kGone;
  if (round->is_interruption()) return ClientState::kInterrupted;
  if (round->iterations == 0) return ClientState::kOver;
  return send_round(stream, *round) ? ClientState::kOpen : ClientState::kGone;  // this end is ready
}

// Handles messages until no leading end is kOpen, or until this process is interrupted.
std::vector<ClientState> handle_rounds(std::vector<Client>& clients, BenchEnd& end) {
  std::vector<ClientState> parts(clients.size(), ClientState::kOpen);
  while (std::count(parts.begin(), parts.end(), ClientState::kOpen) > 0 && !os::interrupted()) {
    end.answer(os::clock_now() + Duration::us(500));
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (parts[i] != ClientState::kOpen || !clients[i].stream.has_something()) continue;
      parts[i] = handle_round(clients[i].stream);
      if (parts[i] != ClientState::kGone) continue;
      os::log(os::LogLevel::kWarn, "client {} of {} has gone; the others go on", i + 1,
              clients.size());
    }
  }
  return parts;
}

// Informs the leading ends that are still open. Failures are ignored: such an end has disconnected.
void tell_interruption(std::vector<Client>& clients, const std::vector<ClientState>& parts) {
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (parts[i] == ClientState::kOpen) (void)send_round(clients[i].stream, kInterruption);
  }
}

}  // namespace

Result<void> serve(const Bench& bench, std::vector<Client> clients) {
  Terms all{.qps = 0};
  for (const Client& client : clients) {
    const Terms& one = client.terms;
    if (one.latency || one.bidirectional)
      return Error{ErrorKind::kInvalid, "--clients is for bandwidth in one direction"};
    all = {.largest = std::max(all.largest, one.largest),
           .qps = all.qps + one.qps,
           .burst = one.burst};
  }
  // Sealed QPs are limited to kQpsMax; report this before the transfer.
  if (all.qps > kQpsMax) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("the other ends ask for {} QPs together; expected {} at most, give "
                             "them fewer --qps",
                             all.qps, kQpsMax)};
  }
  WEFT_TRY(const Buffers buffers, Buffers::make(all.largest));
  WEFT_TRY(const auto end, open_end(bench, all, buffers));
  for (Client& client : clients) {
    WEFT_TRY(const BenchLink link,
             connect_group(bench, client.terms, Role::kFollows, client.stream, buffers, *end));
    os::say("{} is connected, {}\n", client.from, carrier_text(bench, link, *end));
  }
  buffers.touch();
  const std::vector<ClientState> parts = handle_rounds(clients, *end);
  if (os::interrupted()) {
    tell_interruption(clients, parts);
    return os::interruption();
  }
  if (bench.arguments.json)
    fmt::print("{}\n", nlohmann::json{{"counters", counters_json(*end)}}.dump());
  const auto gone = std::count(parts.begin(), parts.end(), ClientState::kGone);
  if (gone > 0)
    return Error{ErrorKind::kSystem, fmt::format("{} of {} clients went", gone, parts.size())};
  if (std::count(parts.begin(), parts.end(), ClientState::kInterrupted) > 0)
    return other_interrupted();
  return {};
}

}  // namespace weft::cli
