#include "conformance/session.h"

namespace weft::conformance {

const Library& Session::library() {
  if (library_) return *library_;
  auto opened = Library::open(options_.library);
  if (!opened) throw SuiteError{opened.error().message};
  return library_.emplace(std::move(opened).value());
}

}  // namespace weft::conformance
