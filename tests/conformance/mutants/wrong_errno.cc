// Sets EINVAL instead of EBUSY for a context that still has objects.
#include "next.h"

extern "C" int mrc_destroy_context(mrc_context* context) noexcept {
  const int returned = WEFT_NEXT(mrc_destroy_context)(context);
  if (returned == -1 && errno == EBUSY) errno = EINVAL;
  return returned;
}
