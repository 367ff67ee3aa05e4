// UdpWorld: drives one node over UDP sockets, in real time.
//
// A port of the node is a plane: an address of ours, one socket that receives, and some that send,
// because a UDP source port is (part of) an EV; see Steering. Runs of packets on one EV leave in
// one system call and arrive in one. Processes of a host share its addresses: each has a slot,
// which its UDP ports follow from (docs/decisions/0008), so that whoever holds the ports owns the
// slot and a crash frees it. Processes of one host may also share memory: one more port of the
// node, behind the planes (ShmPort, docs/decisions/0009).
//
// With a job secret every packet is sealed on the way out, where the copy into the run is the
// encryption, and opened in place on the way in; nothing else is taken (docs/security.md).
//
// Everything is allocated by open(), sessions by secure(). One thread at a time calls it; wake()
// may come from any.
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
#include "os/clock.h"
#include "os/udp_socket.h"
#include "seal/session_table.h"
#include "wire/datagram.h"
#include "wire/drop_reason.h"
#include "wire/icrc.h"
#include "wire/packet.h"
#include "world/world.h"

namespace weft::net {

using wire::IcrcCover;

// Who the other ends are. Weft's processes share an address, so that ports tell processes apart.
// Whoever else speaks MRC sends to 4791 from any port, and checks the ICRC of everything.
enum class Peers : std::uint8_t { kWeft, kMrc };

// Four planes on the loopback: 127.0.1.1 to 127.0.4.1. Needs no set-up and no privilege.
std::vector<Ipv6> loopback_planes();

struct UdpWorldConfig {
  std::vector<Ipv6> planes = loopback_planes();  // our address in each; SRv6: follow from `place`
  EvMode ev_mode = EvMode::kUdpPort;
  std::uint32_t evs_per_plane = 4;
  std::optional<FabricPlace> place{};  // where we are in a fabric steered by SRv6
  Srv6Form srv6 = Srv6Form::kAuto;     // and how uSIDs are carried there
  std::string network_namespace{};     // a path, as /run/netns/NAME; empty: this process's own
  std::uint32_t mtu = 4096;            // payload of a full packet
  Peers peers = Peers::kWeft;
  IcrcCover icrc = IcrcCover::kHeaders;  // kFull with kMrc
  // Asked for; what was given is receive_bytes().
  std::uint32_t receive_buffer_bytes = 4u << 20;
  std::uint32_t send_buffer_bytes = 256u << 10;
  // The world's time 0, by the system's monotonic clock.
  Time epoch{};
  // With nothing to do: look that long before going to sleep.
  Duration spin = Duration::us(200);
  // At most so many payload bits a second over all planes; none: as fast as it goes.
  std::optional<Rate> rate_cap{};
  // What all processes of the job share, 32 bytes at least; empty: packets are sent in clear.
  std::vector<std::byte> job_secret{};
  std::uint32_t secured_qps_max = 1024;
  // Reach processes of this host over shared memory too. Takes a port: with 8 planes there is none
  // left, and it is off.
  bool shared_memory = true;
  std::size_t ring_bytes = 1u << 20;  // of each direction; a power of two
};

class UdpWorld final : public world::World {
 public:
  // Takes the first free slot. Errors: kInvalid, kExhausted (all slots taken), kBusy (another
  // process has the only one, of peers that are not Weft), kSystem, kUnsupported (steering by SRv6
  // over links that are not the lab's, or without the privilege).
  static Result<std::unique_ptr<UdpWorld>> open(const UdpWorldConfig& config);
  // What open() makes of a configuration: planes follow from the place, other things from the
  // peers. Errors: kInvalid.
  static Result<UdpWorldConfig> settle(UdpWorldConfig config);
  ~UdpWorld() override;

