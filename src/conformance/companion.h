// Companion: a second process of a test, with the library loaded anew, and a line to talk over.
#pragma once

#include <sys/types.h>

#include <functional>

#include "conformance/session.h"

namespace weft::conformance {

// One end of the line: plain values, in order.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  template <typename T>
  void tell(const T& value) const {
    send(&value, sizeof(value));
  }
  // Throws Failure when the other end is gone or says nothing for the rest of the test.
  template <typename T>
  T hear(const Session& session) const {
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
  // REQUIRES that the session's library was not asked for yet. `body` runs there.
  Companion(Session& session, const std::function<void(Session&, const Line&)>& body);
  // Kills what still runs.
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  Line line() const { return Line(fd_); }
  // As Line's; when the other process ended early, throws what went wrong there.
  template <typename T>
  T hear() {
    try {
      return line().hear<T>(session_);
    } catch (const Failure&) {
      join();
      throw;
    }
  }
  // Waits for its end; throws what went wrong there.
  void join();
  void kill_it();

 private:
  Session& session_;
  pid_t pid_ = -1;
  int fd_ = -1, words_ = -1;
};

}  // namespace weft::conformance
