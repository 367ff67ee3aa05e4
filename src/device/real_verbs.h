// The real libibverbs, if this machine has it. Our verbs functions pass calls for devices that are
// not Weft's on to the libibverbs function of the same name.
#pragma once

namespace weft::device {

// The libibverbs function of that name and symbol version, found behind ours in lookup order; null
// if there is none. It comes from a library that the program has already loaded, otherwise from
// libibverbs.so.1.
void* find_next_function(const char* name, const char* version);

template <typename Function>
Function* real(const char* name, const char* version) {
  return reinterpret_cast<Function*>(find_next_function(name, version));
}

}  // namespace weft::device

// A pointer to the libibverbs function with the same name as ours, looked up once. `version`: its
// symbol version.
#define WEFT_REAL(function, version)                                                         \
  ([]() {                                                                                    \
    static auto* const found = ::weft::device::real<decltype(function)>(#function, version); \
    return found;                                                                            \
  }())