  std::uint16_t process() const { return process_; }
  // How uSIDs are carried; both ends must agree. kAuto: there are none.
  Srv6Form srv6_form() const {
    return config_.ev_mode == EvMode::kSrv6 ? config_.srv6 : Srv6Form::kAuto;
  }
  EvMode ev_mode() const { return config_.ev_mode; }
  // What ICRCs cover, as peers and form have it; both ends must agree.
  IcrcCover icrc() const { return config_.icrc; }
  // Ours, one a plane: what attach() takes and peers are told.
  std::vector<world::Address> addresses() const;
  std::vector<fabric::Ev> evs() const { return steering_->evs(process_); }
  // The planes, and the port of shared memory if there is one.
  std::uint32_t port_count() const {
    return static_cast<std::uint32_t>(planes_.size()) + (shm_ != nullptr ? 1 : 0);
  }
  bool has_shared_memory() const { return shm_ != nullptr; }
  // The port of shared memory, as a mask; 0: there is none.
  world::PortMask shared_memory_port() const {
    return static_cast<world::PortMask>(shm_ != nullptr ? 1u << planes_.size() : 0);
  }
  // The EV over which that process (its address on plane 0) is reached by shared memory; none if it
  // is on another host, another user's, or does not want to.
  std::optional<fabric::Ev> shared_memory_ev(const world::Address& peer);
  // The largest payload of 1024, 2048 and 4096 whose packets fit the way to that peer in every
  // plane, as this host knows it: its own links and what routers said. 0: none does.
  std::uint32_t payload_to(std::span<const world::Address> peer) const;
  // The same, asked of the ways too (path_mtu.h), which takes up to half a second.
  std::uint32_t payload_that_arrives(std::span<const world::Address> peer) const;
  // The smallest receive buffer of the planes, in bytes of payload and bookkeeping together.
  std::uint32_t receive_bytes() const;

  // --- world::World
  Time now() const override { return now_; }
  Result<void> attach(std::span<const world::Address> ports, world::Node& node) override;
  // Sleeps when there is nothing to do. Always true: somebody may always send.
  bool step(Time limit) override;
  void wake() override;

  // One look at sockets, deadlines and the node, without sleeping. True if anything moved. Who
  // slept on purpose before says until when it meant to: that is not being late.
  bool pass(Time slept_until = Time());
  // Until something moved, or `limit`: looks for a while, then sleeps, so that whoever we wait for
  // gets the core. True if anything moved. What came is answered by the next call: the caller sees
  // it first.
  bool progress(Time limit);
  // Readable when pass() has something to receive, between prepare_wait() and end_wait(): for a
  // loop that waits for several worlds. The node's deadline and refusals (sleep_until() has both)
  // are not in it.
  int wait_fd() const { return epoll_fd_; }
  // For who is about to wait there: whoever brings something says so from now on. False: wait not,
  // something came meanwhile, or the system cannot watch (said once). May be called again while
  // somebody waits, as rings come and calls are taken.
  bool prepare_wait();
  // Who waited there is back.
  void end_wait();
  // The next time at which there is something to do by itself, `limit` at the latest: a deadline,
  // or tokens to send with.
  Time sleep_until(Time limit) const;

  // --- security
  // What peers are told out of band: whether there is a secret, and which (0: none), and who we
  // are.
  std::uint32_t secret_fingerprint() const { return sessions_ ? sessions_->fingerprint() : 0; }
  std::uint64_t incarnation() const { return sessions_ ? sessions_->incarnation() : 0; }
  // Opens a session for a QP that is being connected; packets follow when it has keys. Does nothing
  // without a secret. Errors: kInvalid, kExhausted, kSystem.
  Result<void> secure(std::uint32_t local_qpn, const seal::SecurePeer& peer);
  // The QP is gone: so are its keys.
  void end_session(std::uint32_t local_qpn);

  // In a forked child: lets go of the descriptors, so that the slot is the parent's alone. Nothing
  // but close() is called, and nothing else of this object may be called afterwards.
  void abandon();

  // net.*: datagrams and system calls, drops by reason.
  CounterTable counters() const;

 private:
  // The kernel joins no more packets than this into one run.
  static constexpr std::size_t kRunPacketsMax = 64;
  // Runs taken from one socket at a time: then others have their turn.
  static constexpr std::size_t kRunsMax = 8;
  // The same when several sockets have some: what waits at one while others are looked at is soon
  // taken for lost.
  static constexpr std::size_t kRunsWhenMany = 2;
  // And of long ones: they are still in the cache when they are put in their place.
  static constexpr std::size_t kRunsWhenLong = 2, kLongRun = 32u << 10;
  // What a port takes at a time, and what one poll asks for: two runs, so that the time at which a
  // packet is taken to be sent is not far off.
  static constexpr std::uint32_t kPortRoom = 32;
  static constexpr std::size_t kPollPackets = 45;
  // After so many runs of data it is known whether they are runs.
  static constexpr std::uint64_t kRunsJudged = 256;
  // So often the senders of one plane are asked for refusals.
  static constexpr Duration kHearEvery = Duration::ms(2);
  // What moved so recently is likely to move again.
  static constexpr Duration kBusy = Duration::us(20);
  // Everything is looked at that often, however busy a ring or a plane is.
  static constexpr Duration kLookEvery = Duration::us(20);

