// Lab: taking labs down.
#include <fmt/core.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lab/lab.h"

namespace weft::lab {

Result<void> Lab::take_down(const LabPlan& plan, const LabState& state) {
  if (state.software) WEFT_CHECK(end_keeper(*state.software));
  if (state.keeper) return end_keeper(*state.keeper);
  for (const LabNode& node : plan.nodes()) {
    const std::string path = path_of(node);
    if (access(path.c_str(), F_OK) != 0) continue;
    // EINVAL: the namespace's file was created, but the namespace was not mounted on it yet.
    if (umount2(path.c_str(), MNT_DETACH) != 0 && errno != EINVAL) {
      return Error{ErrorKind::kSystem,
                   fmt::format("lab: {} cannot be unmounted: {}", path, strerrordesc_np(errno))};
    }
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return Error{ErrorKind::kSystem,
                   fmt::format("lab: {} cannot be removed: {}", path, strerrordesc_np(errno))};
    }
  }
  return {};
}

Result<void> Lab::remove(const LabFolder& folder, const std::string& name) {
  WEFT_TRY(const LabState state, folder.read(name));
  WEFT_TRY(const LabPlan plan, LabPlan::make(state.spec));
  WEFT_CHECK(take_down(plan, state));
  return folder.forget(name);
}

Result<void> Lab::down(const std::string& name) {
  WEFT_TRY(const LabFolder folder, LabFolder::open());
  WEFT_TRY(const os::FileDescriptor lock, folder.lock());
  return remove(folder, name);
}

Result<bool> Lab::is_abandoned(const std::string& name) {
  WEFT_TRY(const LabFolder folder, LabFolder::open());
  return folder.is_abandoned(name);
}

Result<std::vector<Lab::Swept>> Lab::sweep() {
  WEFT_TRY(const LabFolder folder, LabFolder::open());
  WEFT_TRY(const os::FileDescriptor lock, folder.lock());
  std::vector<Swept> all;
  for (const std::string& name : folder.abandoned()) {
    auto done = remove(folder, name);
    const bool is_bare = !done && done.error().kind == ErrorKind::kNotFound;
    // There is a mark but no file: the maker ended before it made anything.
    if (is_bare) done = folder.forget(name);
    if (!is_bare || !done) all.push_back({.name = name, .done = std::move(done)});
  }
  return all;
}

}  // namespace weft::lab
