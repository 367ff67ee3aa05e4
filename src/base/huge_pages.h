// Memory for large tables that are read at random: on huge pages where the system gives them, so
// that most accesses do not also miss the TLB. Not initialised; touched pages only are used.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace weft::base {

// Freed with std::free. Throws std::bad_alloc, as everything that takes memory.
void* allocate_huge(std::size_t bytes);

// The next `bytes` of small blocks that malloc gives to this thread lie on huge pages where the
// system has them: for a run with very many objects. What is never used costs nothing.
void reserve_huge_heap(std::size_t bytes);

struct FreeHuge {
  void operator()(void* memory) const { std::free(memory); }
};

// An array of plain elements in such memory, whose owner writes each before it is read.
template <typename T>
using HugeArray = std::unique_ptr<T[], FreeHuge>;

template <typename T>
HugeArray<T> make_huge_array(std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  return HugeArray<T>(static_cast<T*>(allocate_huge(count * sizeof(T))));
}

// For a std::vector that grows large and is read at random.
template <typename T>
struct HugeAllocator {
  using value_type = T;
  HugeAllocator() = default;
  template <typename U>
  HugeAllocator(const HugeAllocator<U>&) {}
  T* allocate(std::size_t count) {
    constexpr std::size_t kWorthIt = 4u << 20;
    const std::size_t bytes = count * sizeof(T);
    void* const memory = bytes < kWorthIt ? std::malloc(bytes) : allocate_huge(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  friend bool operator==(const HugeAllocator&, const HugeAllocator&) { return true; }
};

}  // namespace weft::base
