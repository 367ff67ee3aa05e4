// Two worlds over real sockets on the loopback, which act like two processes. The nodes are
// scripted, because this folder may not use the transport.
#include "net/udp_world.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>

#include "base/test_counters.h"
#include "net/host_memory.h"
#include "net/shm_link.h"
#include "net/test_scripted_node.h"
#include "os/address.h"
#include "os/clock.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::net {
namespace {

using test::ScriptedNode;

// Number of descriptors that the epoll instance watches, as the kernel reports it.
std::size_t watched_by(int epoll_fd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(epoll_fd));
  std::size_t count = 0;
  for (std::string line; std::getline(info, line);) count += line.starts_with("tfd:") ? 1 : 0;
  return count;
}

class UdpWorldTest : public ::testing::Test {
 protected:
  struct End {
    std::unique_ptr<UdpWorld> world;
    ScriptedNode node;
  };
  void open(End& end, const UdpWorldConfig& config = {}) {
    auto opened = UdpWorld::open(config);
    ASSERT_TRUE(opened) << opened.error().message;
    end.world = std::move(opened).value();
    ASSERT_TRUE(end.world->attach(end.world->addresses(), end.node));
  }
  // Runs until `count` datagrams have arrived at b, for at most a second.
  void run(std::size_t count) {
    const Time until = os::clock_now() + Duration::s(20);
    while (b.node.came.size() < count && os::clock_now() < until) {
      a.world->pass();
      b.world->pass();
    }
  }
  // A WRITE of the first `size` bytes of `payload` from a to b.
  world::Datagram write(std::uint32_t psn, std::uint32_t size, fabric::Ev ev) {
    auto& header = headers.emplace_back();
    const std::size_t bytes =
        wire::emit({.opcode = wire::Opcode::kWriteOnly,
                    .pad = static_cast<std::uint8_t>(-size & 3),
                    .dest_qpn = 0x123,
                    .psn = Psn(psn)},
                   wire::Write{.sent = {7}, .va = 0x1000, .rkey = 5, .message_size = size}, header);
    return {.port = ev.port,
            .ecn = world::Ecn::kEct0,
            .dscp = world::Dscp::kTrimmable,
            .entropy = ev.value,
            .peer = b.world->addresses()[ev.port],
            .header = ConstBytes(header).first(bytes),
            .payload = {.at = reinterpret_cast<std::uintptr_t>(payload.data()), .size = size}};
  }

  void SetUp() override { std::iota(payload.begin(), payload.end(), std::uint8_t{0}); }

  End a, b;
  std::vector<std::uint8_t> payload = std::vector<std::uint8_t>(8192);
  std::deque<std::array<std::byte, wire::kHeaderSizeMax>> headers;
};

TEST_F(UdpWorldTest, EveryEvOfEveryPlaneCarriesItsPackets) {
  open(a);
  open(b);
  EXPECT_NE(a.world->process(), b.world->process());
  const auto evs = a.world->evs();
  ASSERT_EQ(evs.size(), 16u);
  std::uint32_t psn = 0;
  for (const fabric::Ev& ev : evs) a.node.to_send.push_back(write(psn++, 4096, ev));
  run(evs.size());
  ASSERT_EQ(b.node.came.size(), evs.size());
  for (const auto& came : b.node.came) {
    const auto packet = wire::parse(came.header);
    ASSERT_TRUE(packet);
    const fabric::Ev& ev = evs[packet->bth.psn.value()];
    EXPECT_EQ(came.datagram.entropy, ev.value);
    EXPECT_EQ(came.datagram.port, ev.port);
    EXPECT_EQ(came.datagram.peer, a.world->addresses()[ev.port]);
    EXPECT_EQ(came.datagram.ecn, world::Ecn::kEct0);
    EXPECT_EQ(came.datagram.dscp, world::Dscp::kTrimmable);
    EXPECT_TRUE(came.datagram.intact);
    ASSERT_EQ(came.payload.size(), 4096u);
    EXPECT_EQ(std::memcmp(came.payload.data(), payload.data(), 4096), 0);
  }
}

