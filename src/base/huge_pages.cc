#include "base/huge_pages.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace weft::base {
namespace {

constexpr std::size_t kHugePage = 2u << 20;

std::size_t rounded(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

// A mapping of its own returns to the system when it is freed. mmap does not align to huge pages,
// so we map one huge page more than needed and unmap both ends outside the aligned range.
void* allocate_huge(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  void* const mapped = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > begin) munmap(mapped, aligned - begin);
  const std::uintptr_t end = aligned + size;
  munmap(reinterpret_cast<void*>(end), begin + size + kHugePage - end);
  void* const memory = reinterpret_cast<void*>(aligned);
  madvise(memory, size, MADV_HUGEPAGE);  // only a hint: its failure does not matter
  return memory;
}

void free_huge(void* memory, std::size_t bytes) { munmap(memory, rounded(bytes)); }

void reserve_huge_heap(std::size_t bytes) {
  // Allocate one block at the end of the heap and free it. malloc keeps that memory and serves
  // small allocations from it. Large allocations still get mappings of their own.
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
