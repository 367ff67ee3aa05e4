// LabFolder: the files that record labs between commands, one file per lab. The file is written
// before anything is made, as a temporary file that is then renamed. So `weft lab down` finds
// everything, even if the maker was killed.
//
// The folder is /run/weft for root, otherwise $XDG_RUNTIME_DIR/weft, otherwise /tmp/weft-UID. There
// is one lock for all labs of the folder; children that work on a lab hold it too.
//
// A lab that ends with its maker has a mark beside its file: a lock file, which the maker holds
// locked as long as it lives. However the maker ends, the kernel releases the lock. A mark that is
// not locked shows an abandoned lab, even if another process now has the maker's process id.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/lab_state.h"
#include "os/file_descriptor.h"

namespace weft::lab {

class LabFolder {
 public:
  // Opens the first of the folders above that belongs to this user alone, and makes it if it does
  // not exist. Errors: there is none, or it cannot be used.
  static Result<LabFolder> open();

  // Takes the folder's lock: waits until no other process changes a lab.
  Result<os::FileDescriptor> lock() const;
  std::vector<std::string> names() const;  // sorted
  // Reads the file of a lab. Errors: kNotFound, with the names of the existing labs.
  Result<LabState> read(const std::string& name) const;
  Result<void> write(const LabState& state) const;  // REQUIRES the lock
  Result<void> forget(const std::string& name) const;
  const std::string& path() const { return path_; }
  // The path of the control socket of this lab's software switch.
  std::string control(const std::string& name) const { return path_ + "/" + name + ".sock"; }

  // Makes the mark of a lab and locks it. The lock lasts until the result is closed in this process
  // and in every child process. REQUIRES the folder's lock; must come before write(). Errors:
  // kSystem, also if another process holds the mark.
  Result<os::FileDescriptor> hold(const std::string& name) const;
  bool is_abandoned(const std::string& name) const;
  // The names of all abandoned labs, sorted. Some may have only the lock file (mark), if the maker
  // died before write(), or a process died in forget().
  std::vector<std::string> abandoned() const;

 private:
  explicit LabFolder(std::string path) : path_(std::move(path)) {}
  std::vector<std::string> stems(const char* suffix) const;
  std::string file(const std::string& name) const;
  std::string mark(const std::string& name) const;
  std::string path_;
};

}  // namespace weft::lab
