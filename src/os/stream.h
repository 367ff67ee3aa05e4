// Stream: a TCP connection through which two processes exchange what does not travel in packets.
// Listener and dial() make it. It owns its socket. Every wait is bounded, and Ctrl-C ends it
// (interruption.h).
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
  // The default time that receive() waits. It is long enough, because a peer sends at once, or the
  // caller first polls has_something().
  static constexpr Duration kPatience = Duration::s(20);

  // `name` identifies the peer in error messages.
  explicit Stream(int fd, std::string name = "the other end") : fd_(fd), name_(std::move(name)) {}
  Stream(Stream&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream();

  // send() and receive() transfer all bytes or fail. Errors: kSystem when the peer has closed the
  // stream, is silent for too long, or Ctrl-C came.
  Result<void> send(ConstBytes bytes);
  Result<void> receive(Bytes bytes, Duration patience = kPatience);
  // Whether bytes can be read, or the peer has closed the stream.
  bool has_something() const;
  // Whether the peer has closed the stream. Bytes that it sent before may still be unread.
  bool has_ended() const;
  // Copies the first bytes and leaves them in the stream. False if fewer have arrived.
  bool peek(Bytes bytes) const;
  // The error of send() and receive() when the peer has closed.
  Error gone() const { return {ErrorKind::kSystem, name_ + " has gone"}; }

 private:
  int fd_;
  std::string name_;
};

// Accepts connections on every address of this host.
class Listener {
 public:
  // Listens on `port`, with a backlog of `count` connections. Errors: kSystem.
  static Result<Listener> open(std::uint16_t port, std::uint32_t count);
  Listener(Listener&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  struct Caller {
    Stream stream;
    std::string from;  // the peer's address
  };
  // Waits for the next connection. Errors: kSystem, also when Ctrl-C came.
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
