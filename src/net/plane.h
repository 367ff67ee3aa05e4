// Plane: the sockets of one plane of a process: one receives, and one for each UDP source port
// sends. Packets that the kernel did not accept yet are held here.
//
// In MRC's form of SRv6 packets leave and arrive through an Srv6Socket. The UDP sockets stay open:
// they keep the slot of this process, and receive packets whose outer header this host's kernel or
// the last switch has removed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "net/held_packets.h"
#include "net/srv6_socket.h"
#include "net/steering.h"
#include "os/udp_socket.h"

namespace weft::net {

class Plane {
 public:
  struct Options {
    Ipv6 address{};    // our address in this plane, as peers know it
    Ipv6 listen{};     // the address at which packets arrive
    Ipv6 usids_end{};  // our address where uSID lists end; for MRC's SRv6
    std::uint16_t process = 0;
    std::uint32_t mtu = 4096;                         // the largest payload
    std::uint32_t receive_bytes = 0, send_bytes = 0;  // requested socket buffers
    bool encapsulates = false;                        // MRC's form of SRv6
    bool by_carrier = false;                          // packets are addressed to a uSID carrier
    bool any_checksum = false;  // peers whose ICRC covers the whole packet may send no UDP checksum
  };
  // Binds the receiving socket; success means that this process owns the slot. Errors: kExhausted,
  // kSystem.
  static Result<Plane> listen(const Options& options);
  // Opens `count` sending sockets. Errors: kExhausted, kUnsupported, kSystem.
  Result<void> open_senders(std::uint32_t count);

  const Ipv6& address() const { return options_.address; }
  // The receive buffer that the kernel granted: bytes of payload and bookkeeping together.
  std::uint32_t receive_bytes() const;
  // The descriptors of the receiving sockets.
  std::vector<int> receive_fds() const;

  // Receives runs, as UdpSocket::receive() does.
  std::size_t receive(std::span<std::byte> buffer, std::span<os::UdpSocket::Incoming> runs);
  // Runs lost because the receive buffer was full: those that the last receive() found, and all
  // since the start.
  std::uint32_t overflows_new() const { return overflows_new_; }
  std::uint32_t overflows() const { return overflows_; }

  // Sends a run to `peer`, with the header fields that Steering chose.
  os::UdpSocket::Sent send(const Steering::Fields& fields, const Ipv6& peer,
                           const os::UdpSocket::Outgoing& what, std::span<iovec> pieces);
  // The socket that sends with these fields.
  int sender_fd(const Steering::Fields& fields) const {
    return tunnel_ ? tunnel_->send_fd() : senders_[fields.socket].fd();
  }
  HeldPackets& held() { return held_; }
  const HeldPackets& held() const { return held_; }

  // Calls on_refusal(destination) for each refusal that the sending sockets report. Equal refusals
  // in a row are all counted, but passed on once. Reads a bounded number, so that a stream of
  // refusals does not block the caller. True if none are left.
  template <typename OnRefusal>
  bool poll_refusals(std::uint64_t& count, OnRefusal on_refusal) const {
    if (tunnel_) return poll_refusals_of(*tunnel_, count, on_refusal);
    bool all = true;
    for (const os::UdpSocket& sender : senders_) all &= poll_refusals_of(sender, count, on_refusal);
    return all;
  }

  // For a forked child: closes the sockets, as UdpWorld::abandon() does.
  void abandon() const;

 private:
  explicit Plane(const Options& options) : options_(options), held_(options.mtu) {}

  template <typename Socket, typename OnRefusal>
  static bool poll_refusals_of(const Socket& sender, std::uint64_t& count, OnRefusal& on_refusal) {
    std::optional<os::IpPort> last;
    for (int i = 0; i < kRefusalsMax; ++i) {
      const auto refused = sender.poll_refusal();
      if (!refused) return true;
      ++count;
      if (refused == last) continue;  // each packet of a window is refused: report it once
      last = refused;
      on_refusal(*refused);
    }
    return false;
  }
  static constexpr int kRefusalsMax = 64;  // refusals read from one socket in a row

  Options options_;
  os::UdpSocket listener_;
  std::vector<os::UdpSocket> senders_;
  std::optional<Srv6Socket> tunnel_;
  std::uint32_t overflows_ = 0, overflows_new_ = 0;
  HeldPackets held_;
};

}  // namespace weft::net
