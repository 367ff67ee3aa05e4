// UdpSocket sends runs of packets, even where the kernel cannot segment them.
#include "os/udp_socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace weft::net {
namespace {

class UdpRuns : public ::testing::Test {
 protected:
  // An address that depends on the process id, so that parallel tests do not disturb each other.
  static Ipv6 address() {
    const auto pid = static_cast<std::uint32_t>(getpid());
    return base::ipv4(127, 78, static_cast<std::uint8_t>(pid >> 7),
                      static_cast<std::uint8_t>(pid << 1 | 1));
  }
  static constexpr std::uint16_t kPort = 14'999;

  // Sends a run of three packets of 1000 bytes and one of 300; each has a header, a payload and a
  // trailer.
  os::UdpSocket::Sent send_run() {
    std::vector<iovec> pieces;
    for (std::size_t packet = 0; packet < 4; ++packet) {
      std::byte* const at = bytes_.data() + packet * 1000;
      const std::size_t size = packet < 3 ? 1000 : 300;
      pieces.push_back({at, 40});
      pieces.push_back({at + 40, size - 44});
      pieces.push_back({at + size - 4, 4});
    }
    return sender_.send({.to = address(), .port = kPort, .segment = 1000}, pieces);
  }
  // Receives until no more bytes arrive.
  std::vector<std::byte> receive() {
    std::vector<std::byte> got, buffer(os::UdpSocket::kRunBytes);
    pollfd waiting{.fd = receiver_.fd(), .events = POLLIN, .revents = 0};
    while (poll(&waiting, 1, 100) > 0) {
      os::UdpSocket::Incoming run;
      if (receiver_.receive(buffer, {&run, 1}) == 0) break;
      ++runs_;
      got.insert(got.end(), buffer.begin(), buffer.begin() + run.size);
    }
    return got;
  }
  void SetUp() override {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::byte>(i * 7 + i / 256);
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(3300);
  os::UdpSocket sender_ = os::UdpSocket::open({.address = address()}).value();
  os::UdpSocket receiver_ =
      os::UdpSocket::open({.address = address(), .port = kPort, .receives = true}).value();
  int runs_ = 0;
};

TEST_F(UdpRuns, RunArrivesAsOneRun) {
  ASSERT_EQ(send_run(), os::UdpSocket::Sent::kTaken);
  EXPECT_EQ(receive(), bytes_);
  EXPECT_EQ(runs_, 1);
}

// Without UDP checksums the kernel refuses to segment, as on an interface without checksum offload.
TEST_F(UdpRuns, RunIsSentPacketByPacketIfTheKernelRefusesIt) {
  const int on = 1;
  ASSERT_EQ(setsockopt(sender_.fd(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(send_run(), os::UdpSocket::Sent::kTaken);
    EXPECT_EQ(receive(), bytes_);
  }
  EXPECT_EQ(runs_, 8);
}

TEST_F(UdpRuns, PacketThatNeverFitsIsReportedAsNever) {
  std::vector<std::byte> large(70'000);
  iovec piece{large.data(), large.size()};
  EXPECT_EQ(sender_.send({.to = address(), .port = kPort}, {&piece, 1}),
            os::UdpSocket::Sent::kNever);
}

// A socket that repeatedly sends to one address connects to it. It must still receive refusals from
// other addresses.
TEST_F(UdpRuns, RefusalFromAnyAddressIsReported) {
  os::UdpSocket sender =
      os::UdpSocket::open({.address = address(), .hears_refusals = true}).value();
  constexpr std::uint16_t kNobody = 14'998;
  std::array<std::byte, 8> word{};
  iovec piece{word.data(), word.size()};
  const auto send_to = [&](std::uint16_t port) {
    return sender.send({.to = address(), .port = port}, {&piece, 1});
  };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 200; ++i) ASSERT_EQ(send_to(kPort), os::UdpSocket::Sent::kTaken);
    EXPECT_FALSE(sender.poll_refusal());
    ASSERT_EQ(send_to(kNobody), os::UdpSocket::Sent::kTaken);
    pollfd waiting{.fd = sender.fd(), .events = 0, .revents = 0};
    ASSERT_EQ(poll(&waiting, 1, 1000), 1) << round;
    const auto refused = sender.poll_refusal();
    ASSERT_TRUE(refused) << round;
    EXPECT_EQ(refused->ip, address());
    EXPECT_EQ(refused->port, kNobody);
    // The ICMP error about an earlier packet must not drop a later packet.
    ASSERT_EQ(send_to(kNobody), os::UdpSocket::Sent::kTaken);
    ASSERT_EQ(send_to(kPort), os::UdpSocket::Sent::kTaken);
    while (sender.poll_refusal()) {
    }
  }
}

}  // namespace
}  // namespace weft::net
