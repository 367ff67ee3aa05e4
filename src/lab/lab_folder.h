// LabFolder: where labs are remembered between commands, a file a lab. It is written before anything
// is made, by a temporary file and a rename, so that `weft lab down` finds everything, whenever the
// one that made it died.
//
// The folder: /run/weft for root, else $XDG_RUNTIME_DIR/weft, else /tmp/weft-UID. One lock for all
// labs of the folder; children that work on a lab hold it too.
//
// A lab that goes with its maker has a mark beside its file, which the maker holds as long as it
// lives. However it ends, the kernel lets go of it: a mark that nobody holds is of a lab that was
// abandoned, whoever has the maker's process id by then.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/lab_state.h"
#include "os/file_descriptor.h"

namespace weft::lab {

class LabFolder {
 public:
  // The first of those that is ours, made if it is not there. Errors: none is.
  static Result<LabFolder> open();

  // Waits until nobody else works on a lab.
  Result<os::FileDescriptor> lock() const;
  std::vector<std::string> names() const;  // sorted
  // Errors: kNotFound, with the labs that are there.
  Result<LabState> read(const std::string& name) const;
  Result<void> write(const LabState& state) const;  // REQUIRES the lock
  Result<void> forget(const std::string& name) const;
  const std::string& path() const { return path_; }
  // Where the software switch of that lab is asked.
  std::string control(const std::string& name) const { return path_ + "/" + name + ".sock"; }

  // Makes the mark of a lab and holds it till the result is closed here and in every child. REQUIRES
  // the lock, and comes before write(). Errors: kSystem, also where somebody holds it.
  Result<os::FileDescriptor> hold(const std::string& name) const;
  bool is_abandoned(const std::string& name) const;
  // All such; of some there is no lab, only the mark. Sorted.
  std::vector<std::string> abandoned() const;

 private:
  explicit LabFolder(std::string path) : path_(std::move(path)) {}
  std::vector<std::string> stems(const char* suffix) const;
  std::string file(const std::string& name) const;
  std::string mark(const std::string& name) const;
  std::string path_;
};

}  // namespace weft::lab
