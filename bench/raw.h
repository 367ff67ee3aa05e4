// Used by all raw_* programs: network namespaces, addresses, large buffers, exit with a one-line
// message.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace raw {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "raw: %s: %s\n", what.c_str(), std::strerror(errno));
  _exit(1);
}

// Enters the network namespace with this name. An empty name: stays in the present one.
inline void enter(const std::string& name) {
  if (name.empty()) return;
  const int fd = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) fail(name);
  close(fd);
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  void set_any() {
    if (storage.ss_family == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr = in6addr_any;
    } else {
      reinterpret_cast<sockaddr_in*>(&storage)->sin_addr.s_addr = htonl(INADDR_ANY);
    }
  }
};

inline Address parse(const std::string& text, std::uint16_t port) {
  Address out;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    out.size = sizeof(*v4);
  } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    out.size = sizeof(*v6);
  } else {
    errno = EINVAL;
    fail(text);
  }
  return out;
}

// Touches every page, so that no page fault happens during the measurement.
inline char* large_buffer(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  return static_cast<char*>(memory);
}

}  // namespace raw
