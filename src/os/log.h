// The log of a process: one line on stderr for each event.
//
//   weft: info: 11:23:45.123 slot 0, receive buffers of 8388608 bytes
//
// The process has one level, kWarn by default. Any thread may log; each line is written whole.
// Nothing is logged per packet, and a condition that repeats is logged once.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string_view>
#include <utility>

namespace weft::os {

enum class LogLevel : unsigned char { kError, kWarn, kInfo, kDebug };

// "error", "warn", "info", "debug".
std::optional<LogLevel> log_level_from(std::string_view text);
std::string_view name_of(LogLevel level);

void set_log_level(LogLevel level);
bool is_logged(LogLevel level);
void log_line(LogLevel level, std::string_view line);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (is_logged(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace weft::os
