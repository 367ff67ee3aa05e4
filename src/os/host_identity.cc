#include "os/host_identity.h"

#include <sys/stat.h>

#include <fstream>

#include "base/hash.h"

namespace weft::os {

std::uint64_t host_identity(const std::string& network_namespace) {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat name_space {};
  const char* const path =
      network_namespace.empty() ? "/proc/self/ns/net" : network_namespace.c_str();
  if (!std::getline(in, boot) || boot.empty() || stat(path, &name_space) != 0) return 0;
  TraceHash hash;
  hash.fold(ConstBytes(reinterpret_cast<const std::byte*>(boot.data()), boot.size()));
  hash.fold(name_space.st_ino);
  return hash.value() | 1;  // because 0 means unknown
}

}  // namespace weft::os
