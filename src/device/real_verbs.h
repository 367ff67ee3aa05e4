// The real libibverbs, if this machine has one: what our functions of the same names hand on for
// devices that are not ours.
#pragma once

namespace weft::device {

// The next function of that name and version behind ours; null where there is none. The library is
// looked for once: what the program already has, else libibverbs.so.1.
void* find_real(const char* name, const char* version);

template <typename Function>
Function* real(const char* name, const char* version) {
  return reinterpret_cast<Function*>(find_real(name, version));
}

}  // namespace weft::device

// A pointer to the function behind ours, looked up once. `version`: libibverbs' own.
#define WEFT_REAL(function, version)                                                         \
  ([]() {                                                                                    \
    static auto* const found = ::weft::device::real<decltype(function)>(#function, version); \
    return found;                                                                            \
  }())
