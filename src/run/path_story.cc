#include "run/path_story.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace weft::run {
namespace {

template <typename T>
std::vector<T> only_in(const std::set<T>& these, const std::set<T>& those) {
  std::vector<T> out;
  std::set_difference(these.begin(), these.end(), those.begin(), those.end(),
                      std::back_inserter(out));
  return out;
}

}  // namespace

void PathStory::read(std::span<const TraceRecord> records) {
  for (const TraceRecord& r : records) {
    if (r.kind == TraceKind::kPort) {
      const Port port{.host = r.host, .plane = r.port};
      if (r.a != 0) {
        down_.erase(port);
      } else {
        down_.insert(port);
      }
    } else if (r.kind == TraceKind::kEv) {
      const Path path{.host = r.host, .plane = r.port, .ev = r.ev};
      if (r.a == static_cast<std::uint64_t>(EvTraceState::kAssumedBad)) {
        bad_.insert(path);
      } else if (bad_.erase(path) > 0 && !bad_before_.contains(path) &&
                 !down_.contains({path.host, path.plane})) {
        ++transient_count_;
      }
    }
  }
}

void PathStory::next_phase() { end_phase(); }

void PathStory::end_phase() {
  std::string line;
  const auto tell = [&](const char* what, const std::vector<Path>& paths) {
    for (const Path& p : paths) {
      if (down_.contains({p.host, p.plane}) || down_before_.contains({p.host, p.plane})) continue;
      line += fmt::format("; {} host {} plane {} EV {:#x}", what, p.host, p.plane, p.ev);
    }
  };
  for (const Port& p : only_in(down_, down_before_))
    line += fmt::format("; down host {} port {}", p.host, p.plane);
  for (const Port& p : only_in(down_before_, down_))
    line += fmt::format("; up host {} port {}", p.host, p.plane);
  tell("condemned", only_in(bad_, bad_before_));
  tell("revived", only_in(bad_before_, bad_));
  if (!line.empty()) lines_.push_back(fmt::format("phase {}: {}", phase_, line.substr(2)));
  ++phase_;
  bad_before_ = bad_;
  down_before_ = down_;
}

std::vector<std::string> PathStory::lines() {
  end_phase();
  return lines_;
}

}  // namespace weft::run
