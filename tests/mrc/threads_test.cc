// Thread safety as the verbs promise it: every function may be called by any thread at any time, as
// long as nobody destroys what another still uses. `make test-tsan` runs it under TSan, where a race
// is a failure; elsewhere it shows that nothing is lost.
#include <cstdlib>

#include "threads_side.h"

namespace weft::mrc_test {
namespace {

// In processes of their own, since a process reads its settings once.
void run_between_two(const char* shared_memory) {
  WEFT_NEEDS_FRESH_PROCESS();
  const auto play = [](std::uint32_t place, const Line& line) {
    Side side(place);
    ASSERT_TRUE(side.is_open());
    side.connect(line);
    side.run(line);
  };
  OtherProcess one([&](const Line&) {
    setenv("WEFT_SHM", shared_memory, 1);
    OtherProcess other([&](const Line& line) { play(1, line); });
    play(0, other.line());
    EXPECT_EQ(other.join(), 0);
  });
  EXPECT_EQ(one.join(), 0);
}

TEST(Threads, AnyFunctionFromAnyThreadOverPlanes) { run_between_two("off"); }

TEST(Threads, AnyFunctionFromAnyThreadOverSharedMemory) { run_between_two("must"); }

}  // namespace
}  // namespace weft::mrc_test
