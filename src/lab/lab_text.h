// The plan of a lab and its faults as input for `ip -batch`, `tc -batch` and `nft -f`. Pure: the
// text that a test reads is the text that the kernel's tools get.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/lab_faults.h"
#include "lab/lab_plan.h"

namespace weft::lab {

// One `netns add` per node. To be run where the lab's namespaces get their names.
std::string netns_batch(const LabPlan& plan);
// One veth pair per link, each end made in its own namespace. To be run after netns_batch.
std::string wire_batch(const LabPlan& plan);

// All others are run in the namespace of the node, in this order. Files below /proc/sys and the
// text to write to each, before there are interfaces.
std::vector<std::pair<std::string, std::string>> sysctls(const LabNode& node);
// Sets the interfaces up, with their addresses.
std::string interface_batch(const LabPlan& plan, const LabNode& node);
// Neighbours and routes. REQUIRES that every interface of the node is up.
std::string route_batch(const LabPlan& plan, const LabNode& node);
// Neighbours and routes that were lost when the interface went down, for after it is up.
std::string restore_batch(const LabPlan& plan, fabric::LinkId out);

// For `tc -batch`: limits the sender's interface of this link to the rate of the faults or of the
// plan. Empty if there is no limit.
std::string rate_line(const LabPlan& plan, const LabFaults& faults, fabric::LinkId link);
// rate_line() for all links of a node.
std::string rate_batch(const LabPlan& plan, const LabFaults& faults, const LabNode& node);
// Removes the limit that rate_line() set.
std::string unlimited_line(const LabPlan& plan, fabric::LinkId link);

// The requests to the software switch (live_fabric_loop.h), in order, that lead from one set of
// faults to another.
std::vector<std::string> switch_requests(const LabPlan& plan, const LabFaults& before,
                                         const LabFaults& after);
// The same from an unknown state, as after requests without an answer: they set every link and
// every rate, and begin all impairments anew.
std::vector<std::string> switch_requests_all(const LabPlan& plan, const LabFaults& after);

// The packets that this node drops on arrival; replaces its previous rules.
std::string ruleset(const LabPlan& plan, const LabFaults& faults, const LabNode& node);

}  // namespace weft::lab
