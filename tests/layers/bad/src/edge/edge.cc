#include <chrono>
#include <fstream>
#include <other/other.h>

#include "high/high.h"
#include "low/low.h"

const char* home = getenv("HOME");
