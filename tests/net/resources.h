// Counts the system resources that a test uses, to check that they are released.
#pragma once

#include <dirent.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace weft {

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const dir = opendir("/proc/self/fd");
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

// The number of mapped ring memories in this process; each ring is mapped twice.
inline std::size_t ring_mappings() {
  std::size_t count = 0;
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  std::array<char, 512> line;
  while (std::fgets(line.data(), line.size(), maps) != nullptr)
    count += std::strstr(line.data(), "weft-ring") != nullptr ? 1 : 0;
  std::fclose(maps);
  return count;
}

}  // namespace weft
