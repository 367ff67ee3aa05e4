// LibRdma: Rdma on any lib_mrc.so, ours or a vendor's, through its C functions alone.
//
// The library moves packets by itself, or while it is polled. One CQ for all QPs, with a place for
// each request that may be posted, so that it never overflows. The library tells nothing of windows
// and of shared memory, and has no counters: health() and counters() say only what mrc.h can say.
// Bounded by LibRdmaOptions; work does not allocate.
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
#include "rdma/rdma.h"

namespace weft::mrclib {

struct QpChange;

struct LibRdmaOptions {
  std::string device{};  // of verbs; empty: the first that speaks MRC
  int gid_index = 3;     // of its port 1
  std::uint32_t qps_max = 16, regions_max = 64;
  // Over all QPs: the CQ has a place for each.
  std::uint32_t sends_max = 1024, receives_max = 1024;
  // progress() polls for so long before it sleeps.
  Duration spin = Duration::us(20);
  // change_plane() disables the port of the device: for all its programs, until it is allowed again
  // or this object goes. Needs CAP_NET_ADMIN. If false, change_plane() returns false.
  bool changes_ports = false;
};

class LibRdma final : public rdma::Rdma {
 public:
  // Errors: kUnsupported: a function is missing; kNotFound: no such device; kBusy: the device is for
  // one process at a time, and another one uses it; kSystem.
  static Result<std::unique_ptr<LibRdma>> open(const Library& library,
                                               const LibRdmaOptions& options);
  ~LibRdma() override;

  // --- for the driver
  // Until a completion or an event came, or wake(), or `limit`. Returns the time that programs are
  // told.
  Time progress(Time limit);
  // Something can be polled. Looks at the CQ, which drives a library that has no thread of its own.
  bool has_news();
  // Makes a progress() that sleeps, or else the next one, return. From any thread.
  void wake();
  // The device, and what it can do.
  ibv_context* verbs() const { return verbs_; }
  std::uint32_t mtu() const { return mtu_; }

  // --- rdma::Rdma
  // Zeroed memory of this process. No peer can map it: mrc.h does not tell who is on this host.
  Result<rdma::Region> allocate(std::uint64_t size) override;
  Result<rdma::Region> add_region(std::span<std::byte> memory) override;
  Result<void> remove_region(rdma::RegionId region) override;
  Result<rdma::Group> create_group(const rdma::GroupRequest& request) override;
  Result<void> destroy_group(Time now, rdma::GroupId group) override;
  std::vector<std::byte> describe(rdma::GroupId group) const override;
  std::vector<std::byte> describe_region(rdma::RegionId region) const override;
  // After an error of the library the group is of no more use.
  Result<void> connect(Time now, rdma::GroupId group, ConstBytes peer) override;
  Result<rdma::RemoteRegion> open_region(rdma::GroupId group, ConstBytes peer) override;
  rdma::Limits limits() const override { return limits_; }
  std::size_t post_writes(Time now, rdma::QpIndex qp, std::span<const rdma::Write> writes) override;
  std::uint32_t post_receives(Time now, rdma::QpIndex qp, std::uint32_t count) override;
  std::size_t poll(std::span<rdma::Completion> out) override;
  bool poll_failure(rdma::Failure& out) override;
  void fail_group(Time now, rdma::GroupId group) override;
  std::uint64_t health_changes() const override { return async_events_ + plane_changes_; }
  // The planes are the ports of the device; left out are those that are down or denied here.
  rdma::GroupHealth health(rdma::GroupId group) const override;
  bool change_plane(Time now, const PlaneChange& change) override;
  CounterTable counters() const override;

 private:
  struct OneQp {
    mrc_qp* qp = nullptr;  // null: destroyed
    std::uint32_t qpn = 0, first_psn = 0;
    std::uint32_t sends = 0, receives = 0;          // posted, and their completions not polled
    std::uint32_t sends_max = 0, receives_max = 0;  // a library may take more
    bool has_failed = false, is_told = false;
    // Only an event, or a flushed request, told of the failure: a completion in the CQ may know why.
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
    void* mapping = nullptr;  // of allocate()
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
  // Returns what mrc_modify_qp does: 0, or an errno.
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
  int channel_fd_ = -1;  // the channel owns it
  mrc_cq* cq_ = nullptr;
  ibv_gid gid_{};
  std::uint32_t mtu_ = 0;
  std::uint8_t mpr_ = 0, mpr_resolution_ = 1;  // in 128 PSNs
  rdma::Limits limits_{};

  std::vector<OneQp> qps_;          // by QpIndex
  std::vector<GroupState> groups_;  // by GroupId
  std::vector<OwnRegion> regions_;  // by RegionId
  std::uint32_t qps_there_ = 0, regions_there_ = 0;
  std::uint32_t sends_reserved_ = 0, receives_reserved_ = 0;

  // Work requests that are filled anew for each post; linked once.
  std::array<ibv_send_wr, kBatch> sends_{};
  std::array<ibv_sge, kBatch> pieces_{};
  std::array<ibv_recv_wr, kBatch> receives_{};
  // Taken from the CQ, not yet polled: [next_, count_).
  std::array<ibv_wc, kPolled> done_{};
  std::size_t next_ = 0, count_ = 0;
  bool cq_has_failed_ = false;
  std::uint32_t failures_untold_ = 0;

  std::uint8_t planes_ = 1, planes_down_ = 0, planes_denied_ = 0;  // masks: bit i is port i + 1
  Time events_looked_at_{};
  std::uint64_t async_events_ = 0, plane_changes_ = 0, sleeps_ = 0;
  os::FileDescriptor wake_;  // an eventfd
  std::atomic<bool> is_woken_{false};
};

}  // namespace weft::mrclib
