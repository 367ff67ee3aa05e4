#include "settings/file_text.h"

#include <gtest/gtest.h>

namespace weft::settings {
namespace {

TEST(FileText, SaysWhyAFileCannotBeRead) {
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

TEST(FileText, AnEmptyFileIsText) { EXPECT_EQ(file_text("/dev/null", "any").value(), ""); }

}  // namespace
}  // namespace weft::settings
