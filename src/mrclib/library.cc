#include "mrclib/library.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace weft::mrclib {
namespace {

// The loader's message begins with the name of the file that could not be loaded, which may be a
// dependency of `path`.
Error not_loaded(const std::string& path, std::string reason) {
  const std::string prefix = path + ": ";
  if (reason.starts_with(prefix)) reason.erase(0, prefix.size());
  return {ErrorKind::kSystem,
          fmt::format("{}: cannot be loaded as a library: {}; expected a lib_mrc.so for this "
                      "machine; `file -L` shows what the file is, `ldd` which libraries it misses",
                      path, reason)};
}

}  // namespace

// The library is never closed: if it has started threads, closing would crash the process.
Result<Library> Library::open(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return not_loaded(path, dlerror());
  Library out;
#define WEFT_BIND(name) out.name.bind(dlsym(handle, #name));
  WEFT_MRC_FUNCTIONS(WEFT_BIND)
  WEFT_CTL_FUNCTIONS(WEFT_BIND)
#undef WEFT_BIND
#define WEFT_BIND(name, type) out.name.bind(dlsym(handle, #name));
  WEFT_VERBS_FUNCTIONS(WEFT_BIND)
#undef WEFT_BIND
  if (out.missing_verbs().empty()) return out;
  if (void* const verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL)) {
#define WEFT_BIND(name, type) \
  if (!out.name.is_present()) out.name.bind(dlsym(verbs, #name));
    WEFT_VERBS_FUNCTIONS(WEFT_BIND)
#undef WEFT_BIND
  }
  return out;
}

bool Library::has_mrc() const {
#define WEFT_OR(name) || this->name.is_present()
  return false WEFT_MRC_FUNCTIONS(WEFT_OR);
#undef WEFT_OR
}

#define WEFT_NOTE(name) \
  if (!this->name.is_present()) out.push_back(#name);
#define WEFT_NOTE_TYPED(name, type) WEFT_NOTE(name)

std::vector<std::string> Library::missing_mrc() const {
  std::vector<std::string> out;
  WEFT_MRC_FUNCTIONS(WEFT_NOTE)
  return out;
}
std::vector<std::string> Library::missing_ctl() const {
  std::vector<std::string> out;
  WEFT_CTL_FUNCTIONS(WEFT_NOTE)
  return out;
}
std::vector<std::string> Library::missing_verbs() const {
  std::vector<std::string> out;
  WEFT_VERBS_FUNCTIONS(WEFT_NOTE_TYPED)
  return out;
}

}  // namespace weft::mrclib
