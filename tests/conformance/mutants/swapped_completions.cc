// Swaps the first two completions of a poll that returns two or more.
#include <utility>

#include "next.h"

extern "C" int mrc_poll_cq(mrc_cq* cq, int count, ibv_wc* wc) noexcept {
  const int got = WEFT_NEXT(mrc_poll_cq)(cq, count, wc);
  if (got >= 2) std::swap(wc[0], wc[1]);
  return got;
}
