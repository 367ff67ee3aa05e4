// Converts the plan of a lab and its faults to input for `ip -batch`, `tc -batch` and `nft -f`.
// Pure: the text that a test reads is the text that the kernel's tools get.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/lab_faults.h"
#include "lab/lab_plan.h"

namespace weft::lab {

// A `netns add` for each node. To be run where the names of the lab's namespaces are.
std::string netns_batch(const LabPlan& plan);
// A veth pair for each link, each end made in its own namespace. To be run after netns_batch().
std::string wire_batch(const LabPlan& plan);

// The texts below are for the namespace of one node, and used in this order. First files below
// /proc/sys, and the text to write to each, before there are interfaces.
std::vector<std::pair<std::string, std::string>> sysctls(const LabNode& node);
// Sets the interfaces of a node up and gives them addresses.
std::string interface_batch(const LabPlan& plan, const LabNode& node);
// Adds neighbours and routes. REQUIRES that every interface of the node is up.
std::string route_batch(const LabPlan& plan, const LabNode& node);
// Restores the neighbours and routes that were lost when the sender's interface of link `out` went
// down. To be run after it is up.
std::string restore_batch(const LabPlan& plan, fabric::LinkId out);

// A line for `tc -batch`: limits the sender's interface of this link to the rate that the faults or
// the plan give it. Empty if there is no limit.
std::string rate_line(const LabPlan& plan, const LabFaults& faults, fabric::LinkId link);
// rate_line() for all links of a node.
std::string rate_batch(const LabPlan& plan, const LabFaults& faults, const LabNode& node);
// Removes the limit that rate_line() set.
std::string unlimited_line(const LabPlan& plan, fabric::LinkId link);

// The requests to the software switch (live_fabric_loop.h), in order, that change one set of faults
// into another.
std::vector<std::string> switch_requests(const LabPlan& plan, const LabFaults& before,
                                         const LabFaults& after);
// The requests that produce `after` from an unknown state, as when an earlier request got no
// answer: they set every link and every rate, and begin all impairments anew.
std::vector<std::string> switch_requests_from_unknown_state(const LabPlan& plan,
                                                            const LabFaults& after);

// The rules for packets that this node drops on arrival. They replace its previous rules.
std::string ruleset(const LabPlan& plan, const LabFaults& faults, const LabNode& node);

}  // namespace weft::lab
