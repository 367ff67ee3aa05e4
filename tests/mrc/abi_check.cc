// Checks abi_list.h with a C++ compiler: this file compiles if every entry of the list is right.
#include <cstddef>
#include <type_traits>

#include "mrc.h"
#include "mrc_ctl.h"

// A pointer to a noexcept function converts only to the same type without noexcept. So the list
// fits headers with noexcept and without it.
#define ABI_SIZE(type, size) static_assert(sizeof(type) == (size), "size of " #type);
#define ABI_FIELD(type, field, offset, size)                          \
  static_assert(offsetof(type, field) == (offset), #type "." #field); \
  static_assert(sizeof(((type*)nullptr)->field) == (size), "size of " #type "." #field);
#define ABI_VALUE(name, value) static_assert((name) == (value), #name);
#define ABI_FUNCTION(name, result, arguments) \
  static_assert(std::is_convertible_v<decltype(&name), result(*) arguments>, #name);

#include "abi_list.h"
