// An identifier of this host, not its name. Two processes compare theirs to learn whether they run
// on the same host.
#pragma once

#include <cstdint>
#include <string>

namespace weft::os {

// Equal for all processes that share a loopback interface: same boot of the same kernel, same
// network namespace. `network_namespace` is a path; empty: the namespace of this process. 0: the
// system does not say.
std::uint64_t host_identity(const std::string& network_namespace = {});

}  // namespace weft::os
