// Socket options that UDP and raw sockets share, and names that older system headers lack.
#pragma once

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cstdint>

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif
#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70
#endif

namespace weft::os {

// Sets a socket option. False: this kernel, or this kind of socket, does not have the option.
inline bool set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

// Forbids fragmentation: each packet is one datagram. ICMP messages about the MTU are ignored while
// packets flow. They are not authenticated, and a forged message would end a transfer.
inline void never_fragment(int fd, int level) {
  if (level == IPPROTO_IP) {
    set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  } else {
    set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  }
}

// Sets the buffer size; more than the system's limit only with privilege. 0 keeps the default.
inline void set_buffer(int fd, int name, int forced, std::uint32_t bytes) {
  if (bytes == 0) return;
  if (!set_option(fd, SOL_SOCKET, forced, static_cast<int>(bytes)))
    set_option(fd, SOL_SOCKET, name, static_cast<int>(bytes));
}

}  // namespace weft::os
