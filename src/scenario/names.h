// The names of enumerators in scenario files, in kebab-case; one table for each enumeration.
#pragma once

#include "config/names.h"
#include "fabric/fault_words.h"
#include "scenario/scenario.h"

namespace weft::scenario {

using config::Name;
using config::name_of;
using fabric::FaultAction;
using fabric::FaultPlace;
using fabric::ImpairmentKind;
using fabric::word_of;

inline constexpr Name<fabric::Shape> kShapeNames[] = {{"single", fabric::Shape::kSingle},
                                                      {"two-tier", fabric::Shape::kTwoTier},
                                                      {"three-tier", fabric::Shape::kThreeTier}};
inline constexpr Name<fabric::Layout> kLayoutNames[] = {{"block", fabric::Layout::kBlock},
                                                        {"rail", fabric::Layout::kRail}};
inline constexpr Name<fabric::Forwarding> kForwardingNames[] = {
    {"srv6", fabric::Forwarding::kSrv6},
    {"stev", fabric::Forwarding::kStev},
    {"hashed", fabric::Forwarding::kHashed}};
inline constexpr Name<fabric::Tier> kSwitchTierNames[] = {
    {"t0", fabric::Tier::kT0}, {"t1", fabric::Tier::kT1}, {"t2", fabric::Tier::kT2}};
inline constexpr Name<transport::Policy> kPolicyNames[] = {
    {"mrc", transport::Policy::kMrc},
    {"oblivious", transport::Policy::kOblivious},
    {"reps", transport::Policy::kReps},
    {"flow-hash", transport::Policy::kFlowHash}};
inline constexpr Name<transport::Condemn> kCondemnNames[] = {
    {"relative", transport::Condemn::kRelative}, {"first-loss", transport::Condemn::kFirstLoss}};
inline constexpr Name<WorkloadKind> kWorkloadNames[] = {
    {"pairs", WorkloadKind::kPairs},
    {"permutation", WorkloadKind::kPermutation},
    {"incast", WorkloadKind::kIncast},
    {"ring-all-reduce", WorkloadKind::kRingAllReduce},
    {"tree-all-reduce", WorkloadKind::kTreeAllReduce},
    {"all-to-all", WorkloadKind::kAllToAll},
    {"flows", WorkloadKind::kFlows}};
inline constexpr Name<FaultKind> kFaultNames[] = {
    {word_of(ImpairmentKind::kLoss), FaultKind::kLoss},
    {word_of(ImpairmentKind::kBurstLoss), FaultKind::kBurstLoss},
    {word_of(ImpairmentKind::kReorder), FaultKind::kReorder},
    {word_of(ImpairmentKind::kDuplicate), FaultKind::kDuplicate},
    {word_of(ImpairmentKind::kCorrupt), FaultKind::kCorrupt},
    {word_of(FaultAction::kLinkDown), FaultKind::kLinkDown},
    {"link-flap", FaultKind::kLinkFlap},
    {"link-slow", FaultKind::kLinkSlow},
    {"plane-down", FaultKind::kPlaneDown},
    {"switch-down", FaultKind::kSwitchDown},
    {"host-pause", FaultKind::kHostPause},
    {"host-crash", FaultKind::kHostCrash},
    {word_of(ImpairmentKind::kEvLoss), FaultKind::kEvLoss},
    {"control-loss", FaultKind::kControlLoss}};
inline constexpr Name<ControlKind> kControlNames[] = {
    {word_of(ImpairmentKind::kFirstTransportAck), ControlKind::kFirstTransportAck},
    {word_of(ImpairmentKind::kFirstNak), ControlKind::kFirstNak}};
inline constexpr Name<LinkWhere> kWhereNames[] = {
    {word_of(FaultPlace::kNicReceive), LinkWhere::kNicReceive},
    {word_of(FaultPlace::kAllLinks), LinkWhere::kAllLinks},
    {"host-link", LinkWhere::kHostLink},
    {"t0-t1", LinkWhere::kT0T1},
    {"t1-t2", LinkWhere::kT1T2}};
inline constexpr Name<Direction> kDirectionNames[] = {
    {"both", Direction::kBoth}, {"up", Direction::kUp}, {"down", Direction::kDown}};
inline constexpr Name<MemoryKind> kMemoryNames[] = {{"bytes", MemoryKind::kBytes},
                                                    {"provenance", MemoryKind::kProvenance},
                                                    {"none", MemoryKind::kNone}};

}  // namespace weft::scenario
