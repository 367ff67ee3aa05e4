// One UDP socket over IPv4 or IPv6: a run of packets out in one system call (UDP_SEGMENT), runs in
// (UDP_GRO), with ECN and DSCP of each. Non-blocking. Knows nothing of MRC.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "os/address.h"

namespace weft::os {

// The flow label within IPv6's first word, and within the word that the kernel gives.
inline constexpr std::uint32_t kFlowLabelMask = 0xf'ffff;

class UdpSocket {
 public:
  struct Options {
    Ipv6 address{};
    std::uint16_t port = 0;
    std::uint32_t receive_bytes = 0;  // asked for; the system may give less. 0: its default
    std::uint32_t send_bytes = 0;
    bool receives = false;        // GRO, ECN and flow label of what comes
    bool singly = false;          // no GRO: it would join what other sockets take apart
    bool any_checksum = false;    // IPv6: takes packets whose checksum is 0
    bool hears_refusals = false;  // see poll_refusal()
    bool by_carrier = false;      // addresses change on the way: errors find no connected socket
  };
  // Errors: kExhausted when the port is taken, kSystem otherwise.
  static Result<UdpSocket> open(const Options& options);
  UdpSocket() = default;
  UdpSocket(UdpSocket&& other) noexcept { *this = std::move(other); }
  UdpSocket& operator=(UdpSocket&& other) noexcept;
  ~UdpSocket();

  int fd() const { return fd_; }
  // What the system really gave, in bytes of payload and bookkeeping together.
  std::uint32_t receive_bytes() const;

  struct Outgoing {
    Ipv6 to{};
    std::uint16_t port = 0;
    std::uint8_t traffic_class = 0;  // DSCP and ECN
    std::uint16_t segment = 0;       // bytes of each packet but the last; 0: one packet
    std::uint32_t flow_label = 0;    // IPv6
  };
  // All of it, or nothing: because the send buffer is full, or because it can never be sent.
  enum class Sent : std::uint8_t { kTaken, kNotNow, kNever };
  // Where the kernel cuts no runs (an interface without checksum offload) it is packet by packet, and
  // if the buffer is full half-way the caller sends some of them twice.
  Sent send(const Outgoing& what, std::span<iovec> pieces);

  // Where something was sent and nobody has the port, as its host said or somebody in its name. None:
  // nothing was said. Other errors of the network are taken with it and forgotten.
  std::optional<IpPort> poll_refusal() const;

  // One run that came: `size` bytes, packets of `segment` bytes and perhaps a shorter last one.
  struct Incoming {
    Ipv6 from{};
    std::uint16_t port = 0;
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
    std::uint32_t size = 0, segment = 0;
    std::uint32_t overflow =
        0;  // runs of packets this socket ever lost because its buffer was full
  };
  // Takes up to runs.size() runs, each into its own piece of `buffer` (kRunBytes each). Returns how
  // many.
  static constexpr std::size_t kRunBytes = 65536;
  // What one send takes, before it is cut into packets.
  static constexpr std::size_t kSendBytesMax = 65'000;
  std::size_t receive(std::span<std::byte> buffer, std::span<Incoming> runs);

 private:
  // Where packets go and how: what a socket can be set to once instead of being told each time.
  struct Habit {
    Ipv6 to{};
    std::uint16_t port = 0;
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
    friend bool operator==(const Habit&, const Habit&) = default;
  };
  explicit UdpSocket(int fd) : fd_(fd) {}
  void adopt(const Habit& habit);
  void let_go();
  Sent send_singly(const Outgoing& what, std::span<iovec> pieces);
  bool receive_one(std::span<std::byte> buffer, Incoming& run);
  ssize_t send_by_habit(std::uint16_t segment, std::span<iovec> pieces) const;
  ssize_t send_explicitly(const Outgoing& what, std::span<iovec> pieces) const;

  int fd_ = -1;
  bool may_connect_ = false;  // who receives must hear everybody
  // The socket is connected to `habit_` while it has one, which spares the system a look for the
  // way; whoever sends elsewhere lets go of it. What is wanted often enough becomes the habit.
  bool has_habit_ = false;
  std::uint16_t strange_ = 0;       // sends lately that were not by habit
  std::uint16_t strange_max_ = 16;  // so many make the next habit
  Habit habit_{};
  bool singly_ = false;  // the kernel refused a run
};

}  // namespace weft::os