TEST_F(UdpWorldTest, RunIsOneSystemCallAndKeepsItsOrder) {
  for (const IcrcCover cover : {IcrcCover::kHeaders, IcrcCover::kFull}) {
    a = {}, b = {};
    open(a, {.icrc = cover});
    open(b, {.icrc = cover});
    const fabric::Ev ev = a.world->evs()[1];
    for (std::uint32_t psn = 0; psn < 14; ++psn) a.node.to_send.push_back(write(psn, 4096, ev));
    a.node.to_send.push_back(write(14, 77, ev));  // a shorter last packet fits into the run
    run(15);
    ASSERT_EQ(b.node.came.size(), 15u);
    for (std::uint32_t psn = 0; psn < 15; ++psn) {
      EXPECT_EQ(wire::parse(b.node.came[psn].header)->bth.psn, Psn(psn));
      EXPECT_EQ(b.node.came[psn].payload.size(), psn < 14 ? 4096u : 77u);
      EXPECT_TRUE(b.node.came[psn].datagram.intact);
    }
    EXPECT_EQ(value_of(a.world->counters(), "net.sends"), 1u);
  }
}

// The node sprays single packets over the paths. Packets that leave together on one path still take
// one system call, in their order.
TEST_F(UdpWorldTest, PacketsOfOnePathAreGathered) {
  open(a);
  open(b);
  constexpr std::uint32_t kPaths = 3, kEach = 5;
  for (std::uint32_t psn = 0; psn < kPaths * kEach; ++psn)
    a.node.to_send.push_back(write(psn, 4096, a.world->evs()[psn % kPaths]));
  run(kPaths * kEach);
  ASSERT_EQ(b.node.came.size(), kPaths * kEach);
  std::array<std::uint32_t, kPaths> next{0, 1, 2};
  for (const auto& came : b.node.came) {
    const std::uint32_t psn = wire::parse(came.header)->bth.psn.value();
    EXPECT_EQ(psn, next[psn % kPaths]);
    EXPECT_EQ(came.datagram.entropy, a.world->evs()[psn % kPaths].value);
    EXPECT_TRUE(came.datagram.intact);
    next[psn % kPaths] += kPaths;
  }
  EXPECT_EQ(value_of(a.world->counters(), "net.sends"), kPaths);
}

TEST_F(UdpWorldTest, EveryCounterHasAUnitAndItsOwnNameAndLabels) {
  for (const bool shared_memory : {false, true}) {
    a = {};
    open(a, {.shared_memory = shared_memory});
    expect_well_formed(a.world->counters());
    EXPECT_EQ(has_counter(a.world->counters(), "net.shm_drops_full"), shared_memory);
  }
}

TEST_F(UdpWorldTest, PacketsAreCountedOnTheirPlaneAtBothEnds) {
  open(a);
  open(b);
  const auto evs = a.world->evs();
  for (const fabric::Ev& ev : evs) {
    if (ev.port < 2) a.node.to_send.push_back(write(0, 100, ev));
  }
  const std::size_t count = a.node.to_send.size();
  run(count);
  ASSERT_EQ(b.node.came.size(), count);
  const CounterTable sent = a.world->counters(), received = b.world->counters();
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const bool used = sent[i].labels.plane.value_or(0) < 2;
    if (sent[i].name == "net.packets_sent") {
      EXPECT_EQ(sent[i].value, used ? count / 2 : 0) << text_of(sent[i]);
    }
    if (received[i].name == "net.packets_received") {
      EXPECT_EQ(received[i].value, used ? count / 2 : 0) << text_of(received[i]);
    }
  }
  EXPECT_EQ(value_of(sent, "net.packets_sent"), count);
  EXPECT_EQ(value_of(received, "net.packets_received"), count);
}

TEST_F(UdpWorldTest, PayloadOfEverySizeArrivesWhole) {
  open(a);
  open(b);
  const auto evs = a.world->evs();
  for (const std::uint32_t size : {0u, 1u, 2u, 3u, 4u, 5u, 1023u, 4095u, 4096u, 8192u}) {
    b.node.came.clear();
    a.node.to_send.push_back(write(size, size, evs[size % evs.size()]));
    run(1);
    ASSERT_EQ(b.node.came.size(), 1u) << size;
    ASSERT_EQ(b.node.came[0].payload.size(), size);
    EXPECT_TRUE(b.node.came[0].datagram.intact);
    EXPECT_TRUE(std::equal(payload.begin(), payload.begin() + size,
                           reinterpret_cast<const std::uint8_t*>(b.node.came[0].payload.data())));
  }
}

