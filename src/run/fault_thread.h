// FaultThread: applies the faults of a plan to a lab, and ends them, while the lab's hosts run. It
// has its own thread because an `ip` command takes milliseconds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "fabric/fault.h"
#include "lab/lab.h"
#include "os/clock.h"

namespace weft::run {

// Applies each fault at its time. The lab outlives this object; the destructor ends the thread.
class FaultThread {
 public:
  FaultThread(lab::Lab& lab, std::span<const fabric::FaultEvent> events, Time epoch)
      : lab_(lab),
        events_(events.begin(), events.end()),
        epoch_(epoch),
        thread_([this] { run(); }) {}
  ~FaultThread() {
    stop_ = true;
    thread_.join();
  }
  // How many times faults have changed so far. Faults that change at the same moment count once.
  std::uint32_t changes() const { return changes_; }
  bool is_over() const { return over_; }
  Result<void> result() {
    const std::lock_guard lock(mutex_);
    return result_;
  }

 private:
  void run() {
    std::size_t next = 0;
    while (next < events_.size() && !stop_) {
      const Time due = events_[next].at;
      if (os::clock_now() - epoch_.since_start() < due) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        continue;
      }
      std::size_t end = next;
      while (end < events_.size() && events_[end].at == due) ++end;
      // Count first: a new phase of the PathStory must begin before its first fault takes effect.
      ++changes_;
      const auto done = lab_.apply(std::span(events_).subspan(next, end - next));
      if (!done) {
        const std::lock_guard lock(mutex_);
        result_ = done.error();
        break;
      }
      next = end;
    }
    over_ = true;
  }

  lab::Lab& lab_;
  std::vector<fabric::FaultEvent> events_;
  Time epoch_;
  std::atomic<bool> stop_ = false, over_ = false;
  std::atomic<std::uint32_t> changes_ = 0;
  std::mutex mutex_;
  Result<void> result_;
  std::thread thread_;
};

}  // namespace weft::run
