// Rdma: the one interface through which programs post RDMA writes. Values and contracts only.
// Implementations: src/engine (the transport in this process) and src/mrclib (any lib_mrc.so).
//
// One thread. Calls go down, results come up by polling. Set-up may allocate and make system calls,
// but never waits for a peer; posting and polling do neither. The owner of an implementation drives
// it.
//
// Order: writes of a QP complete in the order of posting, and immediates of a QP arrive in the
// order of posting. Nothing else is ordered: neither two QPs, nor the bytes of different writes.
// Only an immediate signals that data is there: when it arrives, the bytes of its own message have
// arrived, and everything that its sender stored in memory before post_writes() is visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "base/result.h"
#include "base/time.h"

namespace weft::rdma {

using QpIndex = std::uint32_t;  // counts up from 0 in order of creation; never reused
using GroupId = std::uint32_t;
using RegionId = std::uint32_t;

// Memory of this process, from which writes are sent and to which peers may write. `bytes` is null
// if a simulated memory has only addresses.
struct Region {
  RegionId id = 0;
  std::byte* bytes = nullptr;
  std::uint64_t size = 0;
};

// A region of a peer. `mapped`: the region's bytes, mapped read-only in this process; null if they
// cannot be mapped. Reading mapped bytes makes no completion: when the reader has finished, it
// tells the owner by an immediate.
struct RemoteRegion {
  std::uint64_t at = 0, size = 0;
  std::uint32_t rkey = 0;
  const std::byte* mapped = nullptr;
};

// A group: the QPs first_qp .. first_qp + qps - 1, all to one peer.
struct Group {
  GroupId id = 0;
  QpIndex first_qp = 0;
  std::uint32_t qps = 0;
};

// Each QP takes at least as many as its bounds say, and at most the next power of two; none if the
// bound is 0.
// `receives_posted`: how many receives are posted before any peer can reach the QP.
struct GroupRequest {
  std::uint32_t qps = 1;
  std::uint32_t sends_max = 64, receives_max = 64;
  std::uint32_t receives_posted = 0;
};

enum class Status : std::uint8_t {
  kOk,
  kRetryExceeded,    // the peer did not answer
  kRemoteAccess,     // the peer refused the key or the range
  kRemoteInvalid,    // the peer found the request invalid
  kRemoteOperation,  // the peer had no receive for an immediate
  kLocalAccess,      // a write of the peer was outside our memory, or found no receive
  kFlushed,          // the QP had already failed; poll_failure() has the reason
};
std::string_view to_string(Status status);

struct Write {
  std::uint32_t id = 0;  // returned in the completion
  bool with_immediate = false;
  std::uint32_t immediate = 0;
  RegionId from = 0;
  std::uint64_t from_offset = 0, to_offset = 0;
  const RemoteRegion* to = nullptr;  // used only during the call
  // May be 0. An empty write without an immediate asks whether the peer is alive: it consumes no
  // receive, and completes or fails.
  std::uint32_t size = 0;
};

struct Completion {
  enum class Kind : std::uint8_t { kWrite, kReceive };
  Kind kind = Kind::kWrite;
  Status status = Status::kOk;
  QpIndex qp = 0;
  std::uint32_t id = 0;         // of a write
  std::uint32_t immediate = 0;  // of a receive
  std::uint32_t size = 0;       // of a receive: bytes of the message
};

struct Failure {
  QpIndex qp = 0;
  Status reason = Status::kOk;
};

// The paths of a group now. The bits of `planes_left_out` are planes that carry no data to this
// peer.
struct GroupHealth {
  std::uint8_t planes = 0, planes_left_out = 0;
  bool over_shared_memory = false;
  std::int64_t window_bytes = 0;  // 0: unknown
};

// write_bytes_max: the largest write. immediates_max: how many immediates of a QP may be in flight;
// more wait in the queue.
struct Limits {
  std::uint32_t write_bytes_max = 0, immediates_max = 0;
};

class Rdma {
 public:
  virtual ~Rdma() = default;

