// Stream: a byte stream between two ends, for what must be said besides packets, and how the two
// find each other. Owns its socket. A wait is bounded, and Ctrl-C ends it (interruption.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace weft::cli {

class Stream {
 public:
  explicit Stream(int fd) : fd_(fd) {}
  Stream(Stream&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream();

  // All of it. Errors: kSystem when the other end has gone, says nothing for long, or Ctrl-C came.
  Result<void> send(ConstBytes bytes);
  Result<void> receive(Bytes bytes);
  // Words, or the end of them.
  bool has_something() const;
  // Copies what is first there and leaves it; false if that much has not come.
  bool peek(Bytes bytes) const;
  // What send() and receive() say when the other end has closed.
  static Error gone() { return {ErrorKind::kSystem, "the other end has gone"}; }

 private:
  int fd_;
};

// Waits for `count` that dial. `say`: what to tell the person who waits, behind the port.
Result<std::vector<Stream>> accept_some(std::uint16_t port, std::uint32_t count,
                                        const std::string& say);

struct Callee {
  std::string host;
  std::uint16_t port = 0;
};
Result<Stream> dial(const Callee& callee);

}  // namespace weft::cli
