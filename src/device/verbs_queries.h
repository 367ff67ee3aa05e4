// Results of verbs queries about a Weft device, its ports and their GIDs.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

#include "device/software_device.h"

namespace weft::device {

ibv_device_attr device_attributes(const SoftwareDevice& device);
ibv_port_attr port_attributes(SoftwareContext& context, std::uint8_t port);
// The entry `index` of a port's GID table, which has kGidCount entries. An entry without an address
// is all zeros.
ibv_gid gid_entry(const SoftwareDevice& device, std::uint32_t port, int index);

// These functions are for the function tables in ibv_context.
int query_port_op(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t size);
int query_device_ex_op(ibv_context* context, const ibv_query_device_ex_input* input,
                       ibv_device_attr_ex* out, std::size_t size);

}  // namespace weft::device
