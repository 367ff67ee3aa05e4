// Reports success when a profile in use is to go OFFLINE.
#include "next.h"

extern "C" int mrc_ctl_modify_ev_profile(mrc_context* context, std::uint64_t id,
                                         mrc_ctl_ev_profile_attr* attr, int mask) noexcept {
  const int returned = WEFT_NEXT(mrc_ctl_modify_ev_profile)(context, id, attr, mask);
  return returned == -1 && errno == EBUSY ? 0 : returned;
}
