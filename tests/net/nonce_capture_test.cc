// No pair (key, nonce) occurs twice on the wire. Real processes of a secured job run; one is killed
// during a transfer and restarted in the same slot, and others share the same addresses.
// CaptureReader finds the key of each captured packet.
#include <gtest/gtest.h>

#include <functional>

#include "capture_reader.h"
#include "net_process.h"
#include "os/clock.h"
#include "packet_tap.h"

namespace weft::hostile {
namespace {

// The number of packets that each process must have sealed.
constexpr std::uint64_t kEnough = 2000;

class NonceOnTheWire : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!tap.open()) GTEST_SKIP() << tap.why_not();
    options.world.planes = own_planes();
    options.world.shared_memory = false;
    options.world.job_secret = job_secret();
    options.world.rate_cap = Rate::bps(200'000'000);  // so slow that the tap misses nothing
    ASSERT_TRUE(tap.narrow_to(options.world.planes[0]));
  }
  // Reads captured packets until `is_over`, for at most 20 s.
  bool read_until(const std::function<bool()>& is_over) {
    const Time until = os::clock_now() + Duration::s(20);
    while (os::clock_now() < until) {
      for (PacketTap::Seen& seen : tap.take_all(Security::kSecured)) {
        reader.take(seen);
        last = std::move(seen);
      }
      if (is_over()) return true;
      usleep(1000);
    }
    return false;
  }
  // Reads until this many processes have sealed enough packets each.
  bool read_enough_of(std::size_t processes) {
    return read_until(
        [&] { return reader.sealed_by().size() == processes && reader.least_sealed() >= kEnough; });
  }
  std::size_t incarnations_in(std::uint16_t slot) const {
    return static_cast<std::size_t>(
        std::count_if(reader.sealed_by().begin(), reader.sealed_by().end(),
                      [&](const auto& process) { return process.first.first == slot; }));
  }

  PacketTap tap;
  engine::NetRdmaOptions options;
  CaptureReader reader{job_secret()};
  PacketTap::Seen last;
};

TEST_F(NonceOnTheWire, NeverRepeatsAfterAKillNorBesideOtherProcesses) {
  NetProcess survivor(options, NetProcess::Does::kWrites);
  NetProcess killed(options, NetProcess::Does::kWrites);
  ASSERT_EQ(survivor.slot(), 0);
  ASSERT_EQ(killed.slot(), 1);
  connect(survivor, killed);
  ASSERT_TRUE(read_enough_of(2));
  killed.kill();  // in the middle of a transfer, because it writes endlessly

  NetProcess again(options, NetProcess::Does::kWrites);
  ASSERT_EQ(again.slot(), 1) << "the slot is free at once";
  // Two more processes on the same pair of addresses; one of them connects also to the survivor.
  NetProcess third(options, NetProcess::Does::kWrites), fourth(options, NetProcess::Does::kWrites);
  ASSERT_EQ(fourth.slot(), 3);
  connect(survivor, again);
  connect(third, fourth);
  connect(survivor, fourth);
  ASSERT_TRUE(read_enough_of(5));
  for (NetProcess* process : {&survivor, &again, &third, &fourth}) process->kill();
  read_until([] { return true; });

  EXPECT_EQ(tap.poll_missed(), 0u);
  EXPECT_EQ(reader.unattributed(), 0u);
  for (const std::string& what : reader.repeated()) ADD_FAILURE() << what;
  EXPECT_EQ(incarnations_in(0), 1u);
  EXPECT_EQ(incarnations_in(1), 2u);
  EXPECT_EQ(incarnations_in(2), 1u);
  EXPECT_EQ(incarnations_in(3), 1u);
  // Each of the four connections has a key for each direction; endpoint packets may use more keys.
  EXPECT_GE(reader.key_count(), 8u);
  std::printf("%llu sealed packets of 5 processes under %zu keys\n",
              static_cast<unsigned long long>(reader.attributed()), reader.key_count());

  // Reading one packet twice shows that the reader detects repetitions.
  reader.take(last);
  EXPECT_EQ(reader.repeated().size(), 1u);
}

}  // namespace
}  // namespace weft::hostile
