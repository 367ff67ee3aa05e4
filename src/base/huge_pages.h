// Memory for large tables that are read at random. It lies on huge pages where the system provides
// them, so that fewer accesses miss the TLB. Pages that are never touched take no memory.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace weft::base {

// Returns zeroed memory. Throws std::bad_alloc if the system has none.
void* allocate_huge(std::size_t bytes);
void free_huge(void* memory, std::size_t bytes);

// After this call the next `bytes` of small allocations of this thread lie on huge pages where the
// system provides them. Meant for a run with very many objects. Unused parts take no memory.
void reserve_huge_heap(std::size_t bytes);

struct FreeHuge {
  std::size_t bytes = 0;
  void operator()(void* memory) const { free_huge(memory, bytes); }
};

// An array of trivially copyable elements in such memory. Its owner writes each element before
// reading it.
template <typename T>
using HugeArray = std::unique_ptr<T[], FreeHuge>;

template <typename T>
HugeArray<T> make_huge_array(std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  const std::size_t bytes = count * sizeof(T);
  return HugeArray<T>(static_cast<T*>(allocate_huge(bytes)), FreeHuge{bytes});
}

// The allocator of a std::vector that may grow large and is read at random.
template <typename T>
struct HugeAllocator {
  using value_type = T;
  HugeAllocator() = default;
  template <typename U>
  HugeAllocator(const HugeAllocator<U>&) {}
  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    return static_cast<T*>(bytes < kHugeBytesMin ? ::operator new(bytes) : allocate_huge(bytes));
  }
  void deallocate(T* memory, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    bytes < kHugeBytesMin ? ::operator delete(memory) : free_huge(memory, bytes);
  }
  static constexpr std::size_t kHugeBytesMin = 4u << 20;
  friend bool operator==(const HugeAllocator&, const HugeAllocator&) { return true; }
};

}  // namespace weft::base
