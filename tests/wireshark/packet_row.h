// The fields that tshark should show for a packet, computed from wire's value of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "row.h"
#include "wire/packet.h"

namespace weft::mrc_test {

// Every field that a row may have.
std::vector<std::string> all_fields();

// The fields of BTH and extension headers, and the Info column. `there` is the number of header
// bytes left of a trimmed write. Headers that were cut off have no fields, and mrc.ts is 0 if the
// TSETH was cut off.
inline constexpr std::size_t kWhole = 1000;
Row row_of(const wire::Packet& packet, std::size_t there = kWhole);

}  // namespace weft::mrc_test
