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

#include <poll.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "net/link_watch.h"
#include "net/rate_cap.h"
#include "net/shm_port.h"
#include "net/srv6_socket.h"
#include "net/steering.h"
#include "os/alarm.h"
#include "os/udp_socket.h"
#include "os/waiter.h"
#include "os/wake_event.h"
#include "seal/session_table.h"
#include "wire/datagram.h"
#include "wire/drop_reason.h"
#include "wire/icrc.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::net {

using wire::IcrcCover;

// The kind of the peers. Weft's processes share an address, and their ports distinguish them. Other
// MRC implementations send to port 4791 from any port, and check an ICRC over the whole packet.
enum class Peers : std::uint8_t { kWeft, kMrc };

// Four planes on the loopback, 127.0.1.1 to 127.0.4.1. They need no set-up and no privilege.
std::vector<Ipv6> loopback_planes();

struct UdpWorldConfig {
  // Our address in each; with SRv6 they follow from `place`.
  std::vector<Ipv6> planes = loopback_planes();
  EvMode ev_mode = EvMode::kUdpPort;
  std::uint32_t evs_per_plane = 4;
  std::optional<FabricPlace> place{};  // of this host, in a fabric steered by SRv6
  Srv6Form srv6 = Srv6Form::kAuto;     // where the uSIDs are in a packet
  std::string network_namespace{};     // a path such as /run/netns/NAME; empty: this process's own
  std::uint32_t mtu = 4096;            // payload of a full packet
  Peers peers = Peers::kWeft;
  IcrcCover icrc = IcrcCover::kHeaders;  // kFull with Peers::kMrc
  // Requested sizes; receive_bytes() returns what the system gave.
  std::uint32_t receive_buffer_bytes = 4u << 20;
  std::uint32_t send_buffer_bytes = 256u << 10;
  // Time 0 of the world, by the system's monotonic clock.
  Time epoch{};
  // How long an idle world spins before it sleeps.
  Duration spin = os::kSpin;
  // The most payload bits per second over all planes; absent: no limit.
  std::optional<Rate> rate_cap{};
  // The secret that all processes of the job share, at least 32 bytes. Empty: packets are not
  // sealed.
  std::vector<std::byte> job_secret{};
  std::uint32_t secured_qps_max = 1024;
  // Whether to reach processes of this host over shared memory too. It takes a port: with 8 planes
  // there is none left, and it is off.
  bool shared_memory = true;
  std::size_t ring_bytes = 1u << 20;  // for each direction; a power of two
};

class UdpWorld final : public world::World {
 public:
  // Takes the first free slot. Errors: kInvalid; kExhausted (all slots taken); kBusy (with peers
  // that are not Weft there is only one slot, and another process has it); kSystem; kUnsupported
  // (SRv6 over links that are not the lab's, or without the privilege).
  static Result<std::unique_ptr<UdpWorld>> open(const UdpWorldConfig& config);
  // The configuration that open() uses: planes follow from the place, other fields from the kind of
  // peers. Errors: kInvalid.
  static Result<UdpWorldConfig> settle(UdpWorldConfig config);
  ~UdpWorld() override;

  std::uint16_t process() const { return process_; }
  // Where the uSIDs are; both ends must agree. kAuto: there are none.
  Srv6Form srv6_form() const {
    return config_.ev_mode == EvMode::kSrv6 ? config_.srv6 : Srv6Form::kAuto;
  }
  EvMode ev_mode() const { return config_.ev_mode; }
  // The part of a packet that ICRCs cover, by the kind of peers and the SRv6 form. Both ends must
  // agree.
  IcrcCover icrc() const { return config_.icrc; }
  // Our addresses, one per plane: for attach(), and for peers to connect to.
  std::vector<world::Address> addresses() const;
  std::vector<fabric::Ev> evs() const { return steering_->evs(process_); }
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
  std::uint32_t payload_to(std::span<const world::Address> peer) const;
  // The same, and the paths are probed too (path_mtu.h), which takes up to half a second.
  std::uint32_t payload_that_arrives(std::span<const world::Address> peer) const;
  // The smallest receive buffer of the planes, in bytes of payload and bookkeeping together.
  std::uint32_t receive_bytes() const;

