// What tshark should show of a packet, from wire's value of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "row.h"
#include "wire/packet.h"

namespace weft::mrc_test {

// Every field that a row may have.
std::vector<std::string> all_fields();

// The fields of BTH and extension headers, and the Info column. `there`: how much of a trimmed
// write's header there is; what was cut off has no field, and mrc.ts is 0 when the TSETH was.
inline constexpr std::size_t kWhole = 1000;
Row row_of(const wire::Packet& packet, std::size_t there = kWhole);

}  // namespace weft::mrc_test
