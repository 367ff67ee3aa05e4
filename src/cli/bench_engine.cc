#include "cli/bench_engine.h"

#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

namespace weft::cli {
namespace {

Error failed(transport::Status status) {
  const char* why = "failed";
  switch (status) {
    case transport::Status::kRetryExceeded:
      why = "the other end does not answer";
      break;
    case transport::Status::kRemoteAccess:
      why = "the other end refused the address or the key";
      break;
    default:
      break;
  }
  return {ErrorKind::kSystem, fmt::format("a write failed: {}", why)};
}

class EngineEnd final : public BenchEnd {
 public:
  EngineEnd(std::unique_ptr<engine::NetEnd> end, const BenchMemory& memory)
      : end_(std::move(end)), memory_(memory) {}

  Result<Created> create_qp() override {
    Created out{.index = static_cast<std::uint32_t>(qpns_.size())};
    WEFT_TRY(out.hello, end_->create_qp(memory_.landing));
    qpns_.push_back(out.hello.qpn);
    return out;
  }
  Result<engine::Offer> offer(const engine::Hello& peer) override { return end_->offer(peer); }
  Result<engine::NetEnd::Carrier> connect(const BenchQp& qp, const engine::Offer& agreed) override {
    return end_->connect(qpns_[qp.index], qp.peer, agreed);
  }

  Result<void> post(const BenchQp& qp, const Write& write) override {
    return end_->endpoint().post_write(
        now(), qpns_[qp.index],
        {.local_at = reinterpret_cast<std::uintptr_t>(memory_.source.data()) + write.offset,
         .remote_at = qp.peer.region_at + write.offset,
         .rkey = qp.peer.rkey,
         .size = write.size});
  }
  void progress(Time limit) override { end_->world().progress(limit); }

  Result<std::uint64_t> take() override {
    // Small, because it is polled in each iteration and is usually empty.
    std::array<transport::Completion, 4> batch;
    std::uint64_t done = 0;
    for (;;) {
      const std::size_t count = end_->endpoint().poll_completions(batch);
      for (std::size_t i = 0; i < count; ++i) {
        if (batch[i].status != transport::Status::kOk) return failed(batch[i].status);
      }
      done += count;
      if (count < batch.size()) return done;
    }
  }
  void answer(Time until) override { end_->world().step(until); }
  Time now() const override { return end_->world().now(); }

  std::size_t plane_count() const override { return end_->world().addresses().size(); }
  CounterTable counters() override {
    CounterTable table = end_->endpoint().counters();
    const CounterTable net = end_->world().counters();
    table.insert(table.end(), net.begin(), net.end());
    return table;
  }
  std::optional<std::int64_t> window_bytes(const BenchQp& qp) override {
    return end_->endpoint().view(qpns_[qp.index]).cwnd_bytes;
  }
  world::PortMask planes_left_out(const BenchQp& qp) override {
    return end_->endpoint().view(qpns_[qp.index]).ports_left_out;
  }

 private:
  std::unique_ptr<engine::NetEnd> end_;
  BenchMemory memory_;
  std::vector<transport::Qpn> qpns_;
};

}  // namespace

Result<std::unique_ptr<BenchEnd>> open_engine_end(const engine::NetOptions& options,
                                                  const BenchMemory& memory) {
  WEFT_TRY(auto end, engine::NetEnd::open(options));
  return std::unique_ptr<BenchEnd>(std::make_unique<EngineEnd>(std::move(end), memory));
}

}  // namespace weft::cli