  // --- world::World
  Time now() const override { return now_; }
  Result<void> attach(std::span<const world::Address> ports, world::Node& node) override;
  // Sleeps when there is nothing to do. Always true, because a peer may always send.
  bool step(Time limit) override;
  void wake() override;

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
  int wait_fd() const { return epoll_fd_; }
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
  std::uint32_t secret_fingerprint() const { return sessions_ ? sessions_->fingerprint() : 0; }
  std::uint64_t incarnation() const { return sessions_ ? sessions_->incarnation() : 0; }
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
  // The kernel joins at most this many packets into one run.
  static constexpr std::size_t kRunPacketsMax = 64;
  // Runs received from one socket in a row; then the other sockets have their turn.
  static constexpr std::size_t kRunsMax = 8;
  // The same when several sockets are readable. It is smaller, because a packet that waits at one
  // socket while others are read is soon declared lost.
  static constexpr std::size_t kRunsWhenMany = 2;
  // The same for long runs, so that they are still in the cache when they are placed.
  static constexpr std::size_t kRunsWhenLong = 2, kLongRun = 32u << 10;
  // Packets of one port in one poll, and of one poll in all. About two runs: the time at which a
  // packet counts as sent must be close to the time at which it is sent.
  static constexpr std::uint32_t kPortRoom = 32;
  static constexpr std::size_t kPollPackets = 45;
  // After so many runs of data it is decided whether packets arrive joined in runs.
  static constexpr std::uint64_t kRunsJudged = 256;
  // How often the senders of one plane are polled for refusals.
  static constexpr Duration kHearEvery = Duration::ms(2);
  // A ring or plane that moved within this time counts as busy.
  static constexpr Duration kBusy = Duration::us(20);
  // Everything is polled at least this often, however busy a ring or a plane is.
  static constexpr Duration kLookEvery = Duration::us(20);

  // A packet that the kernel did not accept yet, with copies of header and payload: the memory that
  // it came from may be gone before the socket has room.
  struct Held {
    world::Datagram datagram;
    std::array<std::byte, wire::kHeaderSizeMax> header;
  };
  struct Plane {
    Ipv6 address;  // ours, as peers know it
    os::UdpSocket listen;
    std::vector<os::UdpSocket> senders;
    std::optional<Srv6Socket> tunnel{};  // MRC's form of SRv6 sends and receives here instead
    std::uint32_t overflow = 0;          // the socket's overflow counter, as last read
    std::vector<Held> held;              // capacity kPortRoom
    // The payloads of `held`, kPortRoom of the MTU each. There are two buffers, because a held
    // packet that is retried may have to be held another time.
    std::array<std::vector<std::byte>, 2> held_bytes{};
    std::uint32_t held_side = 0;
    int without_room = -1;  // the sender that epoll watches until it has room; -1: none
  };
  struct Counters {
    std::uint64_t packets_sent = 0, packets_received = 0, sends = 0, receives = 0;
    std::uint64_t sends_held = 0;  // the send buffer was full; the send is retried later
    std::uint64_t drops_send = 0;  // the kernel refused them
    // Runs dropped because our receive buffer was full, as the kernel counts.
    std::uint64_t drops_host = 0;
    std::uint64_t refusals = 0;                         // ICMP answers: no such process
    std::uint64_t hellos_sent = 0, waits_for_keys = 0;  // waits: packets not sent for lack of keys
    // On port 4791, in place of a process that has gone.
    std::uint64_t host_requests = 0, host_strays = 0;
  };

  UdpWorld(const UdpWorldConfig& config, const Steering& steering);
  // The address at which a plane's packets arrive.
  static Ipv6 listen_address(const UdpWorldConfig& config, std::uint32_t plane);
  static Ipv6 end_of_usids(const UdpWorldConfig& config, std::uint32_t plane);
  static Result<Srv6Form> choose_srv6_form(const UdpWorldConfig& config);
  static Result<void> suit_peers(UdpWorldConfig& config);
  Result<void> open_slot(std::uint16_t process);
  Result<void> open_tunnels();
  Result<void> open_shared_memory();
  Result<void> open_security();

  // --- in (udp_world_io.cc)
  std::uint16_t process_of_peer(std::uint16_t source_port) const;
  bool receive(std::uint32_t plane, std::size_t runs_max);
  std::uint32_t receive_bytes(const Plane& plane) const;
  void note_overflow(std::uint32_t plane, std::uint32_t overflow);
  void note_runs(std::size_t count);
  void take_run(std::uint32_t plane, const os::UdpSocket::Incoming& run, Bytes bytes,
                std::uint16_t to_port);
  struct Taken {
    ConstBytes header{}, payload{};
    bool intact = true;
  };
  struct Arrival {
    std::uint32_t plane = 0;
    std::uint16_t to_port = 0;
    std::uint32_t ev = 0;
  };
  Result<Taken, DropReason> take_apart(const Arrival& at, const os::UdpSocket::Incoming& run,
                                       Bytes datagram);
  bool is_intact(const Arrival& at, const os::UdpSocket::Incoming& run,
                 const wire::DatagramParts& parts);
  // --- for the host (udp_world_host.cc)
  void open_host();
  void try_host();
  void leave_host();
  bool receive_for_host(std::uint32_t plane);
  // --- refused (udp_world_refused.cc)
  void hear_next_refusals();
  bool hear_refusals(std::uint32_t plane);
  template <typename Socket>
  bool hear_refusals(std::uint32_t plane, const Socket& sender);
  void tell_refusals(std::uint32_t plane, const os::IpPort& refused);
  void tell_refusal(std::uint32_t plane, const Ipv6& ip, std::uint16_t process);
  // --- out (udp_world_io.cc)
  bool transmit();
  std::span<const world::Datagram> gather(std::span<const world::Datagram> out);
  std::size_t send_run(std::span<const world::Datagram> out);
  void hand_over(std::span<const world::Datagram> run, const Steering::Way& way,
                 std::size_t segment, std::span<iovec> pieces);
  void hold(std::span<const world::Datagram> run, int sender_fd);
  os::UdpSocket::Sent send_by(Plane& plane, const Steering::Way& way, const Ipv6& peer,
                              const os::UdpSocket::Outgoing& what, std::span<iovec> pieces);
  void keep(Plane& plane, const world::Datagram& datagram);
  bool send_held(Plane& plane);

