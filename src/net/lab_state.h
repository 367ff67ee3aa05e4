// What is remembered of a lab between commands: a file a lab, from which any later process knows
// what was made and what is broken. It is written before anything is made, by a temporary file and a
// rename, so that `weft lab down` finds everything, whenever the one that made it died.
//
// The folder: /run/weft for root, else $XDG_RUNTIME_DIR/weft, else /tmp/weft-UID. One lock for all
// labs of the folder; children that work on a lab hold it too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/file_descriptor.h"
#include "net/lab_faults.h"
#include "net/lab_keeper.h"
#include "net/lab_plan.h"

namespace weft::net {

struct LabState {
  LabSpec spec{};
  std::optional<LabKeeper> keeper{};
  std::optional<LabKeeper> software{};  // the process of the software switch
  bool complete = false;                // `up` came to its end
  LabFaults faults{};
  friend bool operator==(const LabState&, const LabState&) = default;
};

// Lines `key value...`; from_text(to_text(s)) is s. Errors name the line.
std::string to_text(const LabState& state);
Result<LabState> lab_state_from(const std::string& text);

class LabFolder {
 public:
  // The first of those that is ours, made if it is not there. Errors: none is.
  static Result<LabFolder> open();

  // Waits until nobody else works on a lab.
  Result<FileDescriptor> lock() const;
  std::vector<std::string> names() const;  // sorted
  // Errors: kNotFound, with the labs that are there.
  Result<LabState> read(const std::string& name) const;
  Result<void> write(const LabState& state) const;  // REQUIRES the lock
  Result<void> forget(const std::string& name) const;
  const std::string& path() const { return path_; }
  // Where the software switch of that lab is asked.
  std::string control(const std::string& name) const { return path_ + "/" + name + ".sock"; }

 private:
  explicit LabFolder(std::string path) : path_(std::move(path)) {}
  std::string file(const std::string& name) const { return path_ + "/" + name + ".lab"; }
  std::string path_;
};

}  // namespace weft::net
