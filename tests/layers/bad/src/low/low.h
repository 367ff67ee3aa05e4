// Each line below marked with a rule breaks that rule and no other.
#pragma once

#include <cstdint>
#include <fmt/core.h>     // a package that low may not use
#include <gtest/gtest.h>  // GoogleTest outside a test
#include <netinet/in.h>   // a socket
#include <chrono>         // a clock

#include "high/high.h"      // upwards
#include "nowhere/thing.h"  // no such folder
#include "plain.h"          // no folder

// getenv("A comment may name it."), and so may a string.
inline const char* text = "getenv(\"X\")";
inline const char* home = getenv("HOME");
