// HostilePair: two ends with real sockets, endpoints and memory in one process. Stranger: an
// attacker that sends any packet from any address. Canaries stand around every registered region.
#pragma once

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "engine/net_rdma.h"
#include "os/clock.h"
#include "os/udp_socket.h"
#include "seal/secure_layout.h"
#include "wire/datagram.h"
#include "wire/framing.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::hostile {

inline constexpr std::size_t kRegion = 1u << 20;
inline constexpr std::size_t kGuard = 8192;
inline constexpr std::byte kCanary{0xc5};

inline std::vector<std::byte> job_secret() { return std::vector<std::byte>(32, std::byte{0x42}); }

// A registered region with a canary before and behind it.
class Guarded {
 public:
  Guarded() : bytes_(kRegion + 2 * kGuard, kCanary) { std::memset(region().data(), 0, kRegion); }
  std::span<std::byte> region() { return std::span(bytes_).subspan(kGuard, kRegion); }
  bool canaries_intact() const {
    const auto untouched = [](std::byte b) { return b == kCanary; };
    return std::all_of(bytes_.begin(), bytes_.begin() + kGuard, untouched) &&
           std::all_of(bytes_.end() - kGuard, bytes_.end(), untouched);
  }

 private:
  std::vector<std::byte> bytes_;
};

struct End {
  std::unique_ptr<engine::NetRdma> net;
  Guarded landing;
  std::vector<std::byte> source = std::vector<std::byte>(kRegion);
  rdma::Group group;
  engine::Hello hello;         // of this end's QP
  engine::RegionHello region;  // the region that the peer writes to
  std::uint64_t failed = 0, done = 0;

