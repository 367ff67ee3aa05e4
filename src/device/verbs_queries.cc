#include "device/verbs_queries.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "device/c_edge.h"
#include "device/qp_attributes.h"
#include "device/queue_pair.h"
#include "os/interfaces.h"

namespace weft::device {

SoftwareContext::SoftwareContext(SoftwareDevice& of_device) : device(of_device) {
  ibv_context& context = verbs.context;
  verbs.sz = sizeof(verbs);
  verbs.query_port = query_port_op;
  verbs.query_device_ex = query_device_ex_op;
  context.device = device.verbs();
  context.cmd_fd = -1;
  context.async_fd = events.fd();
  context.num_comp_vectors = 1;
  pthread_mutex_init(&context.mutex, nullptr);
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

ibv_device_attr device_attributes(const SoftwareDevice& device) {
  const EngineLimits& limits = device.config().limits;
  ibv_device_attr attr{};
  std::memcpy(attr.fw_ver, "weft", 5);
  attr.node_guid = attr.sys_image_guid = htobe64(device.guid());
  attr.max_mr_size = 1ull << 47;
  attr.page_size_cap = 0xffff'f000;
  attr.max_qp = static_cast<int>(limits.qps_max);
  attr.max_qp_wr = kWorkMax;
  attr.max_sge = kPiecesMax;
  attr.max_cq = kCqsMax;
  attr.max_cqe = CompletionQueue::kEntriesMax;
  attr.max_mr = static_cast<int>(limits.regions_max);
  attr.max_pd = kPdsMax;
  attr.atomic_cap = IBV_ATOMIC_NONE;
  attr.max_pkeys = 1;
  attr.phys_port_cnt = device.port_count();
  return attr;
}

namespace {

// A port that a controller disabled is down.
bool is_disabled(SoftwareContext& context, std::uint32_t port) {
  control::ControllerState& controller = context.device.controller();
  const auto model = controller.snapshot();
  if (!model) return false;
  const auto enabled = control::is_port_enabled(**model, controller.shape(), port);
  return enabled && !*enabled;
}

// True also if the kernel does not report the carrier.
bool has_carrier(const Ipv6& address) {
  const auto interfaces = os::list_interfaces();
  if (!interfaces) return true;
  const os::Interface* const on = os::interface_of(address, *interfaces);
  return on != nullptr && on->up && on->running;
}

}  // namespace

ibv_port_attr port_attributes(SoftwareContext& context, std::uint8_t port) {
  const std::uint32_t mtu = context.device.config().world.mtu;
  ibv_port_attr attr{};
  const bool disabled = is_disabled(context, port);
  const bool down = disabled || !has_carrier(context.device.gid(port));
  attr.state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
  attr.max_mtu = attr.active_mtu = mtu_of(mtu);
  attr.gid_tbl_len = kGidCount;
  attr.max_msg_sz = kMessageMax;
  attr.pkey_tbl_len = 1;
  attr.max_vl_num = 1;
  attr.active_width = 2;                          // 4x
  attr.active_speed = 32;                         // EDR: verbs cannot express the rate of a socket
  attr.phys_state = disabled ? 3 : down ? 2 : 5;  // 3: disabled, 2: polling, 5: link up
  attr.link_layer = IBV_LINK_LAYER_ETHERNET;
  return attr;
}

ibv_gid gid_entry(const SoftwareDevice& device, std::uint32_t port, int index) {
  ibv_gid gid{};
  if (index != kGidIndex) return gid;
  std::array<std::byte, 16> bytes;
  base::store_ipv6(bytes, 0, device.gid(port));
  std::memcpy(gid.raw, bytes.data(), bytes.size());
  return gid;
}

int query_port_op(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t size) {
  const int error = guarded([&] {
    SoftwareContext* const ours = SoftwareContext::of(context);
    if (ours == nullptr || out == nullptr || !ours->device.has_port(port)) return EINVAL;
    const ibv_port_attr attr = port_attributes(*ours, port);
    std::memset(out, 0, size);
    std::memcpy(out, &attr, std::min(size, sizeof(attr)));
    return 0;
  });
  return returned(error, fail_value);
}

int query_device_ex_op(ibv_context* context, const ibv_query_device_ex_input*,
                       ibv_device_attr_ex* out, std::size_t size) {
  const int error = guarded([&] {
    SoftwareContext* const ours = SoftwareContext::of(context);
    if (ours == nullptr || out == nullptr) return EINVAL;
    ibv_device_attr_ex attr{};
    attr.orig_attr = device_attributes(ours->device);
    attr.phys_port_cnt_ex = ours->device.port_count();
    std::memset(out, 0, size);
    std::memcpy(out, &attr, std::min(size, sizeof(attr)));
    return 0;
  });
  return returned(error, fail_value);
}

}  // namespace weft::device
