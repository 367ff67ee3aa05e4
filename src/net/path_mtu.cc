#include "net/path_mtu.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "net/address.h"
#include "net/file_descriptor.h"

namespace weft::net {

std::uint32_t path_mtu(const PathEnds& ends) {
  const bool v4 = is_ipv4(ends.from);
  if (v4 != is_ipv4(ends.to)) return 0;
  const FileDescriptor fd(socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress from = to_sockaddr(ends.from, 0);
  const SocketAddress to = to_sockaddr(ends.to, 9);  // any port: nothing is sent
  int mtu = 0;
  socklen_t size = sizeof(mtu);
  if (!fd.is_open() ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&from.storage), from.size) != 0 ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 ||
      getsockopt(fd.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU : IPV6_MTU, &mtu, &size) !=
          0) {
    return 0;
  }
  return mtu > 0 ? static_cast<std::uint32_t>(mtu) : 0;
}

}  // namespace weft::net
