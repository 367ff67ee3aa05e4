// ControlSocket: the server end of a unix socket, through which other programs send one-line
// requests to a running process. The socket file is in a folder of the process's user. Each request
// gets one answer. ask() is the client end.
//
// Message boundaries are kept (SOCK_SEQPACKET). At most kClientsMax clients are served at a time. A
// client with a request of more than kRequestMax bytes is disconnected. The server never blocks on
// a client.
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

  // Creates the socket file; replaces a file whose process has ended. Errors: kWrongState (a
  // running process listens there), kInvalid (path too long), kSystem.
  static Result<ControlSocket> listen(const std::string& path);
  ControlSocket(ControlSocket&& other) noexcept;
  ControlSocket& operator=(ControlSocket&& other) = delete;
  // Removes the socket file.
  ~ControlSocket();

  // Writes the descriptors to poll() before next() to the front of `out`, and returns their number.
  std::size_t descriptors(std::span<pollfd, kClientsMax + 1> out) const;

  struct Request {
    std::size_t client = 0;
    std::string_view text{};  // valid until the next call
  };
  // The next request that has arrived; nullopt if there is none.
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

// Sends one request and waits for its answer. Errors: kNotFound (no process listens there),
// kSystem.
Result<std::string> ask(const std::string& path, std::string_view request,
                        Duration timeout = Duration::s(5));

}  // namespace weft::os
