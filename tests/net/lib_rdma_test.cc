// LibRdma, apart from the contract of rdma/rdma.h: errors for libraries and devices that cannot be
// used, and the health that mrc.h reports.
#include "mrclib/lib_rdma.h"

#include <gtest/gtest.h>

#include "os/clock.h"
#include "own_library.h"

namespace weft::mrclib {
namespace {

// The error message is one line and contains each of these texts.
template <typename T>
void expect_error(const Result<T>& result, ErrorKind kind,
                  std::initializer_list<const char*> says) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, kind);
  const std::string& message = result.error().message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const char* const text : says)
    EXPECT_NE(message.find(text), std::string::npos) << text << " in: " << message;
}

TEST(LibraryFile, AFileThatIsNoLibraryIsNamedWithTheReasonAndWhatIsExpected) {
  expect_error(Library::open("README.md"), ErrorKind::kSystem,
               {"README.md: cannot be loaded as a library: ", "expected a lib_mrc.so", "ldd"});
  expect_error(Library::open("/no/such/lib_mrc.so"), ErrorKind::kSystem,
               {"/no/such/lib_mrc.so: ", "No such file", "expected a lib_mrc.so"});
}

TEST(LibraryFile, EveryFunctionOfOursIsFound) {
  const Library& ours = own_library();
  EXPECT_TRUE(ours.has_mrc());
  EXPECT_TRUE(ours.missing_mrc().empty());
  EXPECT_TRUE(ours.missing_ctl().empty());
  EXPECT_TRUE(ours.missing_verbs().empty());
  const Library none;
  EXPECT_FALSE(none.has_mrc());
  EXPECT_EQ(none.missing_mrc().size(), 27u);
  EXPECT_EQ(none.missing_ctl().size(), 14u);
  EXPECT_EQ(none.missing_verbs().size(), 12u);
}

TEST(LibRdma, MissingFunctionsAreNamed) {
  Library without = own_library();
  without.mrc_post_send.bind(nullptr);
  without.ibv_reg_mr.bind(nullptr);
  expect_error(LibRdma::open(without, {}), ErrorKind::kUnsupported,
               {"the library has no mrc_post_send, ibv_reg_mr;"});
}

TEST(LibRdma, AnUnknownDeviceOrGidIsNamed) {
  expect_error(LibRdma::open(own_library(), {.device = "mlx5_7"}), ErrorKind::kNotFound,
               {"no MRC device mlx5_7", "weft0"});
  expect_error(LibRdma::open(own_library(), {.gid_index = 99}), ErrorKind::kNotFound,
               {"port 1 of weft0 has no GID 99"});
}

TEST(LibRdma, HealthHasTheValuesThatMrcReports) {
  auto rdma = LibRdma::open(own_library(), {}).value();
  const auto group = rdma->create_group({}).value();
  const auto health = rdma->health(group.id);
  EXPECT_EQ(health.planes, 4);
  EXPECT_EQ(health.planes_left_out, 0);
  EXPECT_FALSE(health.over_shared_memory);
  EXPECT_EQ(health.window_bytes, 0) << "unknown";
  EXPECT_FALSE(rdma->change_plane({}, {.plane = 1, .denied = true}))
      << "a port belongs to all programs of the device";
  EXPECT_GT(rdma->limits().write_bytes_max, 0u);
  EXPECT_GE(rdma->limits().immediates_max, 32u);
}

TEST(LibRdma, BoundsOfTheOptionsHold) {
  auto rdma = LibRdma::open(own_library(), {.qps_max = 3, .regions_max = 2}).value();
  ASSERT_TRUE(rdma->create_group({.qps = 2}));
  expect_error(rdma->create_group({.qps = 2}), ErrorKind::kExhausted, {"1 QPs"});
  const auto last = rdma->create_group({.qps = 1}).value();
  ASSERT_TRUE(rdma->destroy_group({}, last.id));
  ASSERT_TRUE(rdma->create_group({.qps = 1}));
  const auto first = rdma->allocate(4096).value();
  ASSERT_TRUE(rdma->allocate(4096));
  expect_error(rdma->allocate(4096), ErrorKind::kExhausted, {"2 regions"});
  ASSERT_TRUE(rdma->remove_region(first.id));
  const auto again = rdma->allocate(4096);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->bytes[4095], std::byte{0});
}

TEST(LibRdma, AnEndWithNothingToDoSleeps) {
  auto rdma = LibRdma::open(own_library(), {}).value();
  const Time start = os::clock_now();
  while (os::clock_now() < start + Duration::ms(60)) (void)rdma->progress(start + Duration::ms(60));
  EXPECT_GE(value_of(rdma->counters(), "mrclib.sleeps"), 1u);
  EXPECT_LE(value_of(rdma->counters(), "mrclib.sleeps"), 5u);
}

}  // namespace
}  // namespace weft::mrclib
