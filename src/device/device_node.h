// DeviceNode: wraps the endpoint of a device. It takes what applications post, gathers payload from
// several pieces of memory, and delivers completions.
//
// Posts wait in the rings of their QPs until a holder of the engine's lock takes them. They are
// taken before incoming datagrams are processed, so that a receive that was posted before the peer
// heard of it is always there. They are also taken before the endpoint is asked for packets.
//
// A write of several pieces has no single address: the endpoint gets one that names the QP and the
// slot. The payload of its packets is turned into real memory here: the piece itself if the packet
// lies in one piece, otherwise a copy of at most an MTU.
//
// Owned by DeviceEngine. submit() and has_posts() may be called from any thread; all other
// functions are called under the engine's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "device/device_qp.h"
#include "device/short_lock.h"
#include "net/host_memory.h"
#include "transport/endpoint.h"

namespace weft::device {

// The most pieces of memory of one write.
inline constexpr std::uint32_t kPiecesMax = 16;

class DeviceNode final : public world::Node {
 public:
  struct Options {
    std::uint32_t qps_max = 2048;  // a power of two, at most 2^15
    std::uint32_t sends_max = 1;   // in the endpoint at a time
    std::uint32_t mtu = 4096;
  };
  // Both outlive the node.
  DeviceNode(const Options& options, transport::Endpoint& endpoint, net::HostMemory& memory);

  void add(DeviceQp& qp);
  // REQUIRES that no thread posts on the QP any more.
  void remove(DeviceQp& qp);

  // Announces posts of the QP. Returns true if it was not yet announced since its posts were last
  // taken.
  bool submit(DeviceQp& qp) {
    if (qp.queued.exchange(true)) return false;
    enlist(qp);
    return true;
  }
  bool has_posts() const { return pending_any_.load(); }

  // Delivers completions to their CQs, and failures to the event queues of their contexts.
  void deliver_completions(Time now);
  // The region is deregistered: writes that send from it fail.
  void on_region_gone(Time now, std::uint32_t key);
  // Ports that changed since the last call: bit i for index i. `up` is their present state.
  struct PortNews {
    world::PortMask changed = 0, up = 0;
  };
  PortNews take_port_news();
  world::PortMask ports_up() const { return ports_up_; }

  // --- world::Node
  void on_datagrams(Time now, std::span<const world::Datagram> in) override;
  void on_port(Time now, world::PortIndex port, world::PortState state) override;
  void on_deadline(Time now, Duration late_by) override { endpoint_.on_deadline(now, late_by); }
  Time next_deadline() const override { return endpoint_.next_deadline(); }
  std::size_t poll_transmit(Time now, std::span<const world::PortRoom> room,
                            std::span<world::Datagram> out) override;

 private:
  static constexpr std::size_t kGatherMax = 64;  // datagrams of one poll

  void enlist(DeviceQp& qp);
  DeviceQp* find(transport::Qpn qpn) const;
  void drain(Time now);
  void post_new(Time now, DeviceQp& qp);
  static constexpr std::uint32_t kHandedMax = 16;  // writes in one call of the endpoint
  std::uint32_t post_batch(Time now, DeviceQp& qp, std::uint32_t count);
  bool find_source(DeviceQp& qp, const Piece& piece) const;
  bool translate(DeviceQp& qp, std::span<Piece> pieces) const;
  bool locate(DeviceQp& qp, std::uint32_t slot);
  void stall(DeviceQp& qp);
  void fail_locally(Time now, DeviceQp& qp);

  void retry_stalled(Time now);
  std::size_t deliver_run(std::span<const transport::Completion> completions);
  void deliver(Time now, const transport::Completion& completion);
  void finish_write(Time now, DeviceQp& qp, ibv_wc_status status, std::uint32_t vendor);
  void finish_receive(Time now, DeviceQp& qp, const transport::Completion& completion);
  void push(Time now, DeviceQp& qp, CompletionQueue& cq, const ibv_wc& wc, Solicited solicited);
  void flush_new(Time now, DeviceQp& qp);
  void on_failure(Time now, const transport::Endpoint::QpFailure& failure);

  std::uint64_t gather_address(const DeviceQp& qp, std::uint32_t slot) const;
  void gather(world::Datagram& datagram, std::byte* spare) const;

  transport::Endpoint& endpoint_;
  net::HostMemory& memory_;
  Options options_;
  std::vector<DeviceQp*> qps_;  // by QPN & mask: no two live QPs share a place
  std::uint32_t sends_under_way_ = 0;
  bool gathers_ = false;  // some write of several pieces was handed over
  // kGatherMax buffers of one MTU; pages are touched when first used.
  std::unique_ptr<std::byte[]> spare_;
  world::PortMask ports_up_ = 0, ports_changed_ = 0;
  std::vector<std::uint32_t> stalled_, again_;
  // For deliver_completions(), which is called too often for a fresh array.
  std::array<transport::Completion, 64> completed_{};

  ShortLock pending_lock_;
  std::vector<std::uint32_t> pending_, draining_;
  std::atomic<bool> pending_any_{false};
};

}  // namespace weft::device
