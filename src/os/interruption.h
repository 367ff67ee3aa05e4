// Ctrl-C, SIGTERM and SIGHUP as something that is asked for: the first ends what is under way in
// order, the second ends the process at once.
#pragma once

#include "base/result.h"

namespace weft::os {

// From here on SIGINT, SIGTERM and SIGHUP are noted. Blocking calls end with EINTR. `last`: what
// this process then writes to stderr at once; it lives as long as the process.
void catch_interruption(const char* last = "");
bool interrupted();
// What a call that it ended says.
Error interruption();

// The exit status of one that was interrupted, as shells have it: 130 after Ctrl-C.
int interrupted_status();

}  // namespace weft::os
