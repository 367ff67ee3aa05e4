#include <gtest/gtest.h>
#include <thread>

#include "low/low.h"
