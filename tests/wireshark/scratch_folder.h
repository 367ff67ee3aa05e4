// ScratchFolder: a temporary folder for the files of one test, removed by the destructor, and
// programs that run in it.
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
  // Runs a shell command and returns its stdout; throws its stderr if it fails.
  std::string run(const std::string& command) const;

 private:
  std::string path_;
};

}  // namespace weft::mrc_test