TEST_F(UdpWorldTest, GarbageIsCountedAndHasNoOtherEffect) {
  open(b);
  auto stranger = os::UdpSocket::open({.address = base::ipv4(127, 0, 1, 1)}).value();
  std::vector<std::byte> bytes(300, std::byte{0xff});
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    iovec piece{bytes.data(), size};
    stranger.send({.to = base::ipv4(127, 0, 1, 1), .port = wire::listen_port(b.world->process())},
                  {&piece, 1});
  }
  const auto dropped = [&] { return value_of(b.world->counters(), "net.drop"); };
  const std::uint64_t sent = (bytes.size() + 6) / 7;
  const Time until = os::clock_now() + Duration::s(20);
  while (dropped() < sent && os::clock_now() < until) b.world->pass();
  EXPECT_EQ(dropped(), sent);
  EXPECT_TRUE(b.node.came.empty());
}

TEST_F(UdpWorldTest, FlowLabelsCarryMoreEvsThanThereAreSockets) {
  const UdpWorldConfig config{.planes = {Ipv6{.high = 0, .low = 1}},
                              .ev_carrier = EvCarrier::kPortAndLabel,
                              .evs_per_plane = 40};
  open(a, config);
  open(b, config);
  const auto evs = a.world->evs();
  ASSERT_EQ(evs.size(), 40u);
  std::uint32_t psn = 0;
  for (const fabric::Ev& ev : evs) {
    a.node.to_send.push_back(write(psn++, 100, ev));
    a.world->pass();
  }
  run(evs.size());
  ASSERT_EQ(b.node.came.size(), evs.size());
  for (const auto& came : b.node.came) {
    EXPECT_EQ(came.datagram.entropy, evs[wire::parse(came.header)->bth.psn.value()].value);
    EXPECT_EQ(came.datagram.peer, a.world->addresses()[0]);
  }
}

TEST_F(UdpWorldTest, PacketOrWakeEndsTheSleep) {
  open(a);
  open(b, {.spin = Duration::us(1)});
  a.node.to_send.push_back(write(1, 100, a.world->evs()[0]));
  a.world->pass();
  b.world->step(os::clock_now() + Duration::ms(100));
  EXPECT_EQ(b.node.came.size(), 1u);
  b.world->wake();
  const Time before = os::clock_now();
  b.world->step(before + Duration::ms(20));
  EXPECT_LT(os::clock_now() - before, Duration::s(5));
}

TEST_F(UdpWorldTest, SharedMemoryIsOneMorePort) {
  open(a);
  open(b, {.spin = Duration()});
  EXPECT_EQ(a.world->port_count(), 5u);
  const auto ev = a.world->shared_memory_ev(b.world->addresses()[0]);
  ASSERT_TRUE(ev);
  EXPECT_EQ(ev->port, 4);
  // Sizes that UDP would not carry, mixed with a packet on a plane.
  payload.resize(65536);
  world::Datagram large = write(1, 65536, fabric::Ev{.value = ev->value, .port = 0});
  large.port = ev->port;
  a.node.to_send = {large, write(2, 100, a.world->evs()[0]), large};
  a.world->pass();
  const Time until = os::clock_now() + Duration::s(5);
  while (b.node.came.size() < 3 && os::clock_now() < until) b.world->progress(until);
  ASSERT_EQ(b.node.came.size(), 3u);
  std::size_t by_memory = 0;
  for (const auto& came : b.node.came) {
    EXPECT_EQ(came.datagram.peer, a.world->addresses()[0]);
    EXPECT_EQ(came.datagram.dscp, world::Dscp::kTrimmable);
    EXPECT_TRUE(came.datagram.intact);
    if (came.datagram.port != 4) continue;
    ++by_memory;
    ASSERT_EQ(came.payload.size(), 65536u);
    EXPECT_EQ(std::memcmp(came.payload.data(), payload.data(), 65536), 0);
  }
  EXPECT_EQ(by_memory, 2u);
}

TEST_F(UdpWorldTest, SharedMemoryCanBeTurnedOff) {
  open(a);
  open(b, {.shared_memory = false});
  EXPECT_EQ(b.world->port_count(), 4u);
  EXPECT_FALSE(a.world->shared_memory_ev(b.world->addresses()[0]));
  EXPECT_FALSE(b.world->shared_memory_ev(a.world->addresses()[0]));
  // No process has slot 255.
  EXPECT_FALSE(a.world->shared_memory_ev(world::Address::of(base::ipv4(127, 0, 1, 1), 255)));
}

