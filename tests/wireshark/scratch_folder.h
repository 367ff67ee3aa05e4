// ScratchFolder: a folder for the files of one test, gone with the object, and programs that read
// and write there.
#pragma once

#include <string>
#include <string_view>

namespace weft::mrc_test {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Writes a file and returns its path, which needs no quotes in a shell.
  std::string write(const std::string& name, std::string_view content) const;
  // Runs a command of the shell and returns what it wrote to stdout; throws what it wrote to stderr
  // when it fails.
  std::string run(const std::string& command) const;

 private:
  std::string path_;
};

}  // namespace weft::mrc_test
