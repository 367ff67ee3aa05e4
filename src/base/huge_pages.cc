#include "base/huge_pages.h"

#include <sys/mman.h>

#include "base/assert.h"

namespace weft::base {

void* allocate_huge(std::size_t bytes) {
  constexpr std::size_t kHugePage = 2u << 20;
  const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, rounded);
  WEFT_ASSERT(memory != nullptr);
  madvise(memory, rounded, MADV_HUGEPAGE);  // advice only: it does not matter if it is not taken
  return memory;
}

}  // namespace weft::base
