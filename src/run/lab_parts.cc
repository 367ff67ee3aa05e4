#include "run/lab_parts.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/assert.h"
#include "os/clock.h"
#include "os/system_error.h"

namespace weft::run {
namespace {

constexpr std::size_t kCountersMax = 256, kStuckMax = 8, kLineMax = 256;

// A report in shared memory. The records of the flows follow it, then the time series.
struct StoredReport {
  std::array<std::uint64_t, kCountersMax> counters, world;
  std::uint64_t bytes_wrong;
  Fleet::QpErrors errors;
  bool ev_floor_reached;
  std::array<std::array<char, kLineMax>, kStuckMax> stuck;
};
static_assert(std::is_trivially_copyable_v<StoredReport>);
static_assert(std::is_trivially_copyable_v<scenario::FlowRecord>);

void store_values(const CounterTable& table, std::array<std::uint64_t, kCountersMax>& out) {
  WEFT_ASSERT(table.size() <= out.size());
  for (std::size_t i = 0; i < table.size(); ++i) out[i] = table[i].value;
}
void add_values(const std::array<std::uint64_t, kCountersMax>& in, CounterTable& table) {
  for (std::size_t i = 0; i < table.size(); ++i) table[i].value += in[i];
}

}  // namespace

struct LabParts::Page {
  std::atomic<std::uint32_t> done, given_up;
};

LabParts::LabParts(std::uint32_t processes, std::size_t flows, std::size_t steps)
    : processes_(processes), flows_(flows), steps_(steps) {}

std::size_t LabParts::part_bytes() const {
  const std::size_t bytes =
      sizeof(StoredReport) + flows_ * sizeof(scenario::FlowRecord) + steps_ * sizeof(std::uint64_t);
  return (bytes + 63) / 64 * 64;
}

Result<std::unique_ptr<LabParts>> LabParts::make(const Fleet& fleet, std::uint32_t processes) {
  WEFT_ASSERT(processes >= 1 && processes <= kProcessesMax);
  std::unique_ptr<LabParts> out(
      new LabParts(processes, fleet.plan().ops.size(), fleet.scoreboard().series.bytes().size()));
  out->bytes_ = 64 + processes * out->part_bytes();
  void* const page =
      mmap(nullptr, out->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return os::system_error("mmap of the page that processes share");
  out->page_ = new (page) Page{};
  return out;
}

LabParts::~LabParts() {
  if (is_first()) {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  if (page_ != nullptr) munmap(page_, bytes_);
}

Result<void> LabParts::split() {
  for (std::uint32_t part = 1; part < processes_; ++part) {
    const pid_t first = getpid();
    const pid_t child = fork();
    if (child < 0) return os::system_error("fork");
    if (child > 0) {
      children_.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != first) _exit(1);  // the first process died before prctl() took effect
    part_ = part;
    children_.clear();
    return {};
  }
  return {};
}

void LabParts::say_done() { page_->done.fetch_add(1); }
bool LabParts::all_done() const { return page_->done.load() >= processes_; }
void LabParts::give_up() { page_->given_up.store(1); }
bool LabParts::given_up() {
  if (any_died()) give_up();
  return page_->given_up.load() != 0;
}

// Only the first process can see that others died. When it dies, the kernel kills them. Processes
// that ended through leave() are not counted.
bool LabParts::any_died() {
  constexpr Duration kEvery = Duration::ms(10);
  const Time now = os::clock_now();
  if (now < look_next_) return false;
  look_next_ = now + kEvery;
  return std::any_of(children_.begin(), children_.end(), [](pid_t child) {
    siginfo_t how{};
    return waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           how.si_pid == child && (how.si_code != CLD_EXITED || how.si_status != 0);
  });
}

void LabParts::store(const PartReport& report) {
  auto* at = reinterpret_cast<std::byte*>(page_) + 64 + part_ * part_bytes();
  StoredReport stored{};
  store_values(report.counters, stored.counters);
  store_values(report.world, stored.world);
  stored.bytes_wrong = report.bytes_wrong;
  stored.errors = report.errors;
  stored.ev_floor_reached = report.ev_floor_reached;
  for (std::size_t i = 0; i < std::min(report.stuck.size(), kStuckMax); ++i)
    report.stuck[i].copy(stored.stuck[i].data(), kLineMax - 1);
  std::memcpy(at, &stored, sizeof(stored));
  at += sizeof(stored);
  WEFT_ASSERT(report.flows.size() == flows_ && report.series.size() == steps_);
  std::memcpy(at, report.flows.data(), flows_ * sizeof(scenario::FlowRecord));
  at += flows_ * sizeof(scenario::FlowRecord);
  if (steps_ > 0) std::memcpy(at, report.series.data(), steps_ * sizeof(std::uint64_t));
}

void LabParts::leave(const PartReport& report) {
  store(report);
  std::fflush(nullptr);
  _exit(0);
}

void LabParts::add(std::uint32_t part, PartReport& to) const {
  const auto* at = reinterpret_cast<const std::byte*>(page_) + 64 + part * part_bytes();
  StoredReport stored;
  std::memcpy(&stored, at, sizeof(stored));
  at += sizeof(stored);
  add_values(stored.counters, to.counters);
  add_values(stored.world, to.world);
  to.bytes_wrong += stored.bytes_wrong;
  to.errors.unexpected += stored.errors.unexpected;
  to.errors.expected += stored.errors.expected;
  to.ev_floor_reached |= stored.ev_floor_reached;
  for (const auto& line : stored.stuck) {
    if (line[0] != '\0' && to.stuck.size() < kStuckMax) to.stuck.emplace_back(line.data());
  }
  for (std::size_t flow = 0; flow < flows_; ++flow, at += sizeof(scenario::FlowRecord)) {
    scenario::FlowRecord record;
    std::memcpy(&record, at, sizeof(record));
    // Only the process whose host sends a flow has its record.
    if (record.state != scenario::FlowState::kWaiting) to.flows[flow] = record;
  }
  for (std::size_t step = 0; step < steps_; ++step, at += sizeof(std::uint64_t)) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, sizeof(bytes));
    to.series[step] += bytes;
  }
}

Result<void> LabParts::gather(PartReport& own) {
  bool whole = true;
  for (const pid_t child : children_) {
    int status = 0;
    whole &= waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  const auto count = static_cast<std::uint32_t>(children_.size());
  children_.clear();
  if (!whole) return Error{ErrorKind::kSystem, "a process of the lab's hosts died"};
  for (std::uint32_t part = 1; part <= count; ++part) add(part, own);
  return {};
}

}  // namespace weft::run