  // --- set-up ----------------------------------------------------------------------------------
  // Zeroed memory, which peers on this host may be able to map. Errors: kExhausted; kInvalid for 0
  // bytes, or more than a region may have; kSystem.
  virtual Result<Region> allocate(std::uint64_t size) = 0;
  // Registers the caller's memory, which must outlive the registration. Peers cannot map it.
  // Errors: as allocate().
  virtual Result<Region> add_region(std::span<std::byte> memory) = 0;
  // Frees memory of allocate(). REQUIRES that no posted write is from this region. If a peer writes
  // to it later, the peer's QP fails. Errors: kNotFound.
  virtual Result<void> remove_region(RegionId region) = 0;

  // Errors: kExhausted, kInvalid.
  virtual Result<Group> create_group(const GroupRequest& request) = 0;
  // Destroys the QPs; packets from the peer are then dropped, and completions and failures that were
  // not polled are gone. What the group's regions mapped is unmapped. Errors: kNotFound.
  virtual Result<void> destroy_group(Time now, GroupId group) = 0;

  // What the peer needs to connect to this group. It is sent once, over any channel. The two ends
  // may connect in any order, but packets that arrive before this end has connected are
  // retransmitted only milliseconds later; a barrier after connect() avoids that.
  virtual std::vector<std::byte> describe(GroupId group) const = 0;
  virtual std::vector<std::byte> describe_region(RegionId region) const = 0;
  // `peer`: what the peer's describe() returned, or any other bytes. Errors: kInvalid with a
  // one-line message, if the two ends are not compatible: then nothing has changed. kWrongState: it
  // is connected. After any other error the group is of no more use.
  virtual Result<void> connect(Time now, GroupId group, ConstBytes peer) = 0;
  // `peer`: what the peer's describe_region() returned, or any other bytes. REQUIRES a connected
  // group. Errors: kInvalid.
  virtual Result<RemoteRegion> open_region(GroupId group, ConstBytes peer) = 0;
  virtual Limits limits() const = 0;

  // --- work ------------------------------------------------------------------------------------
  // Posts writes in order, and returns how many were taken. If fewer than given, either the queue
  // is full, until a completion of this QP is polled; or the QP has failed, and poll_failure()
  // reports it.
  virtual std::size_t post_writes(Time now, QpIndex qp, std::span<const Write> writes) = 0;
  // Posts receives for immediates, and returns how many were taken, as post_writes(). An immediate
  // that finds no receive fails the QP at both ends, so a sender must count the receives that its
  // peer has posted.
  virtual std::uint32_t post_receives(Time now, QpIndex qp, std::uint32_t count) = 0;
  // The oldest completions first. If fewer than out.size() are returned, no more are left.
  virtual std::size_t poll(std::span<Completion> out) = 0;
  // Reports each failed QP once, even if nothing is posted on it. False if there is none to report.
  virtual bool poll_failure(Failure& out) = 0;
  // Fails the group's QPs: posted work is flushed, and packets from the peer are refused. A peer
  // that only waits does not learn of this; it can ask with an empty write.
  virtual void fail_group(Time now, GroupId group) = 0;

  // The time at which this process's core has processed so many bytes if it begins now. In a
  // simulation the core is then busy until that time. Where time is real, the work itself takes the
  // time, and the result is `now`.
  virtual Time spend(Time now, std::uint64_t /*bytes*/) { return now; }

  // --- paths -----------------------------------------------------------------------------------
  // Increases when the planes or paths of some group may have changed. Cheap enough to call in
  // every step.
  virtual std::uint64_t health_changes() const = 0;
  virtual GroupHealth health(GroupId group) const = 0;
  // From now on no group uses the plane (denied), or all groups may use it again. False if this
  // implementation cannot change planes.
  struct PlaneChange {
    std::uint8_t plane = 0;
    bool denied = false;
  };
  virtual bool change_plane(Time now, const PlaneChange& change) = 0;
  virtual CounterTable counters() const = 0;
};

}  // namespace weft::rdma
