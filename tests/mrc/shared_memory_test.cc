// What carries a QP between two processes of a host: shared memory by default, the planes if one
// end has switched shared memory off. The ends exchange only GID, QP number and PSN.
#include "configured_pair.h"

namespace weft::mrc_test {
namespace {

TEST(SharedMemory, ProcessesOfOneHostUseSharedMemoryByDefault) {
  WEFT_NEEDS_FRESH_PROCESS();
  const Rings rings = run_pair({{"WEFT_SHM", "auto"}}, {{"WEFT_SHM", "auto"}});
  EXPECT_TRUE(rings.at_writer);
  EXPECT_TRUE(rings.at_receiver);
}

TEST(SharedMemory, EitherEndCanSwitchSharedMemoryOff) {
  WEFT_NEEDS_FRESH_PROCESS();
  for (const bool at_writer : {true, false}) {
    const Rings rings = run_pair({{"WEFT_SHM", at_writer ? "off" : "auto"}},
                                 {{"WEFT_SHM", at_writer ? "auto" : "off"}});
    EXPECT_FALSE(rings.at_writer);
    EXPECT_FALSE(rings.at_receiver);
  }
}

TEST(SharedMemory, EndThatRequiresSharedMemoryDoesNotConnectWithoutIt) {
  WEFT_NEEDS_FRESH_PROCESS();
  OtherProcess other([](const Line& line) {
    use({{"WEFT_SHM", "off"}});
    Child child;
    child.meet(line);
    line.receive<int>();
  });
  OtherProcess strict([](const Line& line) {
    use({{"WEFT_SHM", "must"}});
    Child child;
    const Wire peer = child.meet(line);
    EXPECT_EQ(child.end.to_init(), 0);
    EXPECT_EQ(child.end.to_rtr(peer), EIO);
    EXPECT_EQ(child.end.state(), IBV_QPS_INIT);
    line.send(1);
  });
  const Wire of_other = other.line().receive<Wire>(), of_strict = strict.line().receive<Wire>();
  other.line().send(of_strict);
  strict.line().send(of_other);
  strict.line().receive<int>();
  other.line().send(1);
  EXPECT_EQ(strict.join(), 0);
  EXPECT_EQ(other.join(), 0);
}

}  // namespace
}  // namespace weft::mrc_test
