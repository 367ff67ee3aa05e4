#include "lab/lab.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <sstream>

#include "lab/lab_switch.h"
#include "lab/lab_text.h"
#include "os/control_socket.h"

namespace weft::lab {
namespace {

using fabric::HostIndex;
using fabric::LinkId;

// Runs `tool` in a namespace with the batch as its stdin. An empty batch runs nothing.
Result<void> run_batch(const LabEntry& lab_entry, const std::string& netns, const char* tool,
                       std::string batch) {
  if (batch.empty()) return {};
  WEFT_TRY(std::string program, find_tool(tool));
  std::vector<std::string> command{std::move(program)};
  const bool is_nft = std::strcmp(tool, "nft") == 0;
  if (std::strcmp(tool, "ip") == 0) command.push_back("-6");
  command.insert(command.end(), {is_nft ? "-f" : "-batch", "-"});
  const auto ran =
      run(lab_entry, {.netns = netns, .command = std::move(command), .input = std::move(batch)});
  if (!ran) return ran.error();
  return {};
}

// The packet counters of an interface, from /proc/net/dev.
struct Counts {
  std::uint64_t received = 0, sent = 0, sent_bytes = 0;
};
std::map<std::string, Counts> counts_from(const std::string& text) {
  std::map<std::string, Counts> counts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t name = line.find_first_not_of(' ');
    std::istringstream fields(line.substr(colon + 1));
    std::uint64_t field[10] = {};
    for (std::uint64_t& f : field) fields >> f;
    counts[line.substr(name, colon - name)] = {
        .received = field[1], .sent = field[9], .sent_bytes = field[8]};
  }
  return counts;
}

}  // namespace

// Refuses to start if a namespace that this lab did not make has a name of this lab: a later down()
// would remove it.
Result<void> Lab::check_free(const LabPlan& plan) {
  for (const LabNode& node : plan.nodes()) {
    if (access(path_of(node).c_str(), F_OK) != 0) continue;
    return Error{ErrorKind::kWrongState,
                 fmt::format("lab: a network namespace {} is there, and no lab knows it; remove it "
                             "(`ip netns del {}`) or take another --name",
                             node.netns, node.netns)};
  }
  return {};
}

Result<Lab> Lab::up(const LabSpec& spec, const softswitch::LiveFabricConfig* software,
                    LabLife life) {
  WEFT_ASSERT((software != nullptr) == (spec.switches == LabSwitches::kSoftware));
  WEFT_TRY(LabPlan plan, LabPlan::make(spec));
  for (const char* const tool : kLabTools) WEFT_CHECK(find_tool(tool));
  WEFT_TRY(LabFolder folder, LabFolder::open());
  WEFT_TRY(const os::FileDescriptor lock, folder.lock());
  const auto old = folder.read(spec.name);
  if (!old && old.error().kind != ErrorKind::kNotFound) return old.error();
  // If the keeper of an old lab has ended, only the lab's file is left, and the name is free.
  if (old && (!old->keeper || is_alive(*old->keeper))) {
    return Error{ErrorKind::kWrongState,
                 fmt::format("lab: {} is there already{}; `weft lab down --name {}`, or take "
                             "another --name",
                             spec.name, old->complete ? "" : ", half built", spec.name)};
  }
  if (old && old->software) WEFT_CHECK(end_keeper(*old->software));
  LabState state{.spec = spec};
  std::optional<NewKeeper> keeper;
  if (spec.user_namespace || !is_lab_root()) {
    WEFT_TRY(keeper, NewKeeper::start());
    state.keeper = keeper->keeper();
  } else {
    WEFT_CHECK(check_free(plan));
  }
  os::FileDescriptor mark;
  if (life == LabLife::kWithCreator) {
    WEFT_TRY(mark, folder.hold(spec.name));
  }
  WEFT_CHECK(folder.write(state));
  if (keeper) keeper->let_go();
  Lab lab(folder, std::move(plan), std::move(state));
  lab.mark_ = std::move(mark);
  lab.lock_ = lock.get();
  auto built = lab.build(software);
  lab.lock_ = -1;
  if (built) return lab;
  const auto cleaned = take_down(lab.plan_, lab.state_);
  if (cleaned) WEFT_CHECK(folder.forget(spec.name));
  return built.error();
}

