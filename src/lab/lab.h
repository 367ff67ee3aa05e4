// Lab: a scenario's fabric on this machine, made of network namespaces, veth pairs and the kernel's
// SRv6 uSIDs. LabPlan computes what to make and LabFaults which faults there are; Lab carries both
// out.
//
// A lab outlives the process that made it: it exists in the kernel, and a file records it
// (lab_folder.h). A Lab is a handle that any process of the same user can open by name. Destroying
// the handle takes nothing down. Every change takes the lock of the folder, reads the file anew,
// and writes the file before it changes the kernel. Names of namespaces contain the lab's name;
// nothing else is touched. A lab has at most kLabHostsMax hosts and kLabNamespacesMax namespaces.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fabric/fault.h"
#include "lab/lab_folder.h"
#include "lab/lab_plan.h"
#include "lab/lab_process.h"
#include "softswitch/live_fabric.h"

namespace weft::lab {

// The counters of one direction of a link, at its sender.
struct LabTraffic {
  std::uint64_t packets = 0, bytes = 0;
  std::uint64_t packets_received = 0;  // at the receiver, before faults drop any
  // Only the software switch counts these.
  std::uint64_t trims = 0, ecn_marks = 0, drops = 0;
  bool missing = false;  // the sending interface was removed
};

enum class LabLife : std::uint8_t {
  kPersistent,   // the lab exists until down()
  kWithCreator,  // as kPersistent, but sweep() takes it down after its maker has ended
};

class Lab {
 public:
  // Makes a lab. On an error everything made so far is taken down. Errors: an invalid spec, an
  // existing lab of this name, something that this machine lacks. `software` configures the
  // software switch. REQUIRES `software` if and only if spec.switches is kSoftware. A lab with
  // kWithCreator belongs to its maker as long as this handle, or a child process's copy of it,
  // exists; the software switch ends with the last copy.
  static Result<Lab> up(const LabSpec& spec, const softswitch::LiveFabricConfig* software = nullptr,
                        LabLife life = LabLife::kPersistent);
  static Result<Lab> open(const std::string& name);
  // The names of this user's labs, sorted.
  static Result<std::vector<std::string>> names();
  // Takes down everything that the file of this name lists, also if up() did not finish, and
  // removes the file.
  static Result<void> down(const std::string& name);

  // Whether a lab with kWithCreator has lost its maker; sweep() takes such a lab down.
  static Result<bool> is_abandoned(const std::string& name);
  struct Swept {
    std::string name;
    Result<void> done;
  };
  // Takes down all abandoned labs, each as far as possible.
  static Result<std::vector<Swept>> sweep();

  const LabPlan& plan() const { return plan_; }
  const LabState& state() const { return state_; }
  // REQUIRES host < plan().topology().host_count().
  const std::string& namespace_of(fabric::HostIndex host) const {
    return plan_.nodes()[host].netns;
  }
  std::string namespace_path(fabric::HostIndex host) const { return path_of(plan_.nodes()[host]); }

  // Applies all events as one change; if one event is refused, applies none. The times of the
  // events are ignored. lab_faults.h says what each event means.
  Result<void> apply(std::span<const fabric::FaultEvent> events);
  Result<void> apply(const fabric::FaultEvent& event) { return apply(std::span(&event, 1)); }
  Result<void> set_rate(std::span<const fabric::LinkId> links, Rate rate);
  // Ends all faults of the given directions of links; without arguments, all faults.
  Result<void> heal(std::span<const fabric::LinkId> links);
  Result<void> heal();

  // The traffic of each link, by LinkId. Errors: kNotFound if the software switch has ended.
  Result<std::vector<LabTraffic>> traffic() const;
  // REQUIRES plan().is_software().
  bool is_switch_alive() const { return state_.software && is_alive(*state_.software); }
  // The path of the control socket of the software switch (live_fabric_loop.h).
  std::string control() const { return folder_.control(state_.spec.name); }
  // The ids of all processes in a host's namespace.
  Result<std::vector<std::string>> processes(fabric::HostIndex host) const;

  // Moves the calling process into the namespace of a host for the rest of its life. REQUIRES a
  // process without threads, such as a child before it executes a program.
  Result<void> enter(fabric::HostIndex host) const;
  // Moves the calling process to where namespace_path() is valid: for a process with sockets in
  // several hosts. A process of root is there from the start. REQUIRES as above.
  Result<void> enter() const;

 private:
  Lab(LabFolder folder, LabPlan plan, LabState state)
      : folder_(std::move(folder)), plan_(std::move(plan)), state_(std::move(state)) {}
  LabEntry lab_entry() const { return {.keeper = state_.keeper, .lock = lock_}; }
  static std::string path_of(const LabNode& node) {
    return std::string(kNetnsFolder) + "/" + node.netns;
  }
  static Result<void> take_down(const LabPlan& plan, const LabState& state);
  static Result<void> check_free(const LabPlan& plan);
  static Result<void> remove(const LabFolder& folder, const std::string& name);
  Result<void> build(const softswitch::LiveFabricConfig* software);
  // kDifference: carries out what changed. kAll: carries out everything, because the state of the
  // kernel is not known, after an interrupted change or a change by somebody else.
  enum class Extent : std::uint8_t { kDifference, kAll };
  template <typename Change>
  Result<void> change(Extent extent, Change change);
  Result<void> carry_out(const LabFaults& before, const LabFaults& after, Extent extent) const;
  Result<void> tell_switch(const LabFaults& before, const LabFaults& after, Extent extent) const;
  Result<void> start_software(const softswitch::LiveFabricConfig& config);
  Result<std::string> ask_software(const std::string& request) const;

  LabFolder folder_;
  LabPlan plan_;
  LabState state_;
  int lock_ = -1;            // the lock of the folder, during a change
  os::FileDescriptor mark_;  // kWithCreator: held by the maker as long as this handle exists
  os::FileDescriptor lifetime_socket_;  // kWithCreator: keeps the software switch alive
};

}  // namespace weft::lab
