#include "base/counters.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"

namespace weft {
namespace {

std::string text_of(const PeerLabel& peer) {
  if (peer == kOtherPeers) return "other";
  std::string text = base::to_text(peer.ip);
  if (base::is_ipv4(peer.ip)) text.erase(0, text.rfind(':') + 1);  // ::ffff:10.0.0.1
  return peer.process == 0 ? text : text + "#" + std::to_string(peer.process);
}

std::string name_and_reason(const Counter& counter) {
  std::string out(counter.name);
  if (!counter.labels.reason.empty()) out.append("_").append(counter.labels.reason);
  return out;
}

bool is_same_sum(const Counter& a, const Counter& b) {
  return a.name == b.name && a.labels.reason == b.labels.reason;
}

}  // namespace

bool is_named(const Counter& counter, std::string_view name) {
  const std::string_view own = counter.name, reason = counter.labels.reason;
  if (!name.starts_with(own)) return false;
  if (name.size() == own.size()) return true;
  return !reason.empty() && name[own.size()] == '_' && name.substr(own.size() + 1) == reason;
}

std::uint64_t value_of(const CounterTable& table, std::string_view name) {
  std::uint64_t sum = 0;
  for (const Counter& counter : table) sum += is_named(counter, name) ? counter.value : 0;
  return sum;
}

bool has_counter(const CounterTable& table, std::string_view name) {
  return std::any_of(table.begin(), table.end(),
                     [name](const Counter& counter) { return is_named(counter, name); });
}

std::uint64_t PerPlane::sum() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

void add_per_plane(const Counter& counter, const PerPlane& counts, std::size_t planes,
                   CounterTable& table) {
  WEFT_ASSERT(planes <= PerPlane::kPlanesMax);
  for (std::uint8_t plane = 0; plane < planes; ++plane) {
    table.push_back(counter);
    table.back().value = counts[plane];
    table.back().labels.plane = plane;
  }
}

void add_values(const CounterTable& table, CounterTable& sum) {
  if (sum.empty()) {
    sum = table;
    return;
  }
  WEFT_ASSERT(sum.size() == table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    WEFT_ASSERT(sum[i].name == table[i].name && sum[i].labels == table[i].labels);
    sum[i].value += table[i].value;
  }
}

std::string text_of(const Counter& counter) {
  std::string labels;
  const auto add = [&labels](const char* key, const std::string& value) {
    labels.append(labels.empty() ? "{" : ",").append(key).append("=").append(value);
  };
  const CounterLabels& l = counter.labels;
  if (l.plane) add("plane", std::to_string(*l.plane));
  if (l.peer) add("peer", text_of(*l.peer));
  if (l.qp) add("qp", std::to_string(*l.qp));
  return name_and_reason(counter) + (labels.empty() ? "" : labels + "}");
}

std::vector<CounterRow> rows_of(const CounterTable& table) {
  std::vector<CounterRow> rows;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto same = [&](const Counter& other) { return is_same_sum(table[i], other); };
    if (std::any_of(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(i), same)) continue;
    const std::size_t sum_at = rows.size();
    rows.push_back({.name = name_and_reason(table[i]), .unit = table[i].unit});
    for (const Counter& counter : table) {
      if (!same(counter)) continue;
      rows[sum_at].value += counter.value;
      rows.push_back({.name = text_of(counter), .unit = counter.unit, .value = counter.value});
    }
    // A single counter equals its sum: the extra row is left out.
    if (rows.size() == sum_at + 2) rows.pop_back();
  }
  return rows;
}

}  // namespace weft
