#include "softswitch/fault_text.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>

#include "fabric/fault_words.h"

namespace weft::softswitch {
namespace {

using fabric::FaultAction;

// No delay is longer than one day, so that sums of delays do not overflow.
constexpr std::uint64_t kDelayPsMax = 86'400ull * 1'000'000'000'000;

template <typename E, std::size_t N>
Result<void> take_enum(const fabric::FaultWord<E> (&words)[N], std::string_view word, E& out) {
  std::string expected;
  for (const fabric::FaultWord<E>& row : words) {
    if (row.word == word) {
      out = row.value;
      return {};
    }
    expected += (expected.empty() ? "" : ", ") + std::string(row.word);
  }
  return Error{ErrorKind::kInvalid,
               fmt::format("{}: unknown; expected one of: {}", shown(word), expected)};
}

template <typename T>
Result<void> take_number(std::string_view key, std::string_view word, std::uint64_t most, T& out) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || value > most) {
    return Error{ErrorKind::kInvalid, fmt::format("{}={}: expected a whole number from 0 to {}",
                                                  key, shown(word), most)};
  }
  out = static_cast<T>(value);
  return {};
}

// Splits `text` at the next separator: returns the part before it and removes both from `text`.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return word;
}

Result<void> take_evs(std::string_view word, std::vector<std::uint32_t>& out) {
  while (!word.empty()) {
    if (out.size() == kFaultEvsMax) {
      return Error{ErrorKind::kInvalid, fmt::format("evs: more than {}", kFaultEvsMax)};
    }
    WEFT_CHECK(take_number("evs", cut(word, ','), 0xffff'ffff, out.emplace_back()));
  }
  return {};
}

constexpr std::array<std::string_view, 10> kKeys{"id",   "link",  "percent", "carrier",  "place",
                                                 "kind", "share", "burst",   "delay_ps", "evs"};

Result<void> take_word(std::string_view key, std::string_view value, fabric::FaultEvent& out) {
  if (key == "id") return take_number(key, value, 0xffff'ffff, out.id);
  if (key == "link") return take_number(key, value, fabric::kNoLink - 1, out.link);
  if (key == "percent") return take_number(key, value, 100, out.percent);
  if (key == "carrier") return take_number(key, value, 1, out.carrier);
  if (key == "place") return take_enum(fabric::kFaultPlaceWords, value, out.place);
  if (key == "kind") return take_enum(fabric::kImpairmentWords, value, out.impairment.kind);
  if (key == "share")
    return take_number(key, value, std::uint64_t{1} << 32, out.impairment.share_of_2_32);
  if (key == "burst") return take_number(key, value, 1u << 20, out.impairment.burst);
  if (key == "evs") return take_evs(value, out.impairment.entropies);
  std::int64_t delay = 0;
  WEFT_CHECK(take_number(key, value, kDelayPsMax, delay));
  out.impairment.delay_max = Duration::ps(delay);
  return {};
}

}  // namespace

std::string shown(std::string_view word) {
  std::string out(word.substr(0, 40));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

std::string to_text(const fabric::FaultEvent& event) {
  const bool impair = event.action == FaultAction::kImpair;
  std::string out(word_of(event.action));
  const auto add = [&out](std::string_view key, auto value) {
    fmt::format_to(std::back_inserter(out), " {}={}", key, value);
  };
  if (impair || event.action == FaultAction::kHeal) add("id", event.id);
  if (event.link != fabric::kNoLink) add("link", event.link);
  if (event.action == FaultAction::kLinkRate) add("percent", event.percent);
  if (!event.carrier) add("carrier", 0);
  if (!impair) return out;
  add("place", word_of(event.place));
  add("kind", word_of(event.impairment.kind));
  add("share", event.impairment.share_of_2_32);
  add("burst", event.impairment.burst);
  add("delay_ps", event.impairment.delay_max.ps());
  std::string evs;
  for (const std::uint32_t ev : event.impairment.entropies)
    evs += (evs.empty() ? "" : ",") + std::to_string(ev);
  if (!evs.empty()) add("evs", evs);
  return out;
}

Result<fabric::FaultEvent> parse_fault_event(std::string_view text) {
  if (text.size() > kFaultTextMax) {
    return Error{ErrorKind::kInvalid, fmt::format("a fault of {} bytes; expected at most {}",
                                                  text.size(), kFaultTextMax)};
  }
  fabric::FaultEvent event;
  WEFT_CHECK(take_enum(fabric::kFaultActionWords, cut(text, ' '), event.action));
  std::uint32_t seen = 0;
  while (!text.empty()) {
    std::string_view value = cut(text, ' ');
    if (value.empty()) continue;
    const std::string_view word = value;
    const bool has_value = value.find('=') != std::string_view::npos;
    const std::string_view key = cut(value, '=');
    std::size_t which = 0;
    while (which < kKeys.size() && kKeys[which] != key) ++which;
    if (!has_value || which == kKeys.size() || (seen >> which & 1) != 0) {
      return Error{
          ErrorKind::kInvalid,
          fmt::format("{}: expected each of id, link, percent, carrier, place, kind, share, "
                      "burst, delay_ps, evs at most once, as id=3",
                      shown(word))};
    }
    seen |= 1u << which;
    WEFT_CHECK(take_word(key, value, event));
  }
  return event;
}

}  // namespace weft::softswitch
