#include "os/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <ctime>
#include <string>

namespace weft::os {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"error", "warn", "info", "debug"};

std::atomic<LogLevel> log_level = LogLevel::kWarn;

}  // namespace

std::optional<LogLevel> log_level_from(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

std::string_view name_of(LogLevel level) { return kNames[static_cast<std::size_t>(level)]; }

void set_log_level(LogLevel level) { log_level.store(level, std::memory_order_relaxed); }

bool is_logged(LogLevel level) { return level <= log_level.load(std::memory_order_relaxed); }

void log_line(LogLevel level, std::string_view line) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  const std::string whole =
      fmt::format("weft: {}: {:02}:{:02}:{:02}.{:03} {}\n", name_of(level), local.tm_hour,
                  local.tm_min, local.tm_sec, now.tv_nsec / 1'000'000, line);
  // Write the whole line with one call, so that lines of several processes do not mix. A closed
  // stderr is not an error.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, whole.data(), whole.size());
}

}  // namespace weft::os
