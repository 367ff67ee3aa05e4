// UdpWorld: drives one node over UDP sockets, in real time.
//
// A port of the node is a plane: a local address with one receiving socket and some sending
// sockets, because a UDP source port is (part of) an EV; see Steering. A run of packets on one EV
// leaves in one system call and arrives in one. Processes of a host share its addresses. Each has a
// slot, from which its UDP ports follow (docs/decisions/0008): the process that has bound the ports
// owns the slot, and a crash frees it. Processes of one host may also share memory, which is one
// more port of the node, after the planes (ShmPort, docs/decisions/0009).
//
// With a job secret every packet is sealed before it is sent, where the copy into the run is the
// encryption, and opened in place when it arrives. Packets that are not sealed are dropped
// (docs/security.md).
//
// Everything is allocated by open(), sessions by secure(). One thread at a time calls it; any
// thread may call wake().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "net/host_listener.h"
#include "net/link_watch.h"
#include "net/net_counters.h"
#include "net/path_payload.h"
#include "net/plane.h"
#include "net/poll_order.h"
#include "net/rate_cap.h"
#include "net/refusal_polls.h"
#include "net/run_receiver.h"
#include "net/run_sender.h"
#include "net/run_shape.h"
#include "net/sealed_packets.h"
#include "net/sender_courtesy.h"
#include "net/shm_port.h"
#include "net/socket_watch.h"
#include "net/steering.h"
#include "net/udp_world_config.h"
#include "os/waiter.h"
#include "world/world.h"

namespace weft::net {

class UdpWorld final : public world::World {
 public:
  // Takes the first free slot. Errors: kInvalid; kExhausted (all slots taken); kBusy (with peers
  // that are not Weft there is only one slot, and another process has it); kSystem; kUnsupported
  // (SRv6 over links that are not the lab's, or without the privilege).
  static Result<std::unique_ptr<UdpWorld>> open(const UdpWorldConfig& config);
  ~UdpWorld() override;

  std::uint16_t process() const { return process_; }
  // Where the uSIDs are; both ends must agree. kAuto: there are none.
  Srv6Form srv6_form() const {
    return config_.ev_carrier == EvCarrier::kSrv6 ? config_.srv6 : Srv6Form::kAuto;
  }
  EvCarrier ev_carrier() const { return config_.ev_carrier; }
  // The part of a packet that ICRCs cover, by the kind of peers and the SRv6 form. Both ends must
  // agree.
  IcrcCover icrc() const { return config_.icrc; }
  // Our addresses, one per plane: for attach(), and for peers to connect to.
  std::vector<world::Address> addresses() const;
  std::vector<fabric::Ev> evs() const { return steering_.evs(process_); }
  // The planes, plus the port of shared memory if there is one.
  std::uint32_t port_count() const {
    return static_cast<std::uint32_t>(planes_.size()) + (shm_ != nullptr ? 1 : 0);
  }
  bool has_shared_memory() const { return shm_ != nullptr; }
  // The port of shared memory as a mask; 0: there is none.
  world::PortMask shared_memory_port() const {
    return static_cast<world::PortMask>(shm_ != nullptr ? 1u << planes_.size() : 0);
  }
  // The EV that reaches a process (by its address on plane 0) over shared memory. nullopt if it is
  // on another host, belongs to another user, or has shared memory off.
  std::optional<fabric::Ev> shared_memory_ev(const world::Address& peer);
  // The largest payload of 1024, 2048 and 4096 whose packets fit the path to that peer in every
  // plane, as this host knows it from its own links and from what routers reported. 0: none fits.
  std::uint32_t payload_to(std::span<const world::Address> peer) const {
    return path_payload().known(peer);
  }
  // The same, and the paths are probed too (path_mtu.h), which takes up to half a second.
  std::uint32_t payload_that_arrives(std::span<const world::Address> peer) const {
    return path_payload().probed(peer);
  }
  // The smallest receive buffer of the planes, in bytes of payload and bookkeeping together.
  std::uint32_t receive_bytes() const;

  // --- world::World
  Time now() const override { return now_; }
  Result<void> attach(std::span<const world::Address> ports, world::Node& node) override;
  // Sleeps when there is nothing to do. Always true, because a peer may always send.
  bool step(Time limit) override;
  void wake() override { watch_->wake(); }

