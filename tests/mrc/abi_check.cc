// abi_list.h as a C++ compiler sees it. Compiles when all of it holds.
#include <cstddef>
#include <type_traits>

#include "mrc.h"
#include "mrc_ctl.h"

// A pointer to a function that does not throw converts to one that might, and to nothing else: the
// list fits headers that say noexcept and headers that do not.
#define ABI_SIZE(type, size) static_assert(sizeof(type) == (size), "size of " #type);
#define ABI_FIELD(type, field, offset, size)                          \
  static_assert(offsetof(type, field) == (offset), #type "." #field); \
  static_assert(sizeof(((type*)nullptr)->field) == (size), "size of " #type "." #field);
#define ABI_VALUE(name, value) static_assert((name) == (value), #name);
#define ABI_FUNCTION(name, result, arguments) \
  static_assert(std::is_convertible_v<decltype(&name), result(*) arguments>, #name);

#include "abi_list.h"
