// For libraries that are deliberately wrong: each is linked with lib_mrc.so, so that a program that
// loads it finds everything there, and puts one function of its own before the right one.
#pragma once

#include <dlfcn.h>
#include <mrc/mrc.h>
#include <mrc/mrc_ctl.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

// The function of that name in the library behind.
#define WEFT_NEXT(name) (reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name)))
