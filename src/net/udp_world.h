// UdpWorld: drives one node over UDP sockets, in real time.
//
// A port of the node is a plane: a local address with one receiving socket and some sending
// sockets, because the UDP source port is an EV or a part of it (steering.h). A run of packets on
// one EV takes one system call at the sender and one at the receiver. Processes of a host share its
// addresses. Each has a slot, from which its UDP ports follow (docs/decisions/0008): the process
// that has bound the ports owns the slot, and a crash frees it. Processes of one host may also
// share memory, which is one more port of the node, after the planes (ShmPort,
// docs/decisions/0009).
//
// With a job secret every packet is sealed when it is copied into its run, and opened in place when
// it arrives. Packets that are not sealed are dropped (docs/security.md).
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
  // Takes the first free slot and opens all sockets. Errors: kInvalid; kExhausted (all slots are
  // taken); kBusy (peers that are not Weft know only one slot, and another process has it);
  // kUnsupported (SRv6 by carrier over links other than a lab's, or MRC's SRv6 without the
  // privilege); kSystem.
  static Result<std::unique_ptr<UdpWorld>> open(const UdpWorldConfig& config);
  ~UdpWorld() override;

  std::uint16_t process() const { return process_; }
  // The form of SRv6, which must be the same at both ends. kAuto: SRv6 is not used.
  Srv6Form srv6_form() const {
    return config_.ev_carrier == EvCarrier::kSrv6 ? config_.srv6 : Srv6Form::kAuto;
  }
  EvCarrier ev_carrier() const { return config_.ev_carrier; }
  // The part of a packet that its ICRC covers; it must be the same at both ends. It follows from
  // the kind of peers and the SRv6 form.
  IcrcCover icrc() const { return config_.icrc; }
  // Our addresses, one for each plane: for attach(), and for peers that connect.
  std::vector<world::Address> addresses() const;
  std::vector<fabric::Ev> evs() const { return steering_.evs(process_); }
  // The number of planes, plus one for shared memory if it is on.
  std::uint32_t port_count() const {
    return static_cast<std::uint32_t>(planes_.size()) + (shm_ != nullptr ? 1 : 0);
  }
  bool has_shared_memory() const { return shm_ != nullptr; }
  // The port of shared memory as a mask; 0: there is none.
  world::PortMask shared_memory_port() const {
    return static_cast<world::PortMask>(shm_ != nullptr ? 1u << planes_.size() : 0);
  }
  // The EV that reaches a process over shared memory. `peer` is its address on plane 0. nullopt:
  // the process is on another host, belongs to another user, or has shared memory off.
  std::optional<fabric::Ev> shared_memory_ev(const world::Address& peer);
  // The largest of the payloads 1024, 2048 and 4096 whose packets fit the path to a peer in every
  // plane, as far as this host knows from its own links and from reports of routers. 0: none fits.
  std::uint32_t payload_to(std::span<const world::Address> peer) const {
    return path_payload().known_payload(peer);
  }
  // As payload_to(), but also probes the paths (path_mtu.h), which takes up to half a second.
  std::uint32_t payload_that_arrives(std::span<const world::Address> peer) const {
    return path_payload().probe_payload(peer);
  }
  // The smallest receive buffer of all planes, in bytes of payload and bookkeeping together.
  std::uint32_t receive_bytes() const;

  // --- world::World
  Time now() const override { return now_; }
  Result<void> attach(std::span<const world::Address> ports, world::Node& node) override;
  // Runs until `limit`, and sleeps when there is nothing to do. Always true, because a peer may
  // send at any time.
  bool step(Time limit) override;
  void wake() override { watch_->wake(); }

  // One pass over sockets, deadlines and the node, without sleeping. True if a packet or an event
  // was handled. `slept_until`: the time until which the caller meant to sleep, if it did. Such a
  // sleep is not lateness.
  bool pass(Time slept_until = Time());
  // Makes passes until a packet or an event was handled, or until `limit`. Between passes it spins
  // for a while, then sleeps, so that the process that we wait for gets the core. True if anything
  // was handled. The datagrams that received packets cause are sent by the next call, so that the
  // caller sees the packets first.
  bool progress(Time limit);
  // For a loop that waits for several worlds: between prepare_wait() and end_wait(), this
  // descriptor is readable when pass() has something to receive. It does not become readable at the
  // node's deadlines and at refusal polls; sleep_until() gives their times.
  int wait_fd() const { return watch_->fd(); }
  // To be called before waiting for wait_fd(): from now on arrivals make it readable. False: do not
  // wait, because something has already arrived, or the system cannot watch (logged once). It may
  // be called repeatedly during a wait, to handle new rings and wake-ups.
  bool prepare_wait();
  // To be called when the wait is over.
  void end_wait();
  // The next time, at most `limit`, at which there is something to do without an arrival: a
  // deadline of the node, a poll for refusals, or new tokens of the rate cap.
  Time sleep_until(Time limit) const;

  // --- security
  // Peers get these two out of band: the fingerprint of the job secret (0: there is none), and our
  // incarnation.
  std::uint32_t secret_fingerprint() const {
    return sealed_ ? sealed_->sessions().fingerprint() : 0;
  }
  std::uint64_t incarnation() const { return sealed_ ? sealed_->sessions().incarnation() : 0; }
  // Opens a session for a QP that is being connected. Packets are sent once the session has keys.
  // Does nothing without a job secret. Errors: kInvalid, kExhausted, kSystem.
  Result<void> secure(std::uint32_t local_qpn, const seal::SecurePeer& peer);
  // Ends the session of a QP and its keys.
  void end_session(std::uint32_t local_qpn);

  // For a forked child: closes the descriptors, so that only the parent holds the slot. abandon()
  // calls only close(), and nothing else of this object may be called afterwards.
  void abandon();

  // The counters net.*: datagrams, system calls, and drops by reason.
  CounterTable counters() const;

 private:
  UdpWorld(const UdpWorldConfig& config, const Steering& steering);

  // --- opening (udp_world_open.cc)
  Result<void> take_process_slot();
  Result<void> open_planes();
  Result<void> open_shared_memory();
  Result<void> make_run_ends();
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
  std::optional<RateCap> rate_cap_;
  HostListener host_;
  std::array<world::Datagram, kPollDatagramsMax> out_, grouped_;
  NetCounters counters_;

  // --- the state of the paths
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
