#include "conformance/session.h"

namespace weft::conformance {

const Library& Session::library() {
  if (library_) return *library_;
  const auto opened = mrclib::Library::open(options_.library);
  if (!opened) throw SuiteError{opened.error().message};
  return library_.emplace(*opened);
}

}  // namespace weft::conformance
