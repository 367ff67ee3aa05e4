// Memory for large tables that are read at random: on huge pages where the system gives them, so
// that most accesses do not also miss the TLB. Not initialised; touched pages only are used.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <type_traits>

namespace weft::base {

// Never null. Freed with std::free.
void* allocate_huge(std::size_t bytes);

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

}  // namespace weft::base
