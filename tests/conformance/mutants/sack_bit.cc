// A preloaded library: flips the lowest bit of ooo_count in every SACK that a device on the loopback
// sends (its addresses end in .1; the tester's do not).
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "next.h"

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  using Send = ssize_t (*)(int, const msghdr*, int);
  static const Send next = reinterpret_cast<Send>(dlsym(RTLD_NEXT, "sendmsg"));
  sockaddr_in own{};
  socklen_t size = sizeof(own);
  const bool device = getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
                      own.sin_family == AF_INET && (ntohl(own.sin_addr.s_addr) & 0xff) == 1;
  constexpr std::uint8_t kSack = 0xdc;
  constexpr std::size_t kHeader = 48, kOooCountLow = 12 + 31;
  for (std::size_t i = 0; device && i < message->msg_iovlen; ++i) {
    const iovec& piece = message->msg_iov[i];
    auto* const bytes = static_cast<std::uint8_t*>(piece.iov_base);
    if (piece.iov_len >= kHeader && bytes[0] == kSack) bytes[kOooCountLow] ^= 1;
  }
  return next(fd, message, flags);
}
