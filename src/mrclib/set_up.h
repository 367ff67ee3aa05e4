// Set-up of a device and of QPs through verbs and mrc.h: the arguments of mrc_create_qp,
// mrc_modify_qp and mrc_post_send, as values. Pure, except for find_device(). Needs only the two C
// headers, so that programs linked with any lib_mrc.so can use this file.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>
#include <mrc/mrc.h>

#include <cstdint>
#include <string>

namespace weft::mrclib {

// Verbs ask for a port. An MRC QP uses all ports, and names port 1.
inline constexpr std::uint8_t kPort = 1;
// Access flags of a region or QP that peers may write to.
inline constexpr int kRemoteWrite = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

// --- devices -------------------------------------------------------------------------------------

struct FoundDevice {
  ibv_context* verbs = nullptr;  // the caller must close it; null: not found
  bool has_list = false;         // ibv_get_device_list succeeded; otherwise errno has the reason
  std::string names{};           // of the devices that were tried: "mlx5_0, weft0"
};
// Opens the device `wanted`, if it supports MRC. If `wanted` is empty, opens the first device that
// does. `library` has the verbs and MRC functions as members: a Library, or a class that checks
// each call.
template <typename Functions>
FoundDevice find_device(const Functions& library, const std::string& wanted) {
  FoundDevice out;
  int count = 0;
  ibv_device** const list = library.ibv_get_device_list(&count);
  if (list == nullptr) return out;
  out.has_list = true;
  for (int i = 0; i < count && out.verbs == nullptr; ++i) {
    const std::string name = library.ibv_get_device_name(list[i]);
    out.names += (out.names.empty() ? "" : ", ") + name;
    if (!wanted.empty() && name != wanted) continue;
    ibv_context* const context = library.ibv_open_device(list[i]);
    mrc_device_attr attr{};
    int supported = 0;
    if (context != nullptr && library.mrc_query_device(context, &attr, &supported) == 0 &&
        supported != 0) {
      out.verbs = context;
    } else if (context != nullptr) {
      library.ibv_close_device(context);
    }
  }
  library.ibv_free_device_list(list);
  return out;
}

// --- QPs -----------------------------------------------------------------------------------------

struct QueueBounds {
  std::uint32_t sends = 1, receives = 1, pieces = 1, inline_bytes = 0;
};
struct QpParts {
  ibv_pd* pd = nullptr;
  mrc_cq *send_cq = nullptr, *receive_cq = nullptr;
};
inline mrc_qp_init_attr qp_init(const QpParts& parts, const QueueBounds& bounds) {
  mrc_qp_init_attr out{};
  out.send_cq = parts.send_cq;
  out.recv_cq = parts.receive_cq;
  out.pd = parts.pd;
  out.cap.max_send_wr = bounds.sends;
  out.cap.max_recv_wr = bounds.receives;
  out.cap.max_send_sge = bounds.pieces;
  out.cap.max_recv_sge = 1;
  out.cap.max_inline_data = bounds.inline_bytes;
  return out;
}

// The verbs arguments of one mrc_modify_qp call.
struct QpChange {
  ibv_qp_attr attr{};
  int mask = IBV_QP_STATE;
};
inline QpChange to_state(ibv_qp_state state) {
  QpChange out;
  out.attr.qp_state = state;
  return out;
}
struct InitOptions {
  int access = kRemoteWrite;
  std::uint8_t port = kPort;  // 0: not set. An MRC QP ignores the port, but programs set it.
};
// To INIT: in RESET receives cannot be posted, in INIT they can.
inline QpChange to_init(const InitOptions& options = {}) {
  QpChange out = to_state(IBV_QPS_INIT);
  out.attr.qp_access_flags = static_cast<unsigned>(options.access);
  out.attr.port_num = options.port;
  out.mask |= IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | (options.port != 0 ? IBV_QP_PORT : 0);
  return out;
}
// The peer's QP and its address.
struct QpPeer {
  ibv_gid gid{};
  std::uint32_t qpn = 0, psn = 0;
  ibv_mtu mtu = IBV_MTU_4096;
  int gid_index = 3;  // of our GID
};
inline QpChange to_rtr(const QpPeer& peer) {
  QpChange out = to_state(IBV_QPS_RTR);
  out.attr.path_mtu = peer.mtu;
  out.attr.ah_attr.is_global = 1;
  out.attr.ah_attr.grh.dgid = peer.gid;
  out.attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(peer.gid_index);
  out.attr.ah_attr.port_num = kPort;
  out.attr.dest_qp_num = peer.qpn;
  out.attr.rq_psn = peer.psn;
  out.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  return out;
}
inline QpChange to_rts(std::uint32_t psn) {
  QpChange out = to_state(IBV_QPS_RTS);
  out.attr.sq_psn = psn;
  out.mask |= IBV_QP_SQ_PSN;
  return out;
}

// --- work ----------------------------------------------------------------------------------------

struct WriteWork {
  std::uint64_t id = 0, from = 0, to = 0;  // `from` and `to` are addresses
  std::uint32_t size = 0, lkey = 0, rkey = 0;
  bool with_immediate = false;
  std::uint32_t immediate = 0;
  unsigned flags = IBV_SEND_SIGNALED;
};
// Sets all members of `work` except `next`. `piece` must outlive the post.
inline void set_write(const WriteWork& write, ibv_send_wr& work, ibv_sge& piece) {
  piece = {.addr = write.from, .length = write.size, .lkey = write.lkey};
  work.wr_id = write.id;
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = write.with_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  work.imm_data = htobe32(write.immediate);
  work.send_flags = write.flags;
  work.wr.rdma.remote_addr = write.to;
  work.wr.rdma.rkey = write.rkey;
}

}  // namespace weft::mrclib
