// Lab: a scenario's fabric on this machine, of network namespaces, veth pairs and the kernel's SRv6
// uSIDs. The plan is lab_plan.h, the faults lab_faults.h; here both meet the kernel.
//
// A lab outlives the process that made it: it is in the kernel, and a file says what is there
// (lab_folder.h). A Lab is a handle that any process of the same user can open by name; it takes
// nothing down when it goes. Every change takes the folder's lock, reads the file again, and writes
// it before it acts. Names of namespaces carry the lab's name; nothing else is touched.
// At most kLabHostsMax hosts and kLabNamespacesMax namespaces.
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

// Of one direction of a link, where it is sent.
struct LabTraffic {
  std::uint64_t packets = 0, bytes = 0;
  std::uint64_t packets_received = 0;  // at the other end, before the faults take theirs
  // Known to the software switch only.
  std::uint64_t trims = 0, ecn_marks = 0, drops = 0;
  bool missing = false;  // somebody removed the interface that sends
};

enum class LabLife : std::uint8_t {
  kStays,      // until it is taken down
  kWithMaker,  // the same, but what its maker leaves when it dies is swept
};

class Lab {
 public:
  // Errors: a spec that cannot be, a lab of this name that is there, what this machine lacks. What
  // was made until an error is taken down again.
  // `software`: what the software switch is to be. REQUIRES it if and only if spec.switches says so.
  // With kWithMaker the lab is its maker's as long as this handle is there, or a child's copy of it;
  // the software switch ends with them.
  static Result<Lab> up(const LabSpec& spec, const softswitch::LiveFabricConfig* software = nullptr,
                        LabLife life = LabLife::kStays);
  static Result<Lab> open(const std::string& name);
  // Of this user; sorted.
  static Result<std::vector<std::string>> names();
  // Takes down what the file of this name lists, however far `up` came, and forgets it.
  static Result<void> down(const std::string& name);

  // Its maker is gone, and it was to go with it: sweep() takes it down.
  static Result<bool> is_abandoned(const std::string& name);
  struct Swept {
    std::string name;
    Result<void> done;
  };
  // Takes down all such, each as far as it can.
  static Result<std::vector<Swept>> sweep();

  const LabPlan& plan() const { return plan_; }
  const LabState& state() const { return state_; }
  // REQUIRES host < plan().topology().host_count().
  const std::string& namespace_of(fabric::HostIndex host) const {
    return plan_.nodes()[host].netns;
  }
  std::string namespace_path(fabric::HostIndex host) const { return path_of(plan_.nodes()[host]); }

  // All of them as one change, the order of time aside; none if one is refused. See lab_faults.h.
  Result<void> apply(std::span<const fabric::FaultEvent> events);
  Result<void> apply(const fabric::FaultEvent& event) { return apply(std::span(&event, 1)); }
  Result<void> set_rate(std::span<const fabric::LinkId> links, Rate rate);
  // These directions are sound again; or all.
  Result<void> heal(std::span<const fabric::LinkId> links);
  Result<void> heal();

  // By link. Errors: kNotFound where the software switch is gone.
  Result<std::vector<LabTraffic>> traffic() const;
  // REQUIRES plan().is_software().
  bool is_switch_alive() const { return state_.software && is_alive(*state_.software); }
  // Where it can be asked (live_fabric_loop.h).
  std::string control() const { return folder_.control(state_.spec.name); }
  // Processes inside a host, beside what the kernel keeps there.
  Result<std::vector<std::string>> processes(fabric::HostIndex host) const;

  // Moves the calling process into a host, for good. REQUIRES a process without threads, such as a
  // child before it executes a program.
  Result<void> enter(fabric::HostIndex host) const;
  // The same, but only to where namespace_path() holds: for a process with sockets in several hosts.
  // As root every process is there.
  Result<void> enter() const;

 private:
  Lab(LabFolder folder, LabPlan plan, LabState state)
      : folder_(std::move(folder)), plan_(std::move(plan)), state_(std::move(state)) {}
  LabDoor door() const { return {.keeper = state_.keeper, .lock = lock_}; }
  static std::string path_of(const LabNode& node) {
    return std::string(kNetnsFolder) + "/" + node.netns;
  }
  static Result<void> take_down(const LabPlan& plan, const LabState& state);
  static Result<void> check_free(const LabPlan& plan);
  static Result<void> remove(const LabFolder& folder, const std::string& name);
  Result<void> build(const softswitch::LiveFabricConfig* software);
  // What was carried out half-way, or changed by others, is neither before nor after: mending does all
  // there is to do.
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
  int lock_ = -1;             // during a change
  os::FileDescriptor mark_;   // kWithMaker, of the maker: held till this handle goes
  os::FileDescriptor leash_;  // of the software switch, then too
};

}  // namespace weft::lab
