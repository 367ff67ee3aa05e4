// Time and Duration: int64 picoseconds. 64 bytes at 800 Gb/s last 640 ps, so nanoseconds are too
// coarse. A Time counts from the start of its world, simulated or real. The range is 106 days.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace weft {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration ps(std::int64_t n) { return Duration(n); }
  static constexpr Duration ns(std::int64_t n) { return Duration(n * 1'000); }
  static constexpr Duration us(std::int64_t n) { return Duration(n * 1'000'000); }
  static constexpr Duration ms(std::int64_t n) { return Duration(n * 1'000'000'000); }
  static constexpr Duration s(std::int64_t n) { return Duration(n * 1'000'000'000'000); }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr std::int64_t ns() const { return ps_ / 1'000; }
  constexpr std::int64_t us() const { return ps_ / 1'000'000; }
  constexpr double to_us() const { return static_cast<double>(ps_) * 1e-6; }  // only for output

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration(a.ps_ + b.ps_); }
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration(a.ps_ - b.ps_); }
  friend constexpr Duration operator*(Duration a, std::int64_t n) { return Duration(a.ps_ * n); }
  friend constexpr Duration operator/(Duration a, std::int64_t n) { return Duration(a.ps_ / n); }
  constexpr Duration& operator+=(Duration b) { return *this = *this + b; }
  constexpr Duration& operator-=(Duration b) { return *this = *this - b; }

 private:
  explicit constexpr Duration(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

class Time {
 public:
  constexpr Time() = default;
  static constexpr Time from_start(Duration d) { return Time(d.ps()); }
  constexpr Duration since_start() const { return Duration::ps(ps_); }
  constexpr std::int64_t ps() const { return ps_; }

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time t, Duration d) { return Time(t.ps_ + d.ps()); }
  friend constexpr Time operator-(Time t, Duration d) { return Time(t.ps_ - d.ps()); }
  friend constexpr Duration operator-(Time a, Time b) { return Duration::ps(a.ps_ - b.ps_); }
  constexpr Time& operator+=(Duration d) { return *this = *this + d; }

 private:
  explicit constexpr Time(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

// Later than every event: the value of a deadline that is not armed. Adding a Duration to it would
// overflow.
inline constexpr Time kNever =
    Time::from_start(Duration::ps(std::numeric_limits<std::int64_t>::max()));

}  // namespace weft