Result<void> Lab::build(const softswitch::LiveFabricConfig* software) {
  const LabEntry lab_entry = this->lab_entry();
  WEFT_CHECK(run_batch(lab_entry, "", "ip", netns_batch(plan_)));
  for (const LabNode& node : plan_.nodes()) {
    const auto set = run(lab_entry, {.netns = node.netns, .writes = sysctls(node)});
    if (!set) {
      return Error{set.error().kind,
                   set.error().message +
                       "; expected a kernel with IPv6 and segment routing (SRv6), 6.1 or later"};
    }
  }
  WEFT_CHECK(run_batch(lab_entry, "", "ip", wire_batch(plan_)));
  for (const LabNode& node : plan_.nodes())
    WEFT_CHECK(run_batch(lab_entry, node.netns, "ip", interface_batch(plan_, node)));
  for (const LabNode& node : plan_.nodes()) {
    WEFT_CHECK(run_batch(lab_entry, node.netns, "ip", route_batch(plan_, node)));
    WEFT_CHECK(run_batch(lab_entry, node.netns, "tc", rate_batch(plan_, state_.faults, node)));
  }
  if (software != nullptr) WEFT_CHECK(start_software(*software));
  state_.complete = true;
  return folder_.write(state_);
}

// The file names the process before the process does anything, so that down() finds it.
Result<void> Lab::start_software(const softswitch::LiveFabricConfig& config) {
  WEFT_TRY(NewSwitch started, NewSwitch::start({.config = config,
                                                .lab_entry = {.keeper = state_.keeper},
                                                .netns = plan_.nodes().back().netns,
                                                .control_path = control(),
                                                .ends_with_caller = mark_.is_open()}));
  state_.software = started.process();
  WEFT_CHECK(folder_.write(state_));
  WEFT_CHECK(started.let_go());
  if (mark_.is_open()) lifetime_socket_ = started.take_lifetime_socket();
  return {};
}

Result<std::string> Lab::ask_software(const std::string& request) const {
  if (!is_switch_alive()) {
    return Error{
        ErrorKind::kNotFound,
        fmt::format("lab: its software switch{} is gone and nothing passes; `weft lab down "
                    "--name {}` and build it again",
                    state_.software ? fmt::format(", process {},", state_.software->pid) : "",
                    state_.spec.name)};
  }
  WEFT_TRY(std::string answer, os::ask(control(), request));
  if (answer.rfind("error: ", 0) == 0)
    return Error{ErrorKind::kInvalid, "lab: software switch: " + answer.substr(7)};
  return answer;
}

Result<Lab> Lab::open(const std::string& name) {
  WEFT_TRY(LabFolder folder, LabFolder::open());
  WEFT_TRY(LabState state, folder.read(name));
  WEFT_TRY(LabPlan plan, LabPlan::make(state.spec));
  if (state.keeper && !is_alive(*state.keeper)) {
    return Error{
        ErrorKind::kNotFound,
        fmt::format("lab: {} is gone, its keeper was process {}; `weft lab down --name {}` "
                    "forgets it",
                    name, state.keeper->pid, name)};
  }
  return Lab(std::move(folder), std::move(plan), std::move(state));
}

Result<std::vector<std::string>> Lab::names() {
  WEFT_TRY(const LabFolder folder, LabFolder::open());
  return folder.names();
}

template <typename Change>
Result<void> Lab::change(Extent extent, Change change) {
  WEFT_TRY(const os::FileDescriptor lock, folder_.lock());
  WEFT_TRY(LabState now, folder_.read(state_.spec.name));
  if (now.spec != state_.spec || now.keeper != state_.keeper || !now.complete) {
    return Error{ErrorKind::kWrongState,
                 fmt::format("lab: {} is not the one that was there before, or half built",
                             state_.spec.name)};
  }
  const LabFaults before = now.faults;
  WEFT_CHECK(change(now.faults));
  WEFT_CHECK(folder_.write(now));
  state_ = std::move(now);
  lock_ = lock.get();
  auto done = carry_out(before, state_.faults, extent);
  lock_ = -1;
  return done;
}

Result<void> Lab::tell_switch(const LabFaults& before, const LabFaults& after,
                              Extent extent) const {
  Result<void> first;  // the first refusal; later requests are sent too
  for (const std::string& request : extent == Extent::kAll
                                        ? switch_requests_from_unknown_state(plan_, after)
                                        : switch_requests(plan_, before, after)) {
    const auto done = ask_software(request);
    if (!done && first) first = done.error();
    // Stop at the first request that gets no answer: each further request would wait until its
    // timeout.
    if (!done && done.error().kind != ErrorKind::kInvalid) break;
  }
  return first;
}

