#include "os/interruption.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace weft::os {
namespace {

std::atomic<int> first_signal = 0;                     // the first signal that came; 0: none
static_assert(std::atomic<int>::is_always_lock_free);  // because a signal handler writes it

// catch_interruption() sets `words` and `speaker` before it installs the handlers.
const char* words = "";
// Child processes inherit the handler, but only this process writes the message.
pid_t writing_pid = 0;

// A second signal ends the process at once. A signal that comes sooner than this belongs to the
// first, because `timeout` signals both the process and its process group.
constexpr long kOneWishMs = 300;
std::atomic<long> noted_ms = 0;
static_assert(std::atomic<long>::is_always_lock_free);

long now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void note(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number)) {
    // 0: another thread handles the first signal, and has not written noted_ms yet.
    const long first = noted_ms.load();
    if (first == 0 || now_ms() - first < kOneWishMs) return;
    std::signal(number, SIG_DFL);
    raise(number);  // delivered when this handler has returned
    return;
  }
  noted_ms.store(now_ms());
  if (getpid() != writing_pid) return;
  const int before = errno;
  [[maybe_unused]] const auto told = write(STDERR_FILENO, words, std::strlen(words));
  errno = before;
}

}  // namespace

void catch_interruption(const char* last) {
  words = last;
  writing_pid = getpid();
  struct sigaction action {};
  action.sa_handler = note;
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&action.sa_mask, one);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A closed terminal sends SIGHUP. A process that ignores it (nohup) keeps ignoring it.
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

bool interrupted() { return first_signal.load(std::memory_order_relaxed) != 0; }

int interrupted_status() { return 128 + first_signal.load(std::memory_order_relaxed); }

Error interruption() { return {ErrorKind::kSystem, "interrupted"}; }

}  // namespace weft::os