  // One pass over sockets, deadlines and the node, without sleeping. True if anything moved. A
  // caller that slept on purpose passes the time until which it meant to sleep: that is not
  // lateness.
  bool pass(Time slept_until = Time());
  // Runs until something moved, or until `limit`: it spins for a while, then sleeps, so that the
  // process that we wait for gets the core. True if anything moved. The next call sends what the
  // received packets cause, so that the caller sees them first.
  bool progress(Time limit);
  // For a loop that waits for several worlds: readable when pass() has something to receive,
  // between prepare_wait() and end_wait(). It does not cover the node's deadline and refusals;
  // sleep_until() covers both.
  int wait_fd() const { return watch_->fd(); }
  // To be called before waiting for wait_fd(): from now on arrivals make it readable. False: do not
  // wait, because something arrived meanwhile or the system cannot watch (logged once). It may be
  // called another time during a wait, to handle new rings and wake-ups.
  bool prepare_wait();
  // The wait is over.
  void end_wait();
  // The next time at which there is something to do without an arrival: a deadline, or tokens to
  // send with. At the latest `limit`.
  Time sleep_until(Time limit) const;

  // --- security
  // For peers, out of band: the fingerprint of the secret (0: there is none), and our incarnation.
  std::uint32_t secret_fingerprint() const {
    return sealed_ ? sealed_->sessions().fingerprint() : 0;
  }
  std::uint64_t incarnation() const { return sealed_ ? sealed_->sessions().incarnation() : 0; }
  // Opens a session for a QP that is being connected. Packets are sent once it has keys. Does
  // nothing without a secret. Errors: kInvalid, kExhausted, kSystem.
  Result<void> secure(std::uint32_t local_qpn, const seal::SecurePeer& peer);
  // Ends the session of a QP and its keys.
  void end_session(std::uint32_t local_qpn);

  // For a forked child: closes the descriptors, so that only the parent holds the slot. It calls
  // only close(), and nothing else of this object may be called afterwards.
  void abandon();

  // The counters net.*: datagrams, system calls, and drops by reason.
  CounterTable counters() const;

 private:
  UdpWorld(const UdpWorldConfig& config, const Steering& steering);

  // --- opening (udp_world_open.cc)
  Result<void> open_slot();
  Result<void> open_planes();
  Result<void> open_shared_memory();
  Result<void> open_runs();
  Result<void> watch_all();
  PathPayload path_payload() const;

  // --- events (udp_world_events.cc)
  bool handle_events(std::span<const SocketWatch::Event> events);
  bool receive(std::uint32_t plane, std::size_t runs_max);
  void report_port(std::uint32_t plane);
  void report_overflow(std::uint32_t plane);
  void report_link_changes();
  bool poll_refusals(std::uint32_t plane);
  void poll_next_refusals();
  void report_refused_port(std::uint32_t plane, const os::IpPort& refused);
  void report_refusal(std::uint32_t plane, const world::Address& peer);
  void try_host_port();
  bool receive_for_host(std::uint32_t plane);

  // --- time (udp_world.cc)
  Time clock() const { return waiter_.clock(); }
  bool poll_ring();
  bool poll_busy_plane();
  bool poll_all(Time sleep_until);
  bool receive_all(Time sleep_until);
  bool run_deadlines(Time due);
  bool transmit();
  void become_courteous();

  UdpWorldConfig config_;
  Steering steering_;
  std::uint16_t process_ = 0;
  world::Node* node_ = nullptr;

  // --- sockets and runs
  std::vector<Plane> planes_;
  std::unique_ptr<SealedPackets> sealed_;  // null: packets are plain
  std::optional<RunSender> sender_;
  std::optional<RunReceiver> receiver_;
  std::unique_ptr<ShmPort> shm_;  // null: shared memory is off
  std::optional<RateCap> cap_;
  HostListener host_;
  std::array<world::Datagram, kPollDatagramsMax> out_, grouped_;
  NetCounters counters_;

  // --- what is known of the paths
  std::optional<LinkWatch> links_;
  RunShape run_shape_;
  RefusalPolls refusals_;
  bool is_from_here_ = false;  // the last packet came from a process of this host

  // --- waiting
  std::unique_ptr<SocketWatch> watch_;
  os::Waiter waiter_;
  PollOrder order_;
  SenderCourtesy courtesy_;
  Time now_, last_pass_;
};

}  // namespace weft::net
