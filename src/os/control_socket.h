// ControlSocket: requests to a running process, one line each, over a unix socket in a folder of
// its owner; each gets one answer. ask() is the other side.
//
// Messages keep their bounds (SOCK_SEQPACKET). At most kClientsMax at a time, kRequestMax bytes a
// request; one that asks for more is cut off. Nothing here waits for a client.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "os/file_descriptor.h"

namespace weft::os {

class ControlSocket {
 public:
  static constexpr std::size_t kClientsMax = 8;
  static constexpr std::size_t kRequestMax = 4096;
  static constexpr std::size_t kAnswerMax = 1u << 20;

  // Takes the place of a socket whose owner is gone. Errors: kWrongState (somebody answers there),
  // kInvalid (path too long), kSystem.
  static Result<ControlSocket> listen(const std::string& path);
  ControlSocket(ControlSocket&& other) noexcept;
  ControlSocket& operator=(ControlSocket&& other) = delete;
  // Removes the socket's name.
  ~ControlSocket();

  // What to poll() for before next(): fills the front of `out`, returns how many.
  std::size_t descriptors(std::span<pollfd, kClientsMax + 1> out) const;

  struct Request {
    std::size_t client = 0;
    std::string_view text{};  // valid till the next call
  };
  // A request that has come, or nothing.
  std::optional<Request> next();
  void answer(const Request& request, std::string_view text);

 private:
  ControlSocket() { clients_.fill(-1); }
  void accept_clients();
  void close_client(std::size_t client);

  FileDescriptor fd_;
  std::string path_;
  std::array<int, kClientsMax> clients_;
  std::array<char, kRequestMax> buffer_;
};

// Sends one request and waits for its answer. Errors: kNotFound (nobody listens there), kSystem.
Result<std::string> ask(const std::string& path, std::string_view request,
                        Duration timeout = Duration::s(5));

}  // namespace weft::os
