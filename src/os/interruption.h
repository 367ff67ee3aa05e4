// Ctrl-C, SIGTERM and SIGHUP as a flag to be polled. The first signal asks the program to end in an
// orderly manner; the second ends the process at once.
#pragma once

#include "base/result.h"

namespace weft::os {

// Installs the handlers of SIGINT, SIGTERM and SIGHUP. Blocking calls end with EINTR. `last` is
// written to stderr when the first signal comes; it must live as long as the process.
void catch_interruption(const char* last = "");
bool interrupted();
// The error that a call returns when it was interrupted.
Error interruption();

// The exit status of an interrupted process, 128 plus the signal as in shells: 130 after Ctrl-C.
int interrupted_status();

}  // namespace weft::os
