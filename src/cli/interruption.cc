#include "cli/interruption.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace weft::cli {
namespace {

std::atomic<int> noted = 0;                            // the signal
static_assert(std::atomic<int>::is_always_lock_free);  // a signal handler writes it

// Set before the signals are caught.
const char* words = "";
pid_t speaker = 0;  // children have the handler too

void note(int number) {
  int none = 0;
  if (!noted.compare_exchange_strong(none, number) || getpid() != speaker) return;
  const int before = errno;
  [[maybe_unused]] const auto told = write(STDERR_FILENO, words, std::strlen(words));
  errno = before;
}

}  // namespace

void catch_interruption(const char* last) {
  words = last;
  speaker = getpid();
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A terminal that is closed, unless somebody (nohup) wants it to go on then.
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

bool interrupted() { return noted.load(std::memory_order_relaxed) != 0; }

int interrupted_status() { return 128 + noted.load(std::memory_order_relaxed); }

Error interruption() { return {ErrorKind::kSystem, "interrupted"}; }

}  // namespace weft::cli