// Any process can take any name, so a process whose name is taken must lose only its shared memory.
TEST_F(UdpWorldTest, ATakenNameDisablesSharedMemoryButCostsNoSlot) {
  open(a);
  const world::Address was = a.world->addresses()[0];
  a.world.reset();
  const auto stranger = shm_listen(was);
  ASSERT_TRUE(stranger) << stranger.error().message;
  open(a);
  open(b);
  EXPECT_EQ(a.world->addresses()[0], was);
  EXPECT_FALSE(a.world->shared_memory_ev(b.world->addresses()[0]));
  // b finds the stranger under a's name, since it has the same user. Ends that agree out of band
  // avoid this.
  EXPECT_TRUE(b.world->shared_memory_ev(was));
}

TEST(UdpWorldOpen, ImpossibleConfigurationsAreRefused) {
  EXPECT_EQ(UdpWorld::open({.planes = {}}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(UdpWorld::open({.evs_per_plane = 65}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(UdpWorld::open({.planes = {base::ipv4(8, 8, 8, 8)}}).error().kind, ErrorKind::kSystem);
}

TEST(UdpWorldOpen, MissingNamespaceIsNamed) {
  const auto opened = UdpWorld::open({.network_namespace = "/run/netns/no-such-namespace"});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("no-such-namespace"), std::string::npos);
}

TEST(Ports, SourcePortIdentifiesTheProcess) {
  for (std::uint16_t process = 0; process < wire::kProcessesMax; ++process) {
    for (const std::uint32_t ev : {0u, 1u, wire::kSourcePortsMax - 1}) {
      EXPECT_EQ(wire::process_of(wire::source_port(process, ev)), process);
    }
  }
  EXPECT_EQ(wire::process_of(wire::kSourcePortsFrom - 1), 0);
  EXPECT_EQ(wire::process_of(0), 0);
  EXPECT_EQ(wire::process_of(0xffff), 0);
  EXPECT_LT(wire::source_port(wire::kProcessesMax - 1, wire::kSourcePortsMax - 1),
            32'768);  // Linux assigns ephemeral ports from 32,768 on
}

// The kernel notifies everything that watches a socket of each packet, in the sender's time. So a
// thread that is awake does not watch.
TEST_F(UdpWorldTest, AwakeThreadWatchesNoPlaneAndWaitingThreadWatchesAll) {
  open(a);
  open(b);
  const auto is_told = [&](int timeout_ms) {
    pollfd what{.fd = b.world->wait_fd(), .events = POLLIN, .revents = 0};
    return poll(&what, 1, timeout_ms) == 1;
  };
  // Keeps b awake until this many descriptors are watched, or for 20 s.
  const auto stay_awake = [&](std::size_t watched) {
    const Time until = os::clock_now() + Duration::s(20);
    while (watched_by(b.world->wait_fd()) != watched && os::clock_now() < until) b.world->pass();
    return watched_by(b.world->wait_fd()) == watched;
  };
  const std::size_t all = watched_by(b.world->wait_fd());
  const std::size_t others = all - os::loopback_planes().size();
  EXPECT_TRUE(stay_awake(others));
  const auto send = [&](std::uint32_t psn) {
    a.node.to_send.push_back(write(psn, 4096, a.world->evs()[psn]));
    a.world->pass();
  };
  // While b is awake, it receives without watching.
  send(0);
  run(1);
  EXPECT_EQ(b.node.came.size(), 1u);
  EXPECT_EQ(watched_by(b.world->wait_fd()), others);
  // A wait reports packets that arrived before it and packets that arrive during it.
  send(1);
  EXPECT_FALSE(is_told(0));
  ASSERT_TRUE(b.world->prepare_wait());
  EXPECT_TRUE(is_told(20'000));
  b.world->pass();
  EXPECT_EQ(b.node.came.size(), 2u);
  // While one thread waits, another thread stays awake for a long time.
  for (int i = 0; i < 3; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
    b.world->pass();
    EXPECT_EQ(watched_by(b.world->wait_fd()), all);
  }
  send(2);
  EXPECT_TRUE(is_told(20'000));
  b.world->pass();
  b.world->end_wait();
  EXPECT_EQ(b.node.came.size(), 3u);
  EXPECT_TRUE(stay_awake(others));
}

// Peers that are not Weft. These tests use their own addresses, so that no other process has their
// port 4791.
TEST(UdpWorldOfOthers, OneProcessHasTheAddressAndAcceptsAnySourcePort) {
  const UdpWorldConfig config{.planes = {base::ipv4(127, 0, 21, 7)}, .peers = PeerKind::kNic};
  auto world = UdpWorld::open(config);
  ASSERT_TRUE(world) << world.error().message;
  EXPECT_EQ((*world)->process(), 0);
  EXPECT_FALSE((*world)->has_shared_memory());
  EXPECT_EQ(UdpWorld::open(config).error().kind, ErrorKind::kBusy);

  // This source port would identify process 3 of a Weft host.
  ScriptedNode node;
  ASSERT_TRUE((*world)->attach((*world)->addresses(), node));
  auto sender =
      os::UdpSocket::open({.address = base::ipv4(127, 0, 21, 8), .port = wire::source_port(3, 1)});
  ASSERT_TRUE(sender);
  std::array<std::byte, wire::kHeaderSizeMax> header;
  const std::size_t size = wire::emit({.opcode = wire::Opcode::kProbe, .dest_qpn = 0x123},
                                      wire::Probe{.probe_id = 1}, header);
  wire::Icrc icrc(
      {.source = base::ipv4(127, 0, 21, 8),
       .destination = config.planes[0],
       .source_port = wire::source_port(3, 1),
       .destination_port = wire::listen_port(0),
       .udp_size = static_cast<std::uint16_t>(size + wire::kIcrcSize + wire::kUdpSize)});
  icrc.add_header(ConstBytes(header).first(size));
  std::array<std::byte, wire::kIcrcSize> trailer;
  icrc.store(trailer);
  std::array<iovec, 2> pieces = {iovec{header.data(), size}, iovec{trailer.data(), trailer.size()}};
  sender->send({.to = config.planes[0], .port = wire::listen_port(0)}, pieces);
  for (const Time until = os::clock_now() + Duration::s(20);
       node.came.empty() && os::clock_now() < until;)
    (*world)->pass();
  ASSERT_EQ(node.came.size(), 1u);
  EXPECT_TRUE(node.came[0].datagram.intact);
  EXPECT_EQ(node.came[0].datagram.peer, world::Address::of(base::ipv4(127, 0, 21, 8), 0));
}

TEST(UdpWorldOfOthers, MrcPeersNeedIpv6AndNoSecret) {
  const auto kind = [](const UdpWorldConfig& config) {
    return UdpWorld::open(config).error().kind;
  };
  EXPECT_EQ(kind({.planes = {base::ipv4(10, 0, 1, 7)}, .peers = PeerKind::kNic}),
            ErrorKind::kInvalid);
  EXPECT_EQ(kind({.planes = {base::ipv4(127, 0, 21, 9)},
                  .peers = PeerKind::kNic,
                  .job_secret = std::vector<std::byte>(32)}),
            ErrorKind::kInvalid);
}

TEST(HostMemory, AccessIsOnlyInsideARegionUnderItsKey) {
  HostMemory memory(2, 1);
  std::vector<std::byte> some(100), other(50);
  const auto at = [](const std::vector<std::byte>& v) {
    return reinterpret_cast<std::uintptr_t>(v.data());
  };
  const std::uint32_t key = memory.add(some, world::Access::kRemoteWrite).value();
  const std::uint32_t local = memory.add(other, world::Access::kLocal).value();
  EXPECT_EQ(memory.add(some, world::Access::kLocal).error().kind, ErrorKind::kExhausted);
  world::Region out;
  EXPECT_TRUE(memory.region({.key = key, .at = at(some), .size = 100}, out));
  EXPECT_FALSE(memory.region({.key = key, .at = at(some), .size = 101}, out));
  EXPECT_FALSE(memory.region({.key = key, .at = at(some) - 1, .size = 1}, out));
  EXPECT_FALSE(memory.region({.key = key, .at = at(some) + 101, .size = 0}, out));
  EXPECT_FALSE(memory.region({.key = key, .at = 0xffff'ffff'ffff'ffff, .size = 2}, out));
  EXPECT_FALSE(memory.region({.key = local, .at = at(other), .size = 1}, out));
  EXPECT_FALSE(memory.region({.key = key + 1, .at = at(some), .size = 1}, out));
  EXPECT_TRUE(memory.remove(key));
  EXPECT_FALSE(memory.remove(key));
  EXPECT_FALSE(memory.region({.key = key, .at = at(some), .size = 1}, out));
}

}  // namespace
}  // namespace weft::net
