#include "cli/bench_engine.h"

#include <utility>

#include "os/clock.h"

namespace weft::cli {
namespace {

class EngineEnd final : public BenchEnd {
 public:
  explicit EngineEnd(std::unique_ptr<engine::NetRdma> rdma) : rdma_(std::move(rdma)) {}
  Result<void> add_regions(const BenchMemory& memory) {
    WEFT_TRY(const rdma::Region source, rdma_->add_region(memory.source));
    WEFT_TRY(const rdma::Region landing, rdma_->add_region(memory.landing));
    source_ = source.id;
    landing_ = landing.id;
    return {};
  }

  Result<Created> create_group(std::uint32_t qps) override {
    WEFT_TRY(const rdma::Group group,
             rdma_->create_group({.qps = qps, .sends_max = kBenchDepthMax, .receives_max = 0}));
    return Created{.group = group, .description = rdma_->describe(group.id)};
  }
  std::vector<std::byte> describe_landing() const override {
    return rdma_->describe_region(landing_);
  }
  Result<std::uint32_t> payload_that_arrives(ConstBytes peer_group) override {
    return rdma_->payload_that_arrives(peer_group);
  }
  Result<BenchLink> connect(const rdma::Group& group, const PeerWords& peer) override {
    rdma_->limit_payload(peer.payload_max);
    WEFT_CHECK(rdma_->connect(os::clock_now(), group.id, peer.group));
    WEFT_TRY(const rdma::RemoteRegion landing, rdma_->open_region(group.id, peer.landing));
    WEFT_TRY(const engine::Hello first,
             engine::Hello::from_bytes(peer.group.first<engine::Hello::kSize>()));
    return BenchLink{.group = group,
                     .landing = landing,
                     .peer_ports = first.ports,
                     .over_shared_memory = rdma_->health(group.id).over_shared_memory,
                     .mtu = rdma_->mtu_of(group.id)};
  }

  rdma::Rdma& rdma() override { return *rdma_; }
  rdma::RegionId source() const override { return source_; }
  void progress(Time limit) override { rdma_->progress(limit); }
  void answer(Time until) override { rdma_->world().step(until); }
  Time now() const override { return rdma_->world().now(); }
  std::size_t plane_count() const override { return rdma_->world().addresses().size(); }
  CounterTable counters() override { return rdma_->counters(); }

 private:
  std::unique_ptr<engine::NetRdma> rdma_;
  rdma::RegionId source_ = 0, landing_ = 0;
};

}  // namespace

Result<std::unique_ptr<BenchEnd>> open_engine_end(const engine::NetRdmaOptions& options,
                                                  const BenchMemory& memory) {
  WEFT_TRY(auto rdma, engine::NetRdma::open(options));
  auto end = std::make_unique<EngineEnd>(std::move(rdma));
  WEFT_CHECK(end->add_regions(memory));
  return std::unique_ptr<BenchEnd>(std::move(end));
}

}  // namespace weft::cli
