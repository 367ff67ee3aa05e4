// Memory for large tables that are read at random: on huge pages where the system gives them, so
// that most accesses do not also miss the TLB. Touched pages only are used.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace weft::base {

// Zeros. Throws std::bad_alloc, as everything that takes memory.
void* allocate_huge(std::size_t bytes);
void free_huge(void* memory, std::size_t bytes);

// The next `bytes` of small blocks that malloc gives to this thread lie on huge pages where the
// system has them: for a run with very many objects. What is never used costs nothing.
void reserve_huge_heap(std::size_t bytes);

struct FreeHuge {
  std::size_t bytes = 0;
  void operator()(void* memory) const { free_huge(memory, bytes); }
};

// An array of plain elements in such memory, whose owner writes each before it is read.
template <typename T>
using HugeArray = std::unique_ptr<T[], FreeHuge>;

template <typename T>
HugeArray<T> make_huge_array(std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  const std::size_t bytes = count * sizeof(T);
  return HugeArray<T>(static_cast<T*>(allocate_huge(bytes)), FreeHuge{bytes});
}

// For a std::vector that grows large and is read at random.
template <typename T>
struct HugeAllocator {
  using value_type = T;
  HugeAllocator() = default;
  template <typename U>
  HugeAllocator(const HugeAllocator<U>&) {}
  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    return static_cast<T*>(bytes < kWorthIt ? ::operator new(bytes) : allocate_huge(bytes));
  }
  void deallocate(T* memory, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    bytes < kWorthIt ? ::operator delete(memory) : free_huge(memory, bytes);
  }
  static constexpr std::size_t kWorthIt = 4u << 20;
  friend bool operator==(const HugeAllocator&, const HugeAllocator&) { return true; }
};

}  // namespace weft::base
