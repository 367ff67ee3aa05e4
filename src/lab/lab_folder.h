// LabFolder: the files that remember labs between commands, one per lab. A file is written before
// anything is made, as a temporary file that is then renamed, so that `weft lab down` finds
// everything whenever the maker died.
//
// The folder is /run/weft for root, otherwise $XDG_RUNTIME_DIR/weft, otherwise /tmp/weft-UID. There
// is one lock for all labs of the folder; children that work on a lab hold it too.
//
// A lab that ends with its maker has a mark beside its file: a lock that the maker holds as long as
// it lives. However the maker ends, the kernel releases the lock. A mark without a lock shows an
// abandoned lab, even if another process has the maker's process id by then.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/lab_state.h"
#include "os/file_descriptor.h"

namespace weft::lab {

class LabFolder {
 public:
  // Opens the first candidate that is ours, and makes it if it does not exist. Errors: there is
  // none.
  static Result<LabFolder> open();

  // Waits until no other process works on a lab.
  Result<os::FileDescriptor> lock() const;
  std::vector<std::string> names() const;  // sorted
  // Errors: kNotFound, with the labs that exist.
  Result<LabState> read(const std::string& name) const;
  Result<void> write(const LabState& state) const;  // REQUIRES the lock
  Result<void> forget(const std::string& name) const;
  const std::string& path() const { return path_; }
  // The control socket of that lab's software switch.
  std::string control(const std::string& name) const { return path_ + "/" + name + ".sock"; }

  // Makes the mark of a lab and holds it until the result is closed here and in every child.
  // REQUIRES the lock, and must come before write(). Errors: kSystem, also if another process holds
  // the mark.
  Result<os::FileDescriptor> hold(const std::string& name) const;
  bool is_abandoned(const std::string& name) const;
  // All abandoned labs, sorted. For some there is only the mark and no lab.
  std::vector<std::string> abandoned() const;

 private:
  explicit LabFolder(std::string path) : path_(std::move(path)) {}
  std::vector<std::string> stems(const char* suffix) const;
  std::string file(const std::string& name) const;
  std::string mark(const std::string& name) const;
  std::string path_;
};

}  // namespace weft::lab
