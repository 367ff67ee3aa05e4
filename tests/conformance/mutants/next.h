// For mutants, libraries with one deliberate fault. Each is linked with lib_mrc.so, so that a program
// that loads it finds every function, and each replaces one function by a faulty one.
#pragma once

#include <dlfcn.h>
#include <mrc/mrc.h>
#include <mrc/mrc_ctl.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

// The function of that name in the real library.
#define WEFT_NEXT(name) (reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name)))
