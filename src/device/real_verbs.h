// The real libibverbs, if this machine has one. Our functions of the same names pass calls for
// devices that are not ours on to it.
#pragma once

namespace weft::device {

// The next function of that name and version behind ours; null if there is none. The library is
// looked up once: one that the program has already loaded, otherwise libibverbs.so.1.
void* find_next_function(const char* name, const char* version);

template <typename Function>
Function* real(const char* name, const char* version) {
  return reinterpret_cast<Function*>(find_next_function(name, version));
}

}  // namespace weft::device

// A pointer to the function behind ours, looked up once. `version`: the symbol version in
// libibverbs.
#define WEFT_REAL(function, version)                                                         \
  ([]() {                                                                                    \
    static auto* const found = ::weft::device::real<decltype(function)>(#function, version); \
    return found;                                                                            \
  }())
