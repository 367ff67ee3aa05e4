// QueuePair: an MRC QP of this process in all states of verbs, from creation to destruction.
//
// Several threads may call any function except the destructor. Posts pass through the rings of
// DeviceQp; states and attributes change under the engine's lock.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "device/device_engine.h"
#include "device/device_qp.h"
#include "device/qp_attributes.h"
#include "device/qp_profiles.h"
#include "device/short_lock.h"

namespace weft::device {

// Upper bounds of a QP's options.
inline constexpr std::uint32_t kWorkMax = 16'384, kInlineMax = 1024;
inline constexpr std::uint32_t kMessageMax = 1u << 30;

class QueuePair {
 public:
  struct Options {
    DeviceQp::Options qp{};
    std::uint32_t receive_pieces_max = 1;
    // The operations that may be posted: bit N is the ibv_wr_opcode N.
    std::uint32_t opcodes = 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM;
  };
  // Makes a QP in state RESET; the engine outlives it. Errors: kExhausted.
  static Result<std::unique_ptr<QueuePair>> create(DeviceEngine& engine, const Options& options);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  transport::Qpn qpn() const { return qp_.qpn; }
  QpAttributes attributes();
  const DeviceQp& qp() const { return qp_; }
  const Options& options() const { return options_; }

  // `qps_sharing_path`: a hint, how many QPs share the path to the peer; at least 1. Errors:
  // kInvalid, kExhausted; then nothing has changed.
  struct Modification {
    QpChange change{};
    std::uint32_t qps_sharing_path = 1;
  };
  Result<void> modify(const Modification& modification);

  // Returns 0, or an errno value and, in *bad, the first work request that was not accepted.
  int post_send(ibv_send_wr* work, ibv_send_wr** bad);
  int post_recv(ibv_recv_wr* work, ibv_recv_wr** bad);

 private:
  QueuePair(DeviceEngine& engine, const Options& options);
  QpLimits limits() const { return {.mtu = engine_.config().world.mtu}; }
  struct Step {
    const QpAttributes& from;
    const QpAttributes& to;
    const QpProfiles& profiles;
    std::uint32_t qps_sharing_path = 1;
  };
  transport::QpConfig config_for(const QpAttributes& attributes, const QpProfiles& profiles,
                                 std::uint32_t qps_sharing_path) const;
  Result<void> choose_carrier(DeviceEngine::Parts& parts, const Step& step,
                              const transport::PeerInfo& peer);
  Result<void> apply_transition(DeviceEngine::Parts& parts, const Step& step);
  Result<void> receive_from_peer(DeviceEngine::Parts& parts, const Step& step);
  void reset(DeviceEngine::Parts& parts);
  int put(const ibv_send_wr& work);
  void put_pieces(std::uint32_t slot, std::span<const ibv_sge> sges);
  void put_inline(std::uint32_t slot, std::span<const ibv_sge> sges);

  DeviceEngine& engine_;
  Options options_;
  DeviceQp qp_;
  std::mutex modify_lock_;
  ShortLock send_lock_, receive_lock_;
  QpAttributes attributes_;
  QpProfiles profiles_;
  // The EV of the shared memory ring if a ring carries this QP's packets. Chosen at the transition
  // to RTR.
  std::optional<fabric::Ev> shared_memory_;
  // the largest payload that the planes to the peer carry; 0: not known yet
  std::uint32_t payload_to_peer_ = 0;
};

}  // namespace weft::device
