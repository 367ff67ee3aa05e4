#include "os/cpus.h"

#include <gtest/gtest.h>

namespace weft::os {
namespace {

using Cpus = std::vector<std::uint32_t>;

TEST(Cpus, ListsOfCpusAreParsedInTheKernelsFormat) {
  EXPECT_EQ(cpus_from("0"), Cpus{0});
  EXPECT_EQ(cpus_from("0-3,8"), (Cpus{0, 1, 2, 3, 8}));
  EXPECT_EQ(cpus_from("8,0-2,1-3"), (Cpus{0, 1, 2, 3, 8}));
  EXPECT_EQ(cpus_from("1023"), Cpus{1023});
  for (const char* const text : {"", ",", "0-", "-1", "3-1", "0,,1", "0 1", "a", "1024", "0-4096",
                                 "1,", "0x1", "99999999999"}) {
    EXPECT_FALSE(cpus_from(text)) << text;
  }
}

TEST(Cpus, AListOfCpusIsWrittenAsItWasParsed) {
  for (const char* const text : {"0", "0-3", "0-3,8", "1,3,5-6"})
    EXPECT_EQ(text_of_cpus(*cpus_from(text)), text);
}

}  // namespace
}  // namespace weft::os