  // A packet that the kernel did not take yet, header and payload copied: the memory that it came
  // from may be gone before the socket has room.
  struct Held {
    world::Datagram datagram;
    std::array<std::byte, wire::kHeaderSizeMax> header;
  };
  struct Plane {
    Ipv6 address;  // ours, as peers know it
    os::UdpSocket listen;
    std::vector<os::UdpSocket> senders;
    std::optional<Srv6Socket> tunnel{};  // MRC's form of SRv6: instead of these
    std::uint32_t overflow = 0;          // as the socket last said
    std::vector<Held> held;              // capacity kPortRoom
    // Their payloads, kPortRoom of the MTU each; two, because what is sent again is held again.
    std::array<std::vector<std::byte>, 2> held_bytes{};
    std::uint32_t held_side = 0;
    int without_room = -1;  // the sender that is watched until it has; -1: none
  };
  struct Counters {
    std::uint64_t packets_sent = 0, packets_received = 0, sends = 0, receives = 0;
    std::uint64_t sends_held = 0;  // the send buffer was full: again later
    std::uint64_t drops_send = 0;  // the kernel refused them
    std::uint64_t drops_host = 0;  // our receive buffer was full: runs, as the kernel counts
    std::uint64_t refusals = 0;    // somebody said: no such process
    std::uint64_t hellos_sent = 0, waits_for_keys = 0;  // secured: packets not sent yet
    std::uint64_t host_requests = 0, host_strays = 0;   // on 4791, for a process that is gone
  };

  UdpWorld(const UdpWorldConfig& config, const Steering& steering);
  // Where a plane's packets arrive.
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
  // What epoll says is ready: a plane, or one of these.
  static constexpr std::uint32_t kWake = 0x100, kLinks = 0x101, kShm = 0x102, kAlarm = 0x103;
  static constexpr std::uint32_t kRoom = 0x200;  // or'ed with the plane: it may send again
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
  Time clock() const { return os::clock_now() - config_.epoch.since_start(); }
  bool take(Time sleep_until);
  Duration spin() const;
  void note_crowd();
  bool look_at_deadline(Time due);
  bool look_where_it_came(Time plane_busy_until);
  void tell_port(std::uint32_t plane);

  UdpWorldConfig config_;
  std::optional<Steering> steering_;
  std::uint16_t process_ = 0;
  std::vector<Plane> planes_;
  // Port 4791 in each plane while we answer for the host; else empty, and when we try again.
  std::vector<os::UdpSocket> host_;
  Time host_next_ = kNever, host_since_;
  // When the senders of which plane are asked for refusals, kNever while nothing is sent.
  Time refusals_next_ = kNever, sent_at_;
  std::uint32_t hear_turn_ = 0;
  std::unique_ptr<LinkWatch> links_;
  std::optional<os::Alarm> alarm_;  // for sleeps
  std::unique_ptr<ShmPort> shm_;    // null: off
  std::optional<RateCap> cap_;
  // Rings, or a plane, that moved a moment ago; when everything is looked at in any case.
  Time ring_busy_until_, plane_busy_until_, look_next_;
  std::uint32_t busy_plane_ = 0;
  bool has_sent_ = false;  // the last time that the node was asked for packets
  std::size_t busy_runs_ = kRunsMax;
  // Runs of data, and their packets, since it was last judged whether packets come one by one.
  std::uint64_t runs_seen_ = 0, packets_seen_ = 0;
  bool comes_singly_ = false;
  wire::IcrcStart icrc_in_, icrc_out_;
  world::PortMask told_up_ = 0;  // what the node knows
  world::Node* node_ = nullptr;
  int wake_fd_ = -1, epoll_fd_ = -1;
  std::vector<pollfd> asked_;  // epoll, and what receives of each plane
  bool planes_watched_ = false, waits_ = false, said_unwatched_ = false;
  Time waited_at_;  // somebody did, or was about to
  Time now_, last_pass_, crowded_until_, courteous_until_;
  std::uint64_t crowd_sent_ = 0, crowd_received_ = 0;  // packets, when the crowd was last noted
  bool is_from_here_ = false;                          // the last packet: of a process of this host
  std::vector<std::byte> buffer_;
  std::array<os::UdpSocket::Incoming, kRunsMax> runs_;  // while they are taken
  std::vector<world::Datagram> in_;
  std::array<world::Datagram, kPollPackets> out_, gathered_;
  // Secured: a run as it goes on the wire, and the EVs that hellos take in turn.
  std::unique_ptr<seal::SessionTable> sessions_;
  std::vector<std::byte> sealed_;
  std::vector<fabric::Ev> hello_evs_;
  std::size_t hello_turn_ = 0;
  Counters counters_;
  std::array<std::uint64_t, kDropReasonCount> drops_{};
};

}  // namespace weft::net
