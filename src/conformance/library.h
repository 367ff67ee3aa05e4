// Library: the functions of the library under test. If a test calls a function that is missing, the
// test fails with the function's name.
#pragma once

#include <cerrno>
#include <string>

#include "conformance/checks.h"
#include "mrclib/library.h"

namespace weft::conformance {

template <typename F>
class Function;
template <typename R, typename... A, bool N>
class Function<R(A...) noexcept(N)> {
 public:
  using Found = mrclib::Function<R(A...) noexcept(N)>;
  explicit Function(const Found& found) : found_(found) {}
  // Sets errno to 0 and calls the function. Throws Failure if the library does not have it.
  R operator()(A... arguments) const {
    if (!is_present()) fail(std::string("the library has ") + found_.name(), "no such symbol");
    errno = 0;
    return found_(arguments...);
  }
  // For destructors, which must not throw. Does nothing if the library does not have the function.
  void call_if_present(A... arguments) const {
    if (is_present()) found_(arguments...);
  }
  bool is_present() const { return found_.is_present(); }

 private:
  Found found_;
};

class Library {
 public:
  explicit Library(const mrclib::Library& of) : found(of) {}

  mrclib::Library found;
#define WEFT_MEMBER(name) Function<decltype(::name)> name{found.name};
  WEFT_MRC_FUNCTIONS(WEFT_MEMBER)
  WEFT_CTL_FUNCTIONS(WEFT_MEMBER)
#undef WEFT_MEMBER
#define WEFT_MEMBER(name, type) Function<type> name{found.name};
  WEFT_VERBS_FUNCTIONS(WEFT_MEMBER)
#undef WEFT_MEMBER
};

}  // namespace weft::conformance
