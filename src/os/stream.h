// Stream: a byte stream between two ends, for what must be said besides packets, and how the two
// find each other. Owns its socket. A wait is bounded, and Ctrl-C ends it (interruption.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace weft::os {

class Stream {
 public:
  // One that says nothing is not waited for: words follow at once or are polled for.
  static constexpr Duration kPatience = Duration::s(20);

  // `name`: the other end, where people are told of it.
  explicit Stream(int fd, std::string name = "the other end") : fd_(fd), name_(std::move(name)) {}
  Stream(Stream&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream();

  // All of it. Errors: kSystem when the other end has gone, says nothing for long, or Ctrl-C came.
  Result<void> send(ConstBytes bytes);
  Result<void> receive(Bytes bytes, Duration patience = kPatience);
  // Words, or the end of them.
  bool has_something() const;
  // The other end has gone, whatever it said before.
  bool has_ended() const;
  // Copies what is first there and leaves it; false if that much has not come.
  bool peek(Bytes bytes) const;
  // What send() and receive() say when the other end has closed.
  Error gone() const { return {ErrorKind::kSystem, name_ + " has gone"}; }

 private:
  int fd_;
  std::string name_;
};

// Where others dial to, on every address of this host.
class Listener {
 public:
  // Room for `count` that dial at once. Errors: kSystem.
  static Result<Listener> open(std::uint16_t port, std::uint32_t count);
  Listener(Listener&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  struct Caller {
    Stream stream;
    std::string from;  // its address
  };
  // Waits for the next that dials. Errors: kSystem, also when Ctrl-C came.
  Result<Caller> accept();

 private:
  explicit Listener(int fd) : fd_(fd) {}
  int fd_;
};

struct Callee {
  std::string host;
  std::uint16_t port = 0;
};
Result<Stream> dial(const Callee& callee);

}  // namespace weft::os
