// Loses the fifteenth completion of a process.
#include "next.h"

extern "C" int mrc_poll_cq(mrc_cq* cq, int count, ibv_wc* wc) noexcept {
  static int taken = 0;
  const int got = WEFT_NEXT(mrc_poll_cq)(cq, count, wc);
  int kept = 0;
  for (int i = 0; i < got; ++i) {
    if (++taken == 15) continue;
    wc[kept++] = wc[i];
  }
  return got < 0 ? got : kept;
}
