// LibRdma: an Rdma on any lib_mrc.so, Weft's or a vendor's. It uses only the library's C functions.
//
// The library moves packets by itself, or while it is polled. One CQ serves all QPs and has an
// entry for each request that may be posted, so that it never overflows. mrc.h reports neither
// windows, nor shared memory, nor counters: health() and counters() leave these out. Bounded by
// LibRdmaOptions; posting and polling do not allocate.
#pragma once

#include <infiniband/verbs.h>
#include <mrc/mrc.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "mrclib/library.h"
#include "os/file_descriptor.h"
#include "os/waiter.h"
#include "rdma/rdma.h"

namespace weft::mrclib {

struct QpChange;

struct LibRdmaOptions {
  std::string device{};  // name in verbs; empty: the first device that supports MRC
  int gid_index = 3;     // in the GID table of port 1
  std::uint32_t qps_max = 16, regions_max = 64;
  // Over all QPs: the CQ has an entry for each.
  std::uint32_t sends_max = 1024, receives_max = 1024;
  // How long progress() polls before it sleeps.
  Duration spin = Duration::us(20);
  // Whether change_plane() may disable a port of the device. The port is then disabled for all
  // programs that use the device, until it is enabled again or this object is destroyed. Needs
  // CAP_NET_ADMIN. If false, change_plane() returns false.
  bool changes_ports = false;
};

class LibRdma final : public rdma::Rdma {
 public:
  // Errors: kUnsupported (a function is missing), kNotFound (no such device), kBusy (only one
  // process may use the device, and another one does), kSystem.
  static Result<std::unique_ptr<LibRdma>> open(const Library& library,
                                               const LibRdmaOptions& options);
  ~LibRdma() override;

  // --- for the thread that drives this object
  // Waits for a completion, an event, a call of wake(), or the time `limit`. Returns the time to
  // pass to programs.
  Time progress(Time limit);
  // True if something can be polled. Polls the CQ, which also drives a library without a thread of
  // its own.
  bool has_news();
  // Makes a progress() that sleeps return, or else the next progress(). May be called from any
  // thread.
  void wake();
  // The device that open() found.
  ibv_context* verbs() const { return verbs_; }
  std::uint32_t mtu() const { return mtu_; }

  // --- rdma::Rdma
  // Zeroed memory of this process. No peer can map it, because mrc.h does not say which peers are
  // on this host.
  Result<rdma::Region> allocate(std::uint64_t size) override;
  Result<rdma::Region> add_region(std::span<std::byte> memory) override;
  Result<void> remove_region(rdma::RegionId region) override;
  Result<rdma::Group> create_group(const rdma::GroupRequest& request) override;
  Result<void> destroy_group(Time now, rdma::GroupId group) override;
  std::vector<std::byte> describe(rdma::GroupId group) const override;
  std::vector<std::byte> describe_region(rdma::RegionId region) const override;
  // If the library reports an error, the group can no longer be used.
  Result<void> connect(Time now, rdma::GroupId group, ConstBytes peer) override;
  Result<rdma::RemoteRegion> open_region(rdma::GroupId group, ConstBytes peer) override;
  rdma::Limits limits() const override { return limits_; }
  std::size_t post_writes(Time now, rdma::QpIndex qp, std::span<const rdma::Write> writes) override;
  std::uint32_t post_receives(Time now, rdma::QpIndex qp, std::uint32_t count) override;
  std::size_t poll(std::span<rdma::Completion> out) override;
  bool poll_failure(rdma::Failure& out) override;
  void fail_group(Time now, rdma::GroupId group) override;
  std::uint64_t health_changes() const override { return async_events_ + plane_changes_; }
  // The planes are the ports of the device. Planes that are down, or denied here, are left out.
  rdma::GroupHealth health(rdma::GroupId group) const override;
  bool change_plane(Time now, const PlaneChange& change) override;
  CounterTable counters() const override;

 private:
  struct OneQp {
    mrc_qp* qp = nullptr;  // null: destroyed
    std::uint32_t qpn = 0, first_psn = 0;
    std::uint32_t sends = 0, receives = 0;  // posted requests whose completions are not polled yet
    // the group's bounds, also if the library takes more
    std::uint32_t sends_max = 0, receives_max = 0;
    bool has_failed = false, is_reported = false;
    // The failure was reported only by an event or a flushed request; a completion in the CQ may
    // have the real reason.
    bool reason_is_guess = false;
    rdma::Status reason = rdma::Status::kOk;
  };
  struct GroupState {
    rdma::Group group{};
    rdma::GroupRequest request{};
    bool is_connected = false, is_there = true;
  };
  struct OwnRegion {
    ibv_mr* mr = nullptr;     // null: removed
    void* mapping = nullptr;  // the memory of allocate(); else null
  };
  struct Reason {
    rdma::Status status = rdma::Status::kOk;
    bool is_guess = false;
  };
  static constexpr std::size_t kBatch = 16, kPolled = 128;

  LibRdma(const Library& library, const LibRdmaOptions& options);
  Result<void> start();
  Result<void> open_device();
  Result<void> open_queues();
  void find_planes();
  Result<void> create_qp(const rdma::GroupRequest& request);
  struct MrcChange {
    mrc_qp_attr attr{};
    int mask = 0;
  };
  // Returns the result of mrc_modify_qp: 0 or an errno value.
  int modify(const OneQp& qp, const QpChange& change, const MrcChange& mrc) const;

  std::size_t post_batch(rdma::QpIndex qp, std::span<const rdma::Write> writes);
  bool refill();
  void sleep(Time limit);
  bool take_events();
  void on_event(const mrc_async_event& event);
  void note_refusal(OneQp& qp, int error);
  void fail(OneQp& qp, const Reason& reason);
  void fail_all();

  Library library_;
  LibRdmaOptions options_;
  Prng prng_;
  ibv_context* verbs_ = nullptr;
  mrc_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  mrc_comp_channel* channel_ = nullptr;
  int channel_fd_ = -1;  // owned by the channel
  mrc_cq* cq_ = nullptr;
  ibv_gid gid_{};
  std::uint32_t mtu_ = 0;
  std::uint8_t mpr_ = 0, mpr_resolution_ = 1;  // both in units of 128 PSNs
  rdma::Limits limits_{};

  std::vector<OneQp> qps_;          // index: QpIndex
  std::vector<GroupState> groups_;  // index: GroupId
  std::vector<OwnRegion> regions_;  // index: RegionId
  std::uint32_t qps_there_ = 0, regions_there_ = 0;
  std::uint32_t sends_reserved_ = 0, receives_reserved_ = 0;

  // Reused for each post. Each request's `next` was set once, to the following request.
  std::array<ibv_send_wr, kBatch> sends_{};
  std::array<ibv_sge, kBatch> pieces_{};
  std::array<ibv_recv_wr, kBatch> receives_{};
  // Completions taken from the CQ. Those at [next_, count_) are not polled yet.
  std::array<ibv_wc, kPolled> done_{};
  std::size_t next_ = 0, count_ = 0;
  bool cq_has_failed_ = false;
  std::uint32_t failures_untold_ = 0;

  std::uint8_t planes_ = 1, planes_down_ = 0, planes_denied_ = 0;  // masks: bit i is port i + 1
  Time events_looked_at_{};
  std::uint64_t async_events_ = 0, plane_changes_ = 0, sleeps_ = 0;
  os::FileDescriptor wake_;  // an eventfd
  std::atomic<bool> is_woken_{false};
  os::Waiter waiter_;
};

}  // namespace weft::mrclib
