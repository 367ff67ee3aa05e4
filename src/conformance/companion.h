// Companion: a second process in a test. It loads the library itself, and exchanges values with the
// first process over a socket (Line).
#pragma once

#include <sys/types.h>

#include <functional>

#include "conformance/session.h"

namespace weft::conformance {

// One end of the socket between the two processes. Values must be trivially copyable; they arrive
// in order.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  template <typename T>
  void send(const T& value) const {
    send(&value, sizeof(value));
  }
  // Throws Failure if the other process ends, or sends nothing before the test's time is over.
  template <typename T>
  T receive(const Session& session) const {
    T value{};
    receive(session, &value, sizeof(value));
    return value;
  }

 private:
  void send(const void* bytes, std::size_t size) const;
  void receive(const Session& session, void* bytes, std::size_t size) const;
  int fd_;
};

class Companion {
 public:
  // Runs `body` in the second process. REQUIRES that session.library() has not been called.
  Companion(Session& session, const std::function<void(Session&, const Line&)>& body);
  // Kills the second process if it still runs.
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  Line line() const { return Line(fd_); }
  // As Line::receive(). If the second process ended early, throws that process's failure.
  template <typename T>
  T receive() {
    try {
      return line().receive<T>(session_);
    } catch (const Failure&) {
      join();
      throw;
    }
  }
  // Waits until the second process ends. If it failed, throws its failure.
  void join();
  void kill_process();

 private:
  Session& session_;
  pid_t pid_ = -1;
  int fd_ = -1, words_ = -1;
};

}  // namespace weft::conformance
