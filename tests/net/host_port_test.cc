// UDP port 4791 of a host, after the process that had the port was killed: which process answers
// requests for the host? Real processes, on loopback addresses that only this test uses.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <optional>

#include "net/host_memory.h"
#include "net/udp_world.h"
#include "os/clock.h"
#include "transport/endpoint.h"
#include "wire/datagram.h"
#include "wire/icrc.h"

namespace weft::net {
namespace {

constexpr std::uint8_t kPlanes = 2;
// How long to wait for a takeover. It takes a second; the limit is far higher, because machines may
// be busy.
constexpr Duration kSoon = Duration::s(20);

Ipv6 plane_address(std::uint32_t plane) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return base::ipv4(127, static_cast<std::uint8_t>(128 + pid % 100),
                    static_cast<std::uint8_t>(pid / 100), static_cast<std::uint8_t>(1 + plane));
}

// A child process with a world and an endpoint. It ends with this object.
class Rank {
 public:
  explicit Rank(const UdpWorldConfig& config) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      work(config, ends[1]);
    }
    close(ends[1]);
    std::uint16_t slot = 0xffff;
    EXPECT_EQ(read(ends[0], &slot, sizeof(slot)), static_cast<ssize_t>(sizeof(slot)));
    close(ends[0]);
    slot_ = slot;
  }
  ~Rank() { kill(SIGKILL); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  std::uint16_t slot() const { return slot_; }
  void kill(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    if (signal != SIGKILL) return;
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  [[noreturn]] static void work(const UdpWorldConfig& config, int tell) {
    auto world = UdpWorld::open(config);
    if (!world) _exit(1);
    HostMemory memory(1, 1);
    transport::EndpointConfig endpoint_config;
    endpoint_config.port_count = (*world)->port_count();
    const auto addresses = (*world)->addresses();
    std::copy(addresses.begin(), addresses.end(), endpoint_config.ports.begin());
    transport::Endpoint endpoint(endpoint_config, memory, nullptr);
    if (!(*world)->attach(addresses, endpoint)) _exit(1);
    const std::uint16_t slot = (*world)->process();
    if (write(tell, &slot, sizeof(slot)) != sizeof(slot)) _exit(1);
    const pid_t parent = getppid();
    while (getppid() == parent) (*world)->step(os::clock_now() + Duration::ms(100));
    _exit(0);
  }
  pid_t pid_ = -1;
  std::uint16_t slot_ = 0;
};

class HostPort : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t p = 0; p < kPlanes; ++p) config.planes.push_back(plane_address(p));
    config.spin = Duration();
    for (std::uint32_t p = 0; p < kPlanes; ++p) {
      asker[p] = os::UdpSocket::open({.address = asker_address(p),
                                      .port = wire::source_port(0, 0),
                                      .receives = true,
                                      .hears_refusals = true})
                     .value();
      ears[p] = os::UdpSocket::open(
                    {.address = asker_address(p), .port = wire::listen_port(0), .receives = true})
                    .value();
    }
  }
  // The address from which the test sends, as if it were another host.
  static Ipv6 asker_address(std::uint32_t plane) {
    Ipv6 out = plane_address(plane);
    out.low += 100;
    return out;
  }
  template <typename Body>
  void send(std::uint32_t plane, const wire::Bth& bth, const Body& body) {
    std::vector<std::byte> packet(wire::kHeaderSizeMax);
    packet.resize(wire::emit(bth, body, packet));
    const std::size_t header = packet.size();
    packet.resize(header + wire::kIcrcSize);
    wire::Icrc icrc(
        wire::IcrcFlow{.source = asker_address(plane),
                       .destination = plane_address(plane),
                       .source_port = wire::source_port(0, 0),
                       .destination_port = wire::listen_port(0),
                       .udp_size = static_cast<std::uint16_t>(packet.size() + wire::kUdpSize)});
    icrc.add_header(ConstBytes(packet).first(header));
    icrc.store(Bytes(packet).subspan(header));
    iovec piece{packet.data(), packet.size()};
    asker[plane].send({.to = plane_address(plane), .port = wire::listen_port(0)}, {&piece, 1});
  }
  // Sends an EV probe to the host in that plane. Returns the slot of the process that answered, or
  // nothing if none answered within 50 ms. Counts all answers, so that a second answer to one probe
  // is noticed.
  std::optional<std::uint16_t> probe(std::uint32_t plane) {
    const std::uint32_t id = ++ids;
    send(plane,
         {.opcode = wire::Opcode::kEndpointRequest, .dest_qpn = wire::kEndpointQpn, .psn = Psn(id)},
         wire::EndpointRequest{.op = wire::EndpointOp::kEvProbe});
    std::optional<std::uint16_t> who;
    const Time until = os::clock_now() + Duration::ms(50);
    while (os::clock_now() < until && !who) {
      pollfd what{.fd = ears[plane].fd(), .events = POLLIN, .revents = 0};
      poll(&what, 1, 10);
      os::UdpSocket::Incoming run;
      std::vector<std::byte> buffer(os::UdpSocket::kRunBytes);
      while (ears[plane].receive(buffer, {&run, 1}) == 1) {
        const auto parts = wire::split_datagram(ConstBytes(buffer).first(run.size));
        EXPECT_TRUE(parts);
        if (!parts) continue;
        const auto packet = wire::parse(parts->header);
        EXPECT_TRUE(packet && packet->bth.opcode == wire::Opcode::kEndpointResponse);
        if (!packet) continue;
        ++answers[packet->bth.psn.value()];
        if (packet->bth.psn == Psn(id)) who = wire::process_of(run.port);
      }
    }
    return who;
  }
  // Sends probes until a process other than that of slot `before` answers.
  std::optional<std::uint16_t> wait_for_another(std::uint32_t plane, std::uint16_t before) {
    const Time until = os::clock_now() + kSoon;
    while (os::clock_now() < until) {
      const auto who = probe(plane);
      if (who && *who != before) return who;
    }
    return std::nullopt;
  }
  void expect_single_answers() const {
    for (const auto& [id, count] : answers) EXPECT_EQ(count, 1u) << "request " << id;
  }

  UdpWorldConfig config{.planes = {}};
  std::array<os::UdpSocket, kPlanes> asker, ears;
  std::uint32_t ids = 0;
  std::map<std::uint32_t, std::uint32_t> answers;
};

