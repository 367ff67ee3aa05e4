#include <fmt/core.h>

#include "high/other.h"
#include "low/low.h"

struct Named {
  int time_system(int rand_value);  // Names that only contain a forbidden one are fine.
};
