// DeviceNode: the endpoint of a device, wrapped: takes what applications post, gathers payload from
// several pieces of memory, and brings completions up.
//
// Posts wait in rings of their QPs until somebody who holds the engine's lock passes by: they are
// taken before incoming datagrams are looked at, so that a receive that was posted before the peer
// was told of it is always there, and before packets are asked for.
//
// A write of several pieces has no address of its own: the endpoint gets one that names the QP and
// the slot, and what it gives as payload is turned into memory here: the piece itself where the
// packet lies in one, else a copy of at most an MTU.
//
// Owned by DeviceEngine. submit() and has_posts() may come from any thread; everything else is
// called under the engine's lock.
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

// Pieces of memory of one write at most.
inline constexpr std::uint32_t kPiecesMax = 16;

class DeviceNode final : public world::Node {
 public:
  struct Options {
    std::uint32_t qps_max = 2048;  // a power of two, at most 2^15
    std::uint32_t sends_max = 1;   // given to the endpoint at a time
    std::uint32_t mtu = 4096;
  };
  // Both outlive the node.
  DeviceNode(const Options& options, transport::Endpoint& endpoint, net::HostMemory& memory);

  void add(DeviceQp& qp);
  // Nothing is posted on it any more, by anybody.
  void remove(DeviceQp& qp);

  // It has posts. True: nobody had said so since they were last taken.
  bool submit(DeviceQp& qp) {
    if (qp.queued.exchange(true)) return false;
    enlist(qp);
    return true;
  }
  bool has_posts() const { return pending_any_.load(); }

  // Completions to their CQs, failures to those who are told.
  void collect(Time now);
  // The region is gone: writes that send from it fail.
  void on_region_gone(Time now, std::uint32_t key);
  // Ports that changed since this was last asked: bit i for index i; `up` is what they are.
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
  void take(Time now, DeviceQp& qp);
  static constexpr std::uint32_t kHandedMax = 16;  // writes at once
  std::uint32_t hand_over(Time now, DeviceQp& qp, std::uint32_t count);
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
  std::vector<DeviceQp*> qps_;  // by QPN & mask: live ones never share a place
  std::uint32_t sends_under_way_ = 0;
  bool gathers_ = false;  // a write of several pieces was ever handed over
  // kGatherMax of the MTU each; touched as far as it is used.
  std::unique_ptr<std::byte[]> spare_;
  world::PortMask ports_up_ = 0, ports_changed_ = 0;
  std::vector<std::uint32_t> stalled_, again_;
  std::array<transport::Completion, 64> completed_{};  // of collect(), which is called all the time

  ShortLock pending_lock_;
  std::vector<std::uint32_t> pending_, draining_;
  std::atomic<bool> pending_any_{false};
};

}  // namespace weft::device
