#include "cli/interruption.h"

#include <atomic>
#include <csignal>

namespace weft::cli {
namespace {

std::atomic<bool> noted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler writes it

void note(int) { noted = true; }

}  // namespace

void catch_interruption() {
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

bool interrupted() { return noted.load(std::memory_order_relaxed); }

Error interruption() { return {ErrorKind::kSystem, "interrupted"}; }

}  // namespace weft::cli
