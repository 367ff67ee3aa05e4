// Thread safety as verbs promise it: any thread may call any function at any time, as long as no
// thread destroys an object that another thread uses. `make test-tsan` runs this test under TSan,
// where a race is a failure. In other builds the test shows that no completion is lost.
#include <cstdlib>

#include "threads_side.h"

namespace weft::mrc_test {
namespace {

// Each end is a process of its own, because a process reads its settings only once.
void run_between_two(const char* shared_memory) {
  WEFT_NEEDS_FRESH_PROCESS();
  const auto run_side = [](std::uint32_t place, const Line& line) {
    Side side(place);
    ASSERT_TRUE(side.is_open());
    side.connect(line);
    side.run(line);
  };
  OtherProcess one([&](const Line&) {
    setenv("WEFT_SHM", shared_memory, 1);
    OtherProcess other([&](const Line& line) { run_side(1, line); });
    run_side(0, other.line());
    EXPECT_EQ(other.join(), 0);
  });
  EXPECT_EQ(one.join(), 0);
}

TEST(Threads, AnyThreadMayCallAnyFunctionOverPlanes) { run_between_two("off"); }

TEST(Threads, AnyThreadMayCallAnyFunctionOverSharedMemory) { run_between_two("must"); }

}  // namespace
}  // namespace weft::mrc_test
