// Our own lib_mrc.so, which lies beside the folder of the test programs.
#pragma once

#include <cstdlib>
#include <filesystem>

#include "mrclib/library.h"

namespace weft {

// The library, loaded once. Devices of this process store the settings of controllers in a folder
// of this process.
inline const mrclib::Library& own_library() {
  static const mrclib::Library loaded = [] {
    static char folder[] = "/tmp/weft-rdma-XXXXXX";
    setenv("WEFT_STATE_DIR", mkdtemp(folder), 1);
    std::atexit([] { std::filesystem::remove_all(folder); });
    const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    return mrclib::Library::open((here / "../lib_mrc.so").string()).value();
  }();
  return loaded;
}

}  // namespace weft
