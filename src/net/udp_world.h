// UdpWorld: drives one node over UDP sockets, in real time.
//
// A port of the node is a plane: an address of ours, one socket that receives, and one for each EV
// that sends, because an EV is a UDP source port here. Runs of packets on one EV leave in one
// system call and arrive in one. Processes of a host share its addresses: each has a slot, which
// its UDP ports follow from (docs/decisions/0008), so that whoever holds the ports owns the slot
// and a crash frees it.
//
// Everything is allocated by open(). One thread at a time calls it; wake() may come from any.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "fabric/ev.h"
#include "net/link_watch.h"
#include "net/udp_socket.h"
#include "wire/datagram.h"
#include "wire/drop_reason.h"
#include "wire/frame.h"
#include "world/world.h"

namespace weft::net {

inline constexpr std::uint32_t kProcessesMax = 256;
inline constexpr std::uint32_t kEvsPerPlaneMax = 64;

// Slot 0 listens on MRC's port, the others below the ports that the system gives out; each sends
// from ports of its own.
constexpr std::uint16_t listen_port(std::uint16_t process) {
  return process == 0 ? wire::kUdpPort : static_cast<std::uint16_t>(14'791 + process);
}
inline constexpr std::uint16_t kSourcePortsFrom = 15'104;
constexpr std::uint16_t source_port(std::uint16_t process, std::uint32_t ev) {
  return static_cast<std::uint16_t>(kSourcePortsFrom + process * kEvsPerPlaneMax + ev);
}
// Which process sends from that port; 0 for one that is no process of ours.
constexpr std::uint16_t process_of(std::uint16_t source_port) {
  const int process = (source_port - kSourcePortsFrom) / static_cast<int>(kEvsPerPlaneMax);
  const bool ours = source_port >= kSourcePortsFrom && process < static_cast<int>(kProcessesMax);
  return ours ? static_cast<std::uint16_t>(process) : std::uint16_t{0};
}

// What the ICRC covers: everything, as MRC wants it, or headers only, where both ends are ours and
// the link has a checksum of its own or needs none.
enum class IcrcCover : std::uint8_t { kFull, kHeaders };

// Four planes on the loopback: 127.0.1.1 to 127.0.4.1. Needs no set-up and no privilege.
std::vector<Ipv6> loopback_planes();

struct UdpWorldConfig {
  std::vector<Ipv6> planes = loopback_planes();  // our address in each
  std::uint32_t evs_per_plane = 4;
  std::uint32_t mtu = 4096;  // payload of a full packet
  IcrcCover icrc = IcrcCover::kHeaders;
  std::uint32_t socket_buffer_bytes = 4u << 20;  // asked for; what was given is receive_bytes()
  // With nothing to do: look that long before going to sleep.
  Duration spin = Duration::us(50);
};

class UdpWorld final : public world::World {
 public:
  // Takes the first free slot. Errors: kInvalid, kExhausted (all slots taken), kSystem.
  static Result<std::unique_ptr<UdpWorld>> open(const UdpWorldConfig& config);
  ~UdpWorld() override;

  std::uint16_t process() const { return process_; }
  // Ours, one a plane: what attach() takes and peers are told.
  std::vector<world::Address> addresses() const;
  // One for each socket that sends.
  std::vector<fabric::Ev> evs() const;
  // The smallest receive buffer of the planes.
  std::uint32_t receive_bytes() const;

  // --- world::World
  Time now() const override { return now_; }
  Result<void> attach(std::span<const world::Address> ports, world::Node& node) override;
  // Sleeps when there is nothing to do. Always true: somebody may always send.
  bool step(Time limit) override;
  void wake() override;

  // One look at sockets, deadlines and the node, without sleeping. True if anything moved.
  bool pass();
  // Until something moved, or `limit`: looks for a while, then sleeps, so that whoever we wait for
  // gets the core. True if anything moved.
  bool progress(Time limit);

  // net.*: datagrams and system calls, drops by reason.
  CounterTable counters() const;

 private:
  struct Plane {
    Ipv6 address;
    UdpSocket listen;
    std::vector<UdpSocket> senders;
    std::uint32_t overflow = 0;  // as the socket last said
  };
  struct Counters {
    std::uint64_t packets_sent = 0, packets_received = 0, sends = 0, receives = 0;
    std::uint64_t drops_send = 0;  // the kernel did not take them
    std::uint64_t drops_host = 0;  // our receive buffer was full
  };

  explicit UdpWorld(const UdpWorldConfig& config);
  Result<void> open_slot(std::uint16_t process);
  bool receive(std::uint32_t plane);
  void take_run(std::uint32_t plane, const UdpSocket::Incoming& run, ConstBytes bytes);
  bool is_intact(std::uint32_t plane, const UdpSocket::Incoming& run,
                 const wire::DatagramParts& parts) const;
  bool transmit();
  std::size_t send_run(std::span<const world::Datagram> out);
  void look_at_links();
  void sleep_until(Time limit);

  UdpWorldConfig config_;
  std::uint16_t process_ = 0;
  std::vector<Plane> planes_;
  std::unique_ptr<LinkWatch> links_;
  world::PortMask told_up_ = 0;  // what the node knows
  Time links_next_;
  world::Node* node_ = nullptr;
  int wake_fd_ = -1;
  Time now_, last_pass_;
  std::vector<std::byte> buffer_;
  std::vector<world::Datagram> in_;
  std::array<world::Datagram, 64> out_;
  Counters counters_;
  std::array<std::uint64_t, kDropReasonCount> drops_{};
};

}  // namespace weft::net