TEST_F(HostPort, AnotherProcessAnswersWhenTheFirstIsKilled) {
  Rank first(config), second(config);
  ASSERT_EQ(first.slot(), 0);
  ASSERT_EQ(second.slot(), 1);
  EXPECT_EQ(probe(0), 0);
  first.kill(SIGKILL);
  for (std::uint32_t plane = 0; plane < kPlanes; ++plane)
    EXPECT_EQ(wait_for_another(plane, 0), 1) << plane;
  // A process that starts later takes a slot of its own; the same process keeps answering.
  Rank third(config);
  EXPECT_EQ(third.slot(), 2);
  // This is longer than two takeover attempts of the new process.
  const Time until = os::clock_now() + Duration::ms(1200);
  while (os::clock_now() < until) EXPECT_EQ(probe(1), 1);
  expect_single_answers();
}

TEST_F(HostPort, NewProcessMayTakeTheSlotBeforeATakeover) {
  Rank first(config), second(config);
  second.kill(SIGSTOP);
  first.kill(SIGKILL);
  Rank third(config);
  EXPECT_EQ(third.slot(), 0);
  second.kill(SIGCONT);
  const Time until = os::clock_now() + Duration::ms(1200);
  while (os::clock_now() < until) EXPECT_EQ(probe(0), 0);
  third.kill(SIGKILL);
  EXPECT_EQ(wait_for_another(0, 0), 1);
  expect_single_answers();
}

TEST_F(HostPort, OneOfSeveralCandidatesAnswersAndThenTheNext) {
  Rank first(config);
  std::vector<std::unique_ptr<Rank>> others;
  for (int i = 0; i < 3; ++i) others.push_back(std::make_unique<Rank>(config));
  first.kill(SIGKILL);
  auto winner = wait_for_another(0, 0);
  ASSERT_TRUE(winner);
  for (int round = 0; round < 2; ++round) {
    const Time until = os::clock_now() + Duration::ms(600);
    while (os::clock_now() < until) {
      EXPECT_EQ(probe(0), winner);
      EXPECT_EQ(probe(1), winner);  // the same process answers in all planes
    }
    others[*winner - 1u]->kill(SIGKILL);
    const auto next = wait_for_another(0, *winner);
    ASSERT_TRUE(next);
    EXPECT_NE(next, winner);
    winner = next;
  }
  expect_single_answers();
}

// The kernel must refuse packets for the dead process after the takeover too, so that its peers
// notice.
TEST_F(HostPort, PacketsForTheDeadProcessAreRefusedAgain) {
  Rank first(config), second(config);
  first.kill(SIGKILL);
  ASSERT_EQ(wait_for_another(0, 0), 1);
  while (asker[0].poll_refusal()) {
  }  // discards refusals that came before the takeover
  bool refused = false;
  const Time until = os::clock_now() + kSoon;
  for (std::uint32_t psn = 0; !refused && os::clock_now() < until; ++psn) {
    send(0, {.opcode = wire::Opcode::kProbe, .dest_qpn = 0x123, .psn = Psn(psn)}, wire::Probe{});
    usleep(1000);
    refused = asker[0].poll_refusal().has_value();
  }
  EXPECT_TRUE(refused);
  EXPECT_EQ(wait_for_another(0, 0), 1);  // the host answers again
}

}  // namespace
}  // namespace weft::net
