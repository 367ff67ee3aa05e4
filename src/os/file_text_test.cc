#include "os/file_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace weft::os {
namespace {

TEST(FileText, TheErrorSaysWhyAFileCannotBeRead) {
  const auto why = [](const char* path) {
    const auto text = file_text(path, "a scenario", 100);
    EXPECT_FALSE(text);
    return text ? "" : text.error().message;
  };
  EXPECT_EQ(why("/nosuch"),
            "/nosuch: cannot be read: No such file or directory; expected a scenario");
  EXPECT_EQ(why("/"), "/: cannot be read: Is a directory; expected a scenario");
  EXPECT_EQ(why("/dev/zero"),
            "/dev/zero: cannot be read: larger than 100 bytes; expected a scenario");
  EXPECT_EQ(file_text("/nosuch", "").error().kind, ErrorKind::kInvalid);
}

TEST(FileText, APipeIsRefusedAtOnce) {
  const std::string path = testing::TempDir() + "weft-pipe-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto text = file_text(path, "a scenario");
  std::filesystem::remove(path);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message,
            path + ": cannot be read: it is a pipe or a disk, no file; expected a scenario");
}

TEST(FileText, AnEmptyFileGivesEmptyText) { EXPECT_EQ(file_text("/dev/null", "any").value(), ""); }

}  // namespace
}  // namespace weft::os
