#include "base/huge_pages.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace weft::base {
namespace {

constexpr std::size_t kHugePage = 2u << 20;

}  // namespace

void* allocate_huge(std::size_t bytes) {
  const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, rounded, MADV_HUGEPAGE);  // advice only: it does not matter if it is not taken
  return memory;
}

void reserve_huge_heap(std::size_t bytes) {
  // One block at the end of the heap, given back but kept by malloc, which then cuts small ones
  // from it. Large ones still come from the system by themselves, and go back to it.
  constexpr int kMmapThreshold = 1 << 20;
  malloc_trim(0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_MMAP_MAX, 0);
  void* const memory = std::malloc(bytes);
  mallopt(M_MMAP_MAX, 65536);
  mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
  if (memory == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t from = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t to = (begin + bytes) / kHugePage * kHugePage;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
  std::free(memory);
}

}  // namespace weft::base