  // --- secured (udp_world_secure.cc)
  static bool is_same_run(const world::Datagram& a, const world::Datagram& b);
  std::size_t send_sealed_run(std::span<const world::Datagram> out);
  Result<Taken, DropReason> open_sealed(const os::UdpSocket::Incoming& run, std::uint32_t ev,
                                        Bytes datagram);
  void send_hellos();

  // --- waiting (udp_world_wait.cc)
  // The data of epoll events: a plane, or one of these.
  static constexpr std::uint32_t kWake = 0x100, kLinks = 0x101, kShm = 0x102, kAlarm = 0x103;
  static constexpr std::uint32_t kRoom = 0x200;  // or'ed with the plane: its sender has room
  static constexpr std::uint32_t kHost = 0x400;  // or'ed with the plane: a request for the host
  enum class Patience : std::uint8_t { kNone, kSleeps };
  Result<void> watch(int fd, std::uint32_t events, std::uint32_t what);
  Result<void> watch_all();
  Result<void> watch_planes();
  void unwatch_planes();
  std::uint32_t plane_asked(std::size_t index) const;
  bool look(Time sleep_until);
  bool hear(Patience patience);
  bool ask();
  void look_at_links();

  // --- time
  Time clock() const { return waiter_.clock(); }
  bool take(Time sleep_until);
  void be_courteous();
  bool look_at_deadline(Time due);
  bool look_where_it_came(Time plane_busy_until);
  void tell_port(std::uint32_t plane);

  UdpWorldConfig config_;
  std::optional<Steering> steering_;
  std::uint16_t process_ = 0;
  std::vector<Plane> planes_;
  // Port 4791 in each plane while this process answers for the host, otherwise empty; and when it
  // next tries to bind the port.
  std::vector<os::UdpSocket> host_;
  Time host_next_ = kNever, host_since_;
  // When the senders of the next plane are polled for refusals; kNever while nothing is sent.
  Time refusals_next_ = kNever, sent_at_;
  std::uint32_t hear_turn_ = 0;
  std::unique_ptr<LinkWatch> links_;
  std::optional<os::Alarm> alarm_;  // ends sleeps
  std::unique_ptr<ShmPort> shm_;    // null: shared memory is off
  std::optional<RateCap> cap_;
  // Until when rings, or a plane, count as busy; and when everything is polled in any case.
  Time ring_busy_until_, plane_busy_until_, look_next_;
  std::uint32_t busy_plane_ = 0;
  bool has_sent_ = false;  // the last poll of the node gave packets
  std::size_t busy_runs_ = kRunsMax;
  // Runs of data and their packets since it was last decided whether packets arrive one by one.
  std::uint64_t runs_seen_ = 0, packets_seen_ = 0;
  bool comes_singly_ = false;
  wire::IcrcStart icrc_in_, icrc_out_;
  world::PortMask told_up_ = 0;  // the ports that the node believes to be up
  world::Node* node_ = nullptr;
  std::optional<os::WakeEvent> wake_event_;
  int epoll_fd_ = -1;
  std::vector<pollfd> asked_;  // for poll(): epoll, and the receiving sockets of each plane
  bool planes_watched_ = false, waits_ = false, said_unwatched_ = false;
  Time waited_at_;  // when a wait last ended or was prepared
  os::Waiter waiter_;
  Time now_, last_pass_, courteous_until_;
  std::uint64_t crowd_sent_ = 0, crowd_received_ = 0;  // when be_courteous() last ran
  bool is_from_here_ = false;  // the last packet came from a process of this host
  std::vector<std::byte> buffer_;
  std::array<os::UdpSocket::Incoming, kRunsMax> runs_;  // runs that are being processed
  std::vector<world::Datagram> in_;
  std::array<world::Datagram, kPollPackets> out_, gathered_;
  // For sealed packets: a run as it goes on the wire, and the EVs that hellos use in turn.
  std::unique_ptr<seal::SessionTable> sessions_;
  std::vector<std::byte> sealed_;
  std::vector<fabric::Ev> hello_evs_;
  std::size_t hello_turn_ = 0;
  Counters counters_;
  std::array<std::uint64_t, kDropReasonCount> drops_{};
};

}  // namespace weft::net