  std::uint64_t counter(std::string_view name) {
    for (const auto& table : {net->world().counters(), net->endpoint().counters()}) {
      if (has_counter(table, name)) return value_of(table, name);
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
  // Creates a QP, and registers `landing` as the region for the peer.
  void create_qp() {
    group = net->create_group({}).value();
    const auto words = net->describe(group.id);
    hello = engine::Hello::from_bytes(ConstBytes(words).first<engine::Hello::kSize>()).value();
    const auto landing_id = net->add_region(landing.region()).value().id;
    region = engine::RegionHello::from_bytes(net->describe_region(landing_id)).value();
  }
  Result<void> connect(const engine::Hello& peer) {
    return net->connect(os::clock_now(), group.id, peer.to_bytes());
  }
  bool over_shared_memory() const { return net->health(group.id).over_shared_memory; }
  void collect() {
    std::array<transport::Completion, 32> batch;
    for (std::size_t n = batch.size(); n == batch.size();) {
      n = net->endpoint().poll_completions(batch);
      for (std::size_t i = 0; i < n; ++i)
        ++(batch[i].status == transport::Status::kOk ? done : failed);
    }
  }
};

enum class Security { kPlain, kSecured };

class HostilePair {
 public:
  // Opens and connects both ends. False: this failed, and so has the test.
  bool open(Security security) {
    for (End* end : {&a, &b}) {
      engine::NetRdmaOptions options;
      // Without shared memory all packets use the network, where an attacker can send.
      options.world.shared_memory = false;
      if (security == Security::kSecured) options.world.job_secret = job_secret();
      auto net = engine::NetRdma::open(options);
      EXPECT_TRUE(net) << net.error().message;
      if (!net) return false;
      end->net = std::move(net).value();
      end->create_qp();
      for (std::size_t i = 0; i < kRegion; ++i)
        end->source[i] = static_cast<std::byte>(i * 31 + (i >> 9) + (end == &a ? 1 : 2));
    }
    return connect();
  }
  bool connect() {
    const auto first = a.connect(b.hello), second = b.connect(a.hello);
    EXPECT_TRUE(first && second);
    return first && second;
  }

  struct Post {
    std::uint64_t offset = 0;
    std::uint32_t size = kRegion;
  };
  void post(End& from, const End& to, const Post& what) {
    const auto posted = from.net->endpoint().post_write(
        os::clock_now(), from.hello.qpn,
        {.local_at = reinterpret_cast<std::uintptr_t>(from.source.data() + what.offset),
         .remote_at = to.region.at + what.offset,
         .rkey = to.region.rkey,
         .size = what.size});
    EXPECT_TRUE(posted) << posted.error().message;
  }

  // Drives both ends until `is_over`, or for 20 s, and calls `stranger` after every round. True: it
  // is over.
  using Stranger = std::function<void(std::uint64_t round)>;
  bool run(const std::function<bool()>& is_over, const Stranger& stranger = nullptr) {
    const Time until = os::clock_now() + Duration::s(20);
    for (std::uint64_t round = 0; os::clock_now() < until; ++round) {
      a.net->world().pass();
      b.net->world().pass();
      a.collect();
      b.collect();
      if (stranger) stranger(round);
      if (is_over()) return true;
    }
    return false;
  }
  // Drives both ends long enough to process everything that was sent.
  void settle() {
    const Time until = os::clock_now() + Duration::ms(20);
    run([&] { return os::clock_now() >= until; });
  }

  // Transfers the whole region in both directions several times while the attacker is active.
  void transfer_both_ways(const Stranger& stranger) {
    constexpr std::uint64_t kTimes = 4;
    for (std::uint64_t time = 0; time < kTimes; ++time) {
      std::memset(a.landing.region().data(), 0, kRegion);
      std::memset(b.landing.region().data(), 0, kRegion);
      const std::uint64_t goal = a.done + 4;
      for (std::uint64_t part = 0; part < 4; ++part) {
        post(a, b, {.offset = part * kRegion / 4, .size = kRegion / 4});
        post(b, a, {.offset = part * kRegion / 4, .size = kRegion / 4});
      }
      ASSERT_TRUE(run([&] { return a.done >= goal && b.done >= goal; }, stranger))
          << "the transfer did not complete; failed: " << a.failed << ", " << b.failed;
      ASSERT_EQ(a.failed + b.failed, 0u);
      ASSERT_EQ(std::memcmp(b.landing.region().data(), a.source.data(), kRegion), 0);
      ASSERT_EQ(std::memcmp(a.landing.region().data(), b.source.data(), kRegion), 0);
      ASSERT_TRUE(all_canaries_intact());
    }
  }
  bool all_canaries_intact() { return a.landing.canaries_intact() && b.landing.canaries_intact(); }

  End a, b;
};

// An attacker that sends from any address and port. On the loopback it needs no privilege to use a
// peer's address: some of the peer's source ports are not bound, and each of them identifies the
// peer's process.
class Stranger {
 public:
  // An attacker that uses the address of `peer` in `plane`, and a free one of the peer's source
  // ports.
  static Stranger as(const End& peer, std::size_t plane = 0) {
    const world::Address& address = peer.hello.ports[plane];
    for (std::uint32_t i = wire::kSourcePortsMax; i-- > 0;) {
      auto socket = os::UdpSocket::open(
          {.address = address.ip(), .port = wire::source_port(address.process, i)});
      if (!socket) continue;
      return Stranger(std::move(socket).value(), address.ip(),
                      wire::source_port(address.process, i));
    }
    ADD_FAILURE() << "no port left to send from";
    return elsewhere();
  }
  // An address that no peer has. It depends on the process id, so that parallel tests do not
  // disturb each other.
  static Ipv6 nobodys_address() {
    const auto pid = static_cast<std::uint32_t>(getpid());
    return base::ipv4(127, 77, static_cast<std::uint8_t>(pid >> 7),
                      static_cast<std::uint8_t>(pid << 1 | 1));
  }
  static Stranger elsewhere() {
    const Ipv6 address = nobodys_address();
    os::UdpSocket socket = os::UdpSocket::open({.address = address}).value();
    os::SocketAddress bound;
    bound.size = sizeof(bound.storage);
    auto* const name = reinterpret_cast<sockaddr*>(&bound.storage);
    EXPECT_EQ(getsockname(socket.fd(), name, &bound.size), 0);
    const std::uint16_t port = os::from_sockaddr(name).port;
    return Stranger(std::move(socket), address, port);
  }

  void send_raw(const End& to, ConstBytes bytes, world::Dscp dscp = world::Dscp::kControl) {
    iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    socket_.send({.to = to.hello.ports[0].ip(),
                  .port = wire::listen_port(to.hello.ports[0].process),
                  .traffic_class = static_cast<std::uint8_t>(static_cast<unsigned>(dscp) << 2)},
                 {&piece, 1});
  }
  // From now on packets look sealed: they have the right size, and counters that were not used
  // before. The attacker has no keys, so the tags are zeros.
  void look_sealed() { sealed_ = true; }
  // Sends a well-formed packet, with correct padding and ICRC.
  template <typename Body>
  void send(const End& to, const wire::Bth& bth, const Body& body, ConstBytes payload = {}) {
    std::vector<std::byte> packet(wire::kHeaderSizeMax);
    packet.resize(wire::emit(bth, body, packet));
    if (sealed_) {
      std::array<std::byte, seal::kCounterSize> counter;
      base::store64(Bytes(counter), 0, next_counter_++);
      packet.insert(packet.end(), counter.begin(), counter.end());
      if (wire::is_write(bth.opcode)) packet.resize(packet.size() + seal::kHeaderTagSize);
    }
    packet.insert(packet.end(), payload.begin(), payload.end());
    packet.resize(packet.size() + wire::pad_for(payload.size()) +
                  (sealed_ ? seal::kPayloadTagSize : wire::kIcrcSize));
    if (!sealed_) mend(to, packet);
    send_raw(to, packet);
  }
  // Stores the correct ICRC if the bytes have the form of a packet.
  void mend(const End& to, Bytes packet) const {
    const auto parts = wire::split_datagram(packet);
    if (!parts) return;
    wire::Icrc icrc(
        wire::IcrcFlow{.source = address_,
                       .destination = to.hello.ports[0].ip(),
                       .source_port = port_,
                       .destination_port = wire::listen_port(to.hello.ports[0].process),
                       .udp_size = static_cast<std::uint16_t>(packet.size() + wire::kUdpSize)});
    icrc.add_header(parts->header);
    icrc.store(packet.last(wire::kIcrcSize));
  }

 private:
  Stranger(os::UdpSocket socket, const Ipv6& address, std::uint16_t port)
      : socket_(std::move(socket)), address_(address), port_(port) {}
  os::UdpSocket socket_;
  Ipv6 address_;
  std::uint16_t port_;
  bool sealed_ = false;
  std::uint64_t next_counter_ = 1u << 24;
};

// --- forged packets ----------------------------------------------------------------------------

inline void forge_nack(Stranger& from, const End& to, Psn psn) {
  from.send(to, {.opcode = wire::Opcode::kNack, .dest_qpn = to.hello.qpn, .psn = psn},
            wire::Nack{.reason = wire::NackReason::kUnexpectedEvent, .psn = psn});
}
// Forges a SACK and a Transport ACK: everything up to `psn` has arrived and is complete.
inline void forge_acknowledgement(Stranger& from, const End& to, Psn psn) {
  from.send(to, {.opcode = wire::Opcode::kSack, .dest_qpn = to.hello.qpn, .psn = psn},
            wire::Sack{.cack = psn, .rcvd_bytes_256 = 1});
  from.send(to, {.opcode = wire::Opcode::kTransportAck, .dest_qpn = to.hello.qpn, .psn = psn},
            wire::TransportAck{.msn = 1});
}
struct ForgedWrite {
  Psn psn;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
};
inline void forge_write(Stranger& from, const End& to, const ForgedWrite& write,
                        ConstBytes payload) {
  from.send(to,
            {.opcode = wire::Opcode::kWriteOnly,
             .pad = wire::pad_for(payload.size()),
             .dest_qpn = to.hello.qpn,
             .psn = write.psn},
            wire::Write{.va = write.va,
                        .rkey = write.rkey,
                        .message_size = static_cast<std::uint32_t>(payload.size())},
            payload);
}
inline void forge_port_status(Stranger& from, const End& to, std::uint16_t id) {
  from.send(
      to,
      {.opcode = wire::Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(id)},
      wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate, .port_status = 0});
}

}  // namespace weft::hostile
