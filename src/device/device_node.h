// DeviceNode: the node of a device, around its endpoint. It passes the application's posts to the
// endpoint, gathers payload from several pieces of memory, and delivers completions.
//
// Posts wait in the rings of their QPs until the thread that holds the engine's lock takes them.
// That thread takes them before it processes incoming datagrams: a peer may send as soon as it
// learns of a posted receive, and the endpoint must have that receive by then. It also takes them
// before it asks the endpoint for packets.
//
// A write of several pieces has no single address: the endpoint gets an artificial address that
// names the QP and the write's slot in the QP's ring. poll_transmit() replaces it in each packet:
// by the address in the piece if the packet's payload lies in one piece, otherwise by the address
// of a copy, at most an MTU long.
//
// Owned by DeviceEngine. submit() and has_posts() may be called from any thread; all other
// functions REQUIRE the engine's lock.
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

// The most pieces of memory that one write may have.
inline constexpr std::uint32_t kPiecesMax = 16;

class DeviceNode final : public world::Node {
 public:
  struct Options {
    std::uint32_t qps_max = 2048;  // a power of two, at most 2^15
    std::uint32_t sends_max = 1;   // writes that the endpoint holds at a time
    std::uint32_t mtu = 4096;
  };
  // `endpoint` and `memory` outlive the node.
  DeviceNode(const Options& options, transport::Endpoint& endpoint, net::HostMemory& memory);

  void add(DeviceQp& qp);
  // REQUIRES that no thread posts on the QP any more.
  void remove(DeviceQp& qp);

  // Tells the node that the QP has new posts. Returns false if the node knows already.
  bool submit(DeviceQp& qp) {
    if (qp.queued.exchange(true)) return false;
    add_to_pending(qp);
    return true;
  }
  bool has_posts() const { return pending_any_.load(); }

  // Delivers completions to their CQs, and failures to the event queues of their contexts.
  void deliver_completions(Time now);
  // The region with this key is deregistered: QPs with a write from it fail.
  void on_region_gone(Time now, std::uint32_t key);
  // The ports that changed since the last call: bit i is port i. `up`: all ports that are up now.
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
  static constexpr std::size_t kGatherMax = 64;  // datagrams that one poll_transmit() may return

  void add_to_pending(DeviceQp& qp);
  DeviceQp* find(transport::Qpn qpn) const;
  void drain(Time now);
  void post_new(Time now, DeviceQp& qp);
  static constexpr std::uint32_t kHandedMax = 16;  // writes handed to the endpoint in one call
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
  std::vector<DeviceQp*> qps_;  // by QPN modulo qps_max: no two live QPs have the same index
  std::uint32_t sends_under_way_ = 0;
  bool has_gathered_writes_ = false;  // a write of several pieces was handed to the endpoint
  // Copies of payload for one poll_transmit(): kGatherMax buffers of one MTU. Pages are touched
  // when first used.
  std::unique_ptr<std::byte[]> spare_;
  world::PortMask ports_up_ = 0, ports_changed_ = 0;
  std::vector<std::uint32_t> stalled_, retrying_;
  // Used by deliver_completions(). A member, because that function is called too often to set up a
  // new array each time.
  std::array<transport::Completion, 64> completed_{};

  ShortLock pending_lock_;
  std::vector<std::uint32_t> pending_, draining_;
  std::atomic<bool> pending_any_{false};
};

}  // namespace weft::device
