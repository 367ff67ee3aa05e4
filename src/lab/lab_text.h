// The plan of a lab and its faults as input for `ip -batch`, `tc -batch` and `nft -f`. Pure: what a
// test reads is what the kernel gets.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/lab_faults.h"
#include "lab/lab_plan.h"

namespace weft::lab {

// One `netns add` a node. Run where the lab's namespaces are to be named.
std::string netns_batch(const LabPlan& plan);
// One veth pair a link, each end made in its own namespace. Run after netns_batch.
std::string wire_batch(const LabPlan& plan);

// The rest is run in the namespace of the node, in this order.
// Files below /proc/sys and what is written there, before there are interfaces.
std::vector<std::pair<std::string, std::string>> sysctls(const LabNode& node);
// Interfaces up, with their addresses.
std::string interface_batch(const LabPlan& plan, const LabNode& node);
// Neighbours and routes. Every interface of the node is up by then.
std::string route_batch(const LabPlan& plan, const LabNode& node);
// What was lost with the interface when it went down, after it is up again.
std::string restore_batch(const LabPlan& plan, fabric::LinkId out);

// For `tc -batch`: holds the sender's interface of this link to the faults' rate or the plan's.
// Empty where there is no limit.
std::string rate_line(const LabPlan& plan, const LabFaults& faults, fabric::LinkId link);
// All of a node's.
std::string rate_batch(const LabPlan& plan, const LabFaults& faults, const LabNode& node);
// Takes the limit off that rate_line set.
std::string unlimited_line(const LabPlan& plan, fabric::LinkId link);

// With the software switch: what it is asked (live_fabric_loop.h), one after another, to come from
// one set of faults to another.
std::vector<std::string> switch_requests(const LabPlan& plan, const LabFaults& before,
                                         const LabFaults& after);
// The same whatever was before, as after requests that got no answer: every link and every rate is
// said, and impairments begin anew.
std::vector<std::string> switch_requests_all(const LabPlan& plan, const LabFaults& after);

// What this node drops of what it receives, replacing what it dropped before.
std::string ruleset(const LabPlan& plan, const LabFaults& faults, const LabNode& node);

}  // namespace weft::lab
