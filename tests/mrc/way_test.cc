// What carries a QP between two processes of a host: shared memory by itself, planes where an end
// does not want it. Nothing but GID, QPN and PSN is told out of band.
#include "way_child.h"

namespace weft::mrc_test {
namespace {

TEST(Way, ProcessesOfOneHostShareMemoryByThemselves) {
  WEFT_NEEDS_FRESH_PROCESS();
  const Rings rings = play({{"WEFT_SHM", "auto"}}, {{"WEFT_SHM", "auto"}});
  EXPECT_TRUE(rings.at_writer);
  EXPECT_TRUE(rings.at_taker);
}

TEST(Way, EitherEndCanSwitchItOff) {
  WEFT_NEEDS_FRESH_PROCESS();
  for (const bool at_writer : {true, false}) {
    const Rings rings = play({{"WEFT_SHM", at_writer ? "off" : "auto"}},
                             {{"WEFT_SHM", at_writer ? "auto" : "off"}});
    EXPECT_FALSE(rings.at_writer);
    EXPECT_FALSE(rings.at_taker);
  }
}

TEST(Way, WhoMustHaveItIsNotConnectedWithoutIt) {
  WEFT_NEEDS_FRESH_PROCESS();
  OtherProcess other([](const Line& line) {
    use({{"WEFT_SHM", "off"}});
    Child child;
    child.meet(line);
    line.hear<int>();
  });
  OtherProcess strict([](const Line& line) {
    use({{"WEFT_SHM", "must"}});
    Child child;
    const Wire peer = child.meet(line);
    EXPECT_EQ(child.end.to_init(), 0);
    EXPECT_EQ(child.end.to_rtr(peer), EIO);
    EXPECT_EQ(child.end.state(), IBV_QPS_INIT);
    line.tell(1);
  });
  const Wire of_other = other.line().hear<Wire>(), of_strict = strict.line().hear<Wire>();
  other.line().tell(of_strict);
  strict.line().tell(of_other);
  strict.line().hear<int>();
  other.line().tell(1);
  EXPECT_EQ(strict.join(), 0);
  EXPECT_EQ(other.join(), 0);
}

}  // namespace
}  // namespace weft::mrc_test
