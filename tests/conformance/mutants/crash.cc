// Aborts when a hint is queried.
#include "next.h"

extern "C" int mrc_query_qp_hint(mrc_qp_hint*, mrc_qp_hint_attr*, int) noexcept { std::abort(); }