Result<void> Lab::carry_out(const LabFaults& before, const LabFaults& after, Extent extent) const {
  if (plan_.is_software()) return tell_switch(before, after, extent);
  const bool all = extent == Extent::kAll;
  const LabEntry lab_entry = this->lab_entry();
  Result<void> first;  // the first failure; later steps are done too
  const auto run = [&](const LabNode& node, const char* tool, std::string lines) {
    auto done = run_batch(lab_entry, node.netns, tool, std::move(lines));
    if (!done && first) first = std::move(done);
  };
  // Links go down first, because tests wait for that.
  for (const LinkId link : after.cut) {
    if (before.cut.contains(link)) continue;
    const LinkId down = plan_.topology().reverse(link);
    run(plan_.sender(down), "ip", fmt::format("link set {} down\n", plan_.interface(down)));
  }
  for (const LabNode& node : plan_.nodes()) {
    std::string links;
    for (const LabInterface& interface : node.interfaces) {
      const LinkId up = plan_.upward(interface.out);
      if (up == interface.out || after.cut.contains(up) || !(all || before.cut.contains(up)))
        continue;
      links +=
          fmt::format("link set {} up\n", interface.name) + restore_batch(plan_, interface.out);
    }
    run(node, "ip", std::move(links));
  }
  for (const LabNode& node : plan_.nodes()) {
    std::string rules = ruleset(plan_, after, node);
    if (all || rules != ruleset(plan_, before, node)) run(node, "nft", std::move(rules));
    std::string rates;
    for (const LabInterface& interface : node.interfaces) {
      const std::string line = rate_line(plan_, after, interface.out);
      if (!all && line == rate_line(plan_, before, interface.out)) continue;
      rates += line.empty() ? unlimited_line(plan_, interface.out) : line;
    }
    run(node, "tc", std::move(rates));
  }
  return first;
}

Result<void> Lab::apply(std::span<const fabric::FaultEvent> events) {
  return change(Extent::kDifference, [&](LabFaults& faults) -> Result<void> {
    for (const fabric::FaultEvent& event : events) WEFT_CHECK(faults.apply(plan_, event));
    return {};
  });
}

Result<void> Lab::set_rate(std::span<const LinkId> links, Rate rate) {
  return change(Extent::kDifference, [&](LabFaults& faults) -> Result<void> {
    for (const LinkId link : links) WEFT_CHECK(faults.set_rate(plan_, link, rate));
    return {};
  });
}

Result<void> Lab::heal(std::span<const LinkId> links) {
  return change(Extent::kAll, [&](LabFaults& faults) -> Result<void> {
    for (const LinkId link : links) faults.heal(plan_, link);
    return {};
  });
}

Result<void> Lab::heal() {
  return change(Extent::kAll, [](LabFaults& faults) -> Result<void> {
    faults = {};
    return {};
  });
}

Result<std::vector<LabTraffic>> Lab::traffic() const {
  std::vector<LabTraffic> all(plan_.topology().link_count());
  if (plan_.is_software()) {
    WEFT_TRY(const std::string text, ask_software("traffic"));
    std::istringstream in(text);
    LabTraffic t;
    for (LinkId link = 0;
         in >> link >> t.packets >> t.bytes >> t.trims >> t.ecn_marks >> t.drops;) {
      t.packets_received = t.packets;
      if (link < all.size()) all[link] = t;
    }
    return all;
  }
  for (const LabNode& node : plan_.nodes()) {
    WEFT_TRY(const std::string text,
             run(lab_entry(), {.netns = node.netns, .show = "/proc/thread-self/net/dev"}));
    auto counts = counts_from(text);
    for (const LabInterface& interface : node.interfaces) {
      all[interface.out].missing = !counts.contains(interface.name);
      const Counts& count = counts[interface.name];
      all[interface.out].packets = count.sent;
      all[interface.out].bytes = count.sent_bytes;
      all[plan_.topology().reverse(interface.out)].packets_received = count.received;
    }
  }
  return all;
}

Result<std::vector<std::string>> Lab::processes(HostIndex host) const {
  WEFT_TRY(std::string ip, find_tool("ip"));
  WEFT_TRY(const std::string text,
           run(lab_entry(), {.command = {std::move(ip), "netns", "pids", namespace_of(host)}}));
  std::istringstream in(text);
  std::vector<std::string> pids;
  for (std::string pid; in >> pid;) pids.push_back(pid);
  return pids;
}

Result<void> Lab::enter() const { return lab::enter(lab_entry(), ""); }

Result<void> Lab::enter(HostIndex host) const {
  return lab::enter(lab_entry(), namespace_of(host));
}

}  // namespace weft::lab
