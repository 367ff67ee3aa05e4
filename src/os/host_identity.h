// Which host is this, to tell from another? Not a name: two ends compare it and ask no more.
#pragma once

#include <cstdint>
#include <string>

namespace weft::os {

// The same for all processes that share a loopback: those of one boot of one kernel, in one network
// namespace (`network_namespace`: a path, empty for this process's own). 0: the system does not say.
std::uint64_t host_identity(const std::string& network_namespace = {});

}  // namespace weft::os
