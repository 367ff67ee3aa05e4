// Rdma: the one interface through which programs post RDMA writes. Values and contracts; what
// implements it: src/engine (the transport in this process), later any lib_mrc.so.
//
// One thread. Calls go down, results come up by polling. Set-up may allocate and ask the system, but
// never waits for a peer; work does neither. The owner of an implementation drives it.
//
// Order: writes of a QP complete in post order, and immediates of a QP arrive in post order. Nothing
// else is ordered: neither two QPs, nor bytes against bytes. Only an immediate signals that a step
// is done: it promises the bytes of its own message, and what its poster stored in memory before
// post_writes().
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

using QpIndex = std::uint32_t;  // dense, in order of creation; never used again
using GroupId = std::uint32_t;
using RegionId = std::uint32_t;

// Memory of this process that writes leave from and that peers may write to. `bytes` is null where a
// simulated memory has only addresses.
struct Region {
  RegionId id = 0;
  std::byte* bytes = nullptr;
  std::uint64_t size = 0;
};

// A region of a peer. `mapped`: its bytes in this process, read only; null where they cannot be. A
// read of mapped bytes completes nowhere: the reader tells the owner by an immediate when it has
// done with them.
struct RemoteRegion {
  std::uint64_t at = 0, size = 0;
  std::uint32_t rkey = 0;
  const std::byte* mapped = nullptr;
};

// QPs first_qp .. first_qp + qps - 1, all to one peer.
struct Group {
  GroupId id = 0;
  QpIndex first_qp = 0;
  std::uint32_t qps = 0;
};

// Each QP takes at least as many as its bounds say; the next power of two at most.
// `receives_posted` are there before any peer can reach the QP.
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
  kLocalAccess,      // a write of the peer violated our memory or our credits
  kFlushed,          // the QP had failed; poll_failure() has the reason
};
std::string_view to_string(Status status);

struct Write {
  std::uint32_t id = 0;  // given back in the completion
  bool with_immediate = false;
  std::uint32_t immediate = 0;
  RegionId from = 0;
  std::uint64_t from_offset = 0, to_offset = 0;
  const RemoteRegion* to = nullptr;  // read during the call only
  // 0 is legal. Without an immediate an empty write asks whether the peer lives: it takes no
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
  std::uint32_t size = 0;       // of a receive: bytes of its message
};

struct Failure {
  QpIndex qp = 0;
  Status reason = Status::kOk;
};

// The paths of a group as they are now. A plane whose bit is set in `planes_left_out` carries
// nothing to this peer.
struct GroupHealth {
  std::uint8_t planes = 0, planes_left_out = 0;
  bool over_shared_memory = false;
  std::int64_t window_bytes = 0;  // 0: unknown
};

// The largest write; immediates of a QP in flight at a time (more wait in the queue).
struct Limits {
  std::uint32_t write_bytes_max = 0, immediates_max = 0;
};

class Rdma {
 public:
  virtual ~Rdma() = default;

  // --- set-up ----------------------------------------------------------------------------------
  // Zeroed memory that peers on this host may map. Errors: kExhausted, kSystem.
  virtual Result<Region> allocate(std::uint64_t size) = 0;
  // The caller's memory, which outlives its registration; peers cannot map it. Errors: kExhausted.
  virtual Result<Region> add_region(std::span<std::byte> memory) = 0;
  // REQUIRES that no posted write leaves from it. A peer's later write to it fails its QP. Memory of
  // allocate() is freed. Errors: kNotFound.
  virtual Result<void> remove_region(RegionId region) = 0;

  // Errors: kExhausted, kInvalid.
  virtual Result<Group> create_group(const GroupRequest& request) = 0;
  // Destroys the QPs; packets of the peer meet no QP. Errors: kNotFound.
  virtual Result<void> destroy_group(Time now, GroupId group) = 0;

  // What the peer must be told before it can connect, once, by anything that carries bytes. Peers
  // may connect in any order: what a peer sends too early is retransmitted milliseconds later, which
  // a barrier after connect() avoids.
  virtual std::vector<std::byte> describe(GroupId group) const = 0;
  virtual std::vector<std::byte> describe_region(RegionId region) const = 0;
  // `peer`: any bytes, as the peer's describe() gave them. Errors: kInvalid in one line where the two
  // ends do not fit.
  virtual Result<void> connect(Time now, GroupId group, ConstBytes peer) = 0;
  // `peer`: any bytes, as the peer's describe_region() gave them. REQUIRES a connected group. Errors:
  // kInvalid.
  virtual Result<RemoteRegion> open_region(GroupId group, ConstBytes peer) = 0;
  virtual Limits limits() const = 0;

  // --- work ------------------------------------------------------------------------------------
  // How many were taken, in order. Fewer: the queue is full, and has room once a completion of this
  // QP was polled; or the QP has failed, and poll_failure() says so.
  virtual std::size_t post_writes(Time now, QpIndex qp, std::span<const Write> writes) = 0;
  // Credits for immediates; how many were taken, as above. An immediate that finds no receive fails
  // the QP at both ends: senders count what their peer has posted.
  virtual std::uint32_t post_receives(Time now, QpIndex qp, std::uint32_t count) = 0;
  // Oldest first. Fewer than out.size(): no more are left.
  virtual std::size_t poll(std::span<Completion> out) = 0;
  // Each failed QP once, also one with nothing posted; false if there is none.
  virtual bool poll_failure(Failure& out) = 0;
  // The QPs fail: what was posted is flushed, and what the peer sends is refused. A peer that only
  // waits does not learn of it; it asks by an empty write.
  virtual void fail_group(Time now, GroupId group) = 0;

  // When a pass of this process's core over so many bytes, begun now, is over. Simulated time costs
  // what it is asked to cost; where time is real, the pass itself takes it.
  virtual Time spend(Time now, std::uint64_t /*bytes*/) { return now; }

  // --- paths -----------------------------------------------------------------------------------
  // Goes up when the planes or paths of some group may have changed. Cheap: for every step.
  virtual std::uint64_t health_changes() const = 0;
  virtual GroupHealth health(GroupId group) const = 0;
  // From now on no group uses the plane, or all may again. False: this implementation cannot.
  struct PlaneChange {
    std::uint8_t plane = 0;
    bool denied = false;
  };
  virtual bool change_plane(Time now, const PlaneChange& change) = 0;
  virtual CounterTable counters() const = 0;
};

}  // namespace weft::rdma
