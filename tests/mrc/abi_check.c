/* Checks abi_list.h with a C compiler, C99 and later. It compiles if every entry of the list is
 * right. */
#include <stddef.h>

#include "mrc.h"
#include "mrc_ctl.h"

/* C99 has no assertion at compile time. An array of -1 elements fails to compile, and its name
 * tells the wrong entry. */
#if __STDC_VERSION__ >= 201112L
#define ABI_HOLDS(condition, text) _Static_assert(condition, text);
#else
#define ABI_HOLDS(condition, text) extern char abi_differs[(condition) ? 1 : -1];
#endif

#define ABI_SIZE(type, size) ABI_HOLDS(sizeof(type) == (size), "size of " #type)
#define ABI_FIELD(type, field, offset, size)                     \
  ABI_HOLDS(offsetof(type, field) == (offset), #type "." #field) \
  ABI_HOLDS(sizeof(((type*)0)->field) == (size), "size of " #type "." #field)
#define ABI_VALUE(name, value) ABI_HOLDS((name) == (value), #name)
#define ABI_FUNCTION(name, result, arguments) \
  ABI_HOLDS(__builtin_types_compatible_p(__typeof__(name), result arguments), #name)

#include "abi_list.h"

/* The only macro that is an expression. */
struct mrc_ctl_ev abi_unpopulated(void);
struct mrc_ctl_ev abi_unpopulated(void) {
  return MRC_CTL_EV_UNPOPULATED;
}
