// Links between real processes. Each child process is created before anything else is opened, and
// reports its result over a pipe.
#include "net/shm_port.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <vector>

#include "os/address.h"
#include "os/clock.h"
#include "resources.h"
#include "wire/packet.h"

namespace weft::net {
namespace {

// A node that keeps all received datagrams.
class Listener final : public world::Node {
 public:
  std::vector<std::vector<std::byte>> payloads;
  std::vector<world::Datagram> came;
  void on_datagrams(Time, std::span<const world::Datagram> in) override {
    for (const world::Datagram& d : in) {
      const auto* const at = reinterpret_cast<const std::byte*>(d.payload.at);
      payloads.emplace_back(at, at + d.payload.size);
      came.push_back(d);
    }
  }
  void on_port(Time, world::PortIndex, world::PortState) override {}
  void on_deadline(Time, Duration) override {}
  Time next_deadline() const override { return kNever; }
  std::size_t poll_transmit(Time, std::span<const world::PortRoom>,
                            std::span<world::Datagram>) override {
    return 0;
  }
};

// A name that no other test process uses.
world::Address name(std::uint16_t process) {
  return world::Address::of(
      base::ipv4(0x7f80'0000u | (static_cast<std::uint32_t>(getpid()) & 0x3f'ffff)), process);
}

std::unique_ptr<ShmPort> open_port(world::Address self, std::uint32_t links_max = 8) {
  auto port = ShmPort::open({.self = self, .port = 4, .links_max = links_max});
  EXPECT_TRUE(port) << port.error().message;
  return port ? std::move(port).value() : nullptr;
}

world::Datagram datagram(world::Address to, const std::vector<std::byte>& payload) {
  static const std::array<std::byte, 4> kHeader{std::byte{1}, std::byte{2}, std::byte{3}};
  return {.port = 4,
          .ecn = world::Ecn::kEct0,
          .dscp = world::Dscp::kTrimmable,
          .peer = to,
          .header = kHeader,
          .payload = {.at = reinterpret_cast<std::uintptr_t>(payload.data()),
                      .size = static_cast<std::uint32_t>(payload.size())}};
}

// Calls `done` repeatedly until it is true; false after five seconds.
bool until(const std::function<bool()>& done) {
  for (const Time limit = os::clock_now() + Duration::s(5); os::clock_now() < limit;) {
    if (done()) return true;
  }
  return done();
}

std::uint64_t counter(const ShmPort& port, std::string_view wanted) {
  const CounterTable table = port.counters();
  EXPECT_TRUE(has_counter(table, wanted)) << wanted;
  return value_of(table, wanted);
}

// A child process that runs `body` and exits with 0 if its result is true.
class Child {
 public:
  explicit Child(const std::function<bool()>& body) : pid_(fork()) {
    if (pid_ == 0) _exit(body() ? 0 : 1);
  }
  ~Child() {
    if (pid_ > 0) kill(pid_, SIGKILL), wait();
  }
  void kill_it() {
    kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = -1;
    if (pid_ > 0) waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

TEST(ShmPort, TwoProcessesReceiveWhatTheOtherSends) {
  const world::Address ours = name(1), theirs = name(2);
  constexpr std::size_t kCount = 2000;
  // The child process sends each payload back.
  Child child([=] {
    auto port = open_port(theirs);
    Listener node;
    std::size_t sent = 0;
    if (!until([&] { return port->reach(ours); })) return false;
    return until([&] {
      port->handle_events();
      port->receive(os::clock_now(), node);
      for (; sent < node.payloads.size() && port->room(Time()).packets > 0; ++sent) {
        port->send(datagram(ours, node.payloads[sent]));
      }
      port->flush();
      return sent == kCount;
    });
  });
  auto port = open_port(ours);
  Listener node;
  ASSERT_TRUE(until([&] { return port->reach(theirs); }));
  std::size_t sent = 0;
  std::vector<std::byte> payload;
  ASSERT_TRUE(until([&] {
    port->handle_events();
    port->receive(os::clock_now(), node);
    for (; sent < kCount && port->room(Time()).packets > 0; ++sent) {
      payload.assign(sent * 37 % 65537, static_cast<std::byte>(sent));
      port->send(datagram(theirs, payload));
    }
    port->flush();
    return node.payloads.size() == kCount;
  }));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(node.payloads[i].size(), i * 37 % 65537);
    ASSERT_TRUE(node.payloads[i].empty() || node.payloads[i].back() == static_cast<std::byte>(i));
    ASSERT_EQ(node.came[i].peer, theirs);
    ASSERT_EQ(node.came[i].port, 4);
    ASSERT_EQ(node.came[i].ecn, world::Ecn::kEct0);
    ASSERT_EQ(node.came[i].dscp, world::Dscp::kTrimmable);
  }
  EXPECT_EQ(counter(*port, "net.shm_drops_full"), 0u);
  EXPECT_EQ(child.wait(), 0);
}

// The test sets the times: copies that bypass the caches take half as long.
TEST(ShmPort, FasterCopyRoutineIsChosen) {
  const world::Address ours = name(1), theirs = name(2);
  constexpr std::uint64_t kBytes = 128u << 20;
  const std::vector<std::byte> payload(kShmPayloadMax, std::byte{5});
  Child child([=] {
    auto port = open_port(theirs);
    std::uint64_t bytes = 0;
    return until([&] {
      Listener node;
      port->handle_events();
      port->receive(os::clock_now(), node);
      for (const auto& came : node.payloads) bytes += came.size();
      return bytes >= kBytes;
    });
  });
  auto port = open_port(ours);
  ASSERT_TRUE(until([&] { return port->reach(theirs); }));
  Time now;
  ASSERT_TRUE(until([&] {
    if (port->room(now).packets == 0) return false;
    const std::uint64_t past = counter(*port, "net.shm_bulk_past_caches");
    port->send(datagram(theirs, payload));
    port->flush();
    const bool was_past = counter(*port, "net.shm_bulk_past_caches") > past;
    now += Duration::ps((was_past ? 50 : 100) * static_cast<std::int64_t>(payload.size()));
    return counter(*port, "net.shm_bulk_bytes") >= kBytes;
  }));
  EXPECT_GT(counter(*port, "net.shm_bulk_past_caches"), kBytes / 2);
  EXPECT_LT(counter(*port, "net.shm_bulk_past_caches"), kBytes);
  EXPECT_EQ(child.wait(), 0);
}

TEST(ShmPort, DeadProcessFreesItsLinks) {
  const world::Address ours = name(1), theirs = name(2);
  const std::size_t descriptors = open_descriptors();
  {
    Child child([=] {
      auto port = open_port(theirs);
      if (!until([&] { return port->reach(ours); })) return false;
      const std::vector<std::byte> last(100, std::byte{9});
      port->send(datagram(ours, last));
      port->flush();
      for (;;) pause();
    });
    auto port = open_port(ours);
    Listener node;
    ASSERT_TRUE(until([&] { return port->reach(theirs); }));
    ASSERT_TRUE(until([&] {
      port->handle_events();
      return counter(*port, "net.shm_links") == 2;
    }));
    EXPECT_EQ(ring_mappings(), 4u);
    child.kill_it();
    // First everything that the dead process sent before is received; then its resources are
    // released.
    ASSERT_TRUE(until([&] {
      port->handle_events();
      port->receive(os::clock_now(), node);
      return port->link_count() == 0;
    }));
    EXPECT_EQ(node.payloads.size(), 1u);
    EXPECT_EQ(ring_mappings(), 0u);
    EXPECT_EQ(counter(*port, "net.shm_peers_gone"), 1u);
    EXPECT_FALSE(port->reach(theirs));
    port->send(datagram(theirs, {}));
    EXPECT_EQ(counter(*port, "net.shm_drops_gone"), 1u);
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(ShmPort, SleepingReaderIsWoken) {
  const world::Address ours = name(1), theirs = name(2);
  Child child([=] {
    auto port = open_port(theirs);
    if (!until([&] { return port->reach(ours); })) return false;
    const std::vector<std::byte> word(8);
    for (int i = 0; i < 20; ++i) {
      usleep(2000);  // the other end probably sleeps then; nothing depends on it
      port->send(datagram(ours, word));
      port->flush();
    }
    for (;;) pause();
  });
  auto port = open_port(ours);
  Listener node;
  ASSERT_TRUE(until([&] {
    if (port->sleep()) {
      pollfd p{.fd = port->fd(), .events = POLLIN, .revents = 0};
      poll(&p, 1, 5000);
      port->wake();
    }
    port->handle_events();
    port->receive(os::clock_now(), node);
    return node.payloads.size() == 20;
  }));
}

TEST(ShmPort, StuckReaderDoesNotBlockOtherLinks) {
  auto ours = open_port(name(1));
  auto idle = open_port(name(2)), busy = open_port(name(3));
  ASSERT_TRUE(ours->reach(name(2)));
  ASSERT_TRUE(ours->reach(name(3)));
  Listener node;
  busy->handle_events();
  const std::vector<std::byte> payload(kShmPayloadMax);
  Time now = os::clock_now();
  for (int i = 0; i < 100 && ours->room(now).packets > 0; ++i)
    ours->send(datagram(name(2), payload));
  EXPECT_EQ(ours->room(now).packets, 0u);
  now += Duration::ms(200);
  EXPECT_GT(ours->room(now).packets, 0u);
  ours->send(datagram(name(3), payload));
  ours->send(datagram(name(2), payload));
  EXPECT_EQ(counter(*ours, "net.shm_drops_full"), 1u);
  EXPECT_TRUE(busy->receive(now, node));
}

TEST(ShmPort, NumberOfLinksIsBounded) {
  auto few = open_port(name(1), 1);
  auto a = open_port(name(2)), b = open_port(name(3));
  ASSERT_TRUE(a->reach(name(1)));
  few->handle_events();
  ASSERT_TRUE(b->reach(name(1)));  // b learns of the limit only when the other end accepts
  few->handle_events();
  EXPECT_EQ(few->link_count(), 1u);
  EXPECT_EQ(counter(*few, "net.shm_links_refused"), 1u);
  b->handle_events();
  EXPECT_EQ(b->link_count(), 0u);
  ASSERT_TRUE(few->reach(name(2)));
  EXPECT_FALSE(few->reach(name(3)));
}

TEST(ShmPort, NameHasOneOwner) {
  auto first = open_port(name(1));
  const auto second = ShmPort::open({.self = name(1)});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kExhausted);
  EXPECT_FALSE(first->reach(name(9)));
}

// A peer that writes invalid data into the ring loses its link; other links are not affected.
TEST(ShmPort, BrokenRingClosesItsLink) {
  auto ours = open_port(name(1));
  auto other = open_port(name(3));
  auto offer = shm_connect({.self = name(2), .peer = name(1), .capacity = 1u << 20});
  ASSERT_TRUE(offer);
  ASSERT_TRUE(other->reach(name(1)));
  Listener node;
  ours->handle_events();
  EXPECT_EQ(ours->link_count(), 2u);
  std::memset(offer->memory.data(), 0xff, 64);
  const std::vector<std::byte> payload(10);
  other->send(datagram(name(1), payload));
  EXPECT_TRUE(until([&] { return ours->receive(os::clock_now(), node); }));
  EXPECT_EQ(ours->link_count(), 1u);
  EXPECT_EQ(counter(*ours, "net.shm_links_broken"), 1u);
  Listener told;
  ours->report_refusals(os::clock_now(), told);
  ASSERT_EQ(told.came.size(), 1u);
  EXPECT_EQ(told.came[0].peer, name(2));
}

// A peer that writes an impossible read index loses its link; other links are not affected.
TEST(ShmPort, BrokenReadIndexClosesItsLink) {
  auto ours = open_port(name(1));
  auto other = open_port(name(3));
  const auto bad = shm_listen(name(2)).value();
  ASSERT_TRUE(ours->reach(name(2)));
  ASSERT_TRUE(ours->reach(name(3)));
  auto socket = shm_accept(bad);
  ASSERT_TRUE(socket);
  const auto greeting = shm_greeting(*socket);
  ASSERT_TRUE(greeting);
  std::memset(greeting->memory.control(), 0xff, sizeof(std::uint64_t));
  const std::vector<std::byte> payload(kShmPayloadMax);
  const Time now = os::clock_now();
  // The writer reads this index only when little room is left.
  for (int i = 0; i < 100 && counter(*ours, "net.shm_links_broken") == 0; ++i) {
    ASSERT_GT(ours->room(now).packets, 0u) << "the port is held back";
    ours->send(datagram(name(2), payload));
  }
  EXPECT_EQ(counter(*ours, "net.shm_links_broken"), 1u);
  EXPECT_EQ(ours->link_count(), 1u);
  EXPECT_EQ(ring_mappings(), 4u) << "two of the other link, two of the end that is broken";
  EXPECT_FALSE(socket->take_wakeups()) << "the link is closed";

  // The port may sleep only after it has reported that the peer is gone. Datagrams to the peer are
  // dropped, as for any dead peer.
  EXPECT_FALSE(ours->sleep());
  Listener node;
  ours->report_refusals(now, node);
  ASSERT_EQ(node.came.size(), 1u);
  EXPECT_TRUE(node.came[0].is_refusal());
  EXPECT_EQ(node.came[0].peer, name(2));
  EXPECT_EQ(counter(*ours, "net.shm_drops_full"), 0u);
  EXPECT_EQ(counter(*ours, "net.shm_drops_gone"), 1u);
  EXPECT_TRUE(ours->sleep());
  ours->wake();

  Listener served;
  other->handle_events();
  ours->send(datagram(name(3), payload));
  ours->flush();
  EXPECT_TRUE(until([&] { return other->receive(os::clock_now(), served); }));
}

TEST(ShmPort, PeerThatConnectsAndDiesLeavesNothing) {
  auto ours = open_port(name(1));
  ASSERT_TRUE(shm_connect({.self = name(2), .peer = name(1), .capacity = 1u << 20}));
  Listener node;
  for (int i = 0; i < 2; ++i) {
    ours->handle_events();
    ours->receive(os::clock_now(), node);
  }
  EXPECT_EQ(ours->link_count(), 0u);
  EXPECT_EQ(ring_mappings(), 0u);
}

TEST(ShmLink, WrongGreetingIsRefusedWhateverItsSize) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  ShmSocket ours(pair[0]);
  const ShmSocket theirs(pair[1]);
  EXPECT_EQ(shm_greeting(ours).error().kind, ErrorKind::kNotFound);
  const std::array<char, 64> nonsense{};
  for (const std::size_t size : {1u, 26u, 64u}) {
    ASSERT_EQ(send(theirs.fd(), nonsense.data(), size, 0), static_cast<ssize_t>(size));
    EXPECT_EQ(shm_greeting(ours).error().kind, ErrorKind::kInvalid);
  }
}

// The child process becomes another user, which needs root. Then neither end accepts the other.
TEST(ShmPort, PeerOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const world::Address ours = name(1);
  auto port = open_port(ours);
  Child child([=] {
    if (setresuid(12'345, 12'345, 12'345) != 0) return false;
    const auto offer = shm_connect({.self = name(2), .peer = ours, .capacity = 1u << 20});
    return !offer && offer.error().kind == ErrorKind::kNotFound;
  });
  EXPECT_EQ(child.wait(), 0);
  port->handle_events();
  EXPECT_EQ(port->link_count(), 0u);
  EXPECT_EQ(counter(*port, "net.shm_links"), 0u);
}

}  // namespace
}  // namespace weft::net
