// Many QPs, many processes: what a QP costs to have, written against mrc.h as any program is.
//
//   many_qps PROCESSES NEIGHBOURS QPS ROUNDS
//
// Each process opens the device and has QPS QPs with each of the next NEIGHBOURS in a ring (two
// processes: with each other, once). Over every QP both ends write ROUNDS messages with an immediate,
// each with a pattern of its own, and each is looked at byte by byte before the next is asked for.
// Prints one JSON object. Exit status 1: a call failed, a byte was wrong, or a minute passed.
#include <endian.h>
#include <infiniband/verbs.h>
#include <mrc/mrc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);
constexpr std::uint32_t kSize = 256;  // of a message
constexpr std::uint32_t kSlots = 2;   // a message is looked at while the next arrives
constexpr std::uint32_t kStride = 2 * kSlots * kSize;  // of a QP: what it sends, where it lands

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "many_qps: %s: %s\n", what, std::strerror(errno));
  _exit(1);
}
void check(bool held, const char* what) {
  if (!held) fail(what);
}
double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Shape {
  std::uint32_t processes = 2, neighbours = 1, qps = 100, rounds = 2;
  std::uint32_t hops() const { return processes == 2 ? 1 : neighbours; }
  std::uint32_t edges() const { return processes == 2 ? 1 : processes * neighbours; }
  // The two processes that edge `e` joins.
  std::uint32_t from(std::uint32_t e) const { return processes == 2 ? 0 : e / neighbours; }
  std::uint32_t to(std::uint32_t e) const {
    return processes == 2 ? 1 : (e / neighbours + 1 + e % neighbours) % processes;
  }
};

// What two ends of a QP tell each other.
struct Wire {
  ibv_gid gid{};
  std::uint32_t qpn = 0, psn = 0, rkey = 0;
  std::uint64_t at = 0;
};

// What a process tells of itself in the end.
struct Report {
  double open_us = 0, create_us = 0, connect_us = 0, exchange_us = 0;
  std::uint64_t qps = 0, messages = 0;
  std::uint64_t pss_kib_open = 0, pss_kib_connected = 0, pss_kib_used = 0;
};

template <typename T>
void tell(int fd, const std::vector<T>& values) {
  const char* at = reinterpret_cast<const char*>(values.data());
  for (std::size_t left = values.size() * sizeof(T); left > 0;) {
    const ssize_t count = write(fd, at, left);
    check(count > 0, "the other process has gone");
    at += count;
    left -= static_cast<std::size_t>(count);
  }
}
template <typename T>
std::vector<T> hear(int fd, std::size_t size) {
  std::vector<T> values(size);
  char* at = reinterpret_cast<char*>(values.data());
  for (std::size_t left = size * sizeof(T); left > 0;) {
    const ssize_t count = read(fd, at, left);
    check(count > 0, "the other process says nothing");
    at += count;
    left -= static_cast<std::size_t>(count);
  }
  return values;
}

// What this process has, shared pages by share.
std::uint64_t pss_kib() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;) {
    std::uint64_t value = 0;
    if (word == "Pss:" && in >> value) return value;
  }
  return 0;
}

std::uint8_t pattern(std::uint64_t seed, std::uint32_t at) {
  return static_cast<std::uint8_t>((seed * 0x9e3779b97f4a7c15u + at * 31) >> 16 ^ at);
}

class Process {
 public:
  // `line`: to the parent, who carries words between the processes.
  Process(const Shape& shape, std::uint32_t self, int line)
      : shape_(shape), self_(self), line_(line) {}
  Report run();

 private:
  void open();
  void create();
  void connect(const std::vector<Wire>& peers);
  void exchange(const std::vector<Wire>& peers);
  void post_receive(std::uint32_t q);
  void send(std::uint32_t q, std::uint32_t round, const Wire& peer);
  void look_at(std::uint32_t q, std::uint32_t round);
  void wait(Clock::time_point until);
  // A message's own pattern; `peer`: the other end's.
  std::uint64_t seed(std::uint32_t q, std::uint32_t round, bool peer) const {
    return (std::uint64_t{edge_[q]} << 40 | std::uint64_t{q_in_edge_[q]} << 20 | round << 1) +
           ((shape_.from(edge_[q]) == self_) != peer ? 1 : 0);
  }

  Shape shape_;
  std::uint32_t self_;
  int line_;
  Report report_;
  ibv_context* verbs_ = nullptr;
  mrc_context* context_ = nullptr;
  mrc_comp_channel* channel_ = nullptr;
  mrc_cq* cq_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<std::uint8_t> memory_;
  std::vector<std::uint32_t> edge_, q_in_edge_;  // by QP
  std::vector<mrc_qp*> qps_;
  int channel_fd_ = -1;
};

void Process::open() {
  ibv_device** const list = ibv_get_device_list(nullptr);
  check(list != nullptr, "ibv_get_device_list");
  for (ibv_device** device = list; *device != nullptr && verbs_ == nullptr; ++device) {
    if (std::strcmp(ibv_get_device_name(*device), "weft0") == 0) verbs_ = ibv_open_device(*device);
  }
  ibv_free_device_list(list);
  check(verbs_ != nullptr, "the device weft0 does not open");
  context_ = mrc_create_context(verbs_, nullptr);
  check(context_ != nullptr, "mrc_create_context");
  pd_ = ibv_alloc_pd(verbs_);
  check(pd_ != nullptr, "ibv_alloc_pd");
}

void Process::create() {
  for (std::uint32_t e = 0; e < shape_.edges(); ++e) {
    if (shape_.from(e) != self_ && shape_.to(e) != self_) continue;
    for (std::uint32_t i = 0; i < shape_.qps; ++i) {
      edge_.push_back(e);
      q_in_edge_.push_back(i);
    }
  }
  memory_.resize(edge_.size() * kStride);
  mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  check(mr_ != nullptr, "ibv_reg_mr");
  check(mrc_create_comp_channel(context_, &channel_) == 0, "mrc_create_comp_channel");
  check(mrc_get_comp_channel_fd(channel_, &channel_fd_) == 0, "mrc_get_comp_channel_fd");
  cq_ = mrc_create_cq(context_, static_cast<int>(edge_.size() * 8), nullptr, channel_, 0);
  check(cq_ != nullptr, "mrc_create_cq");
  for (std::size_t q = 0; q < edge_.size(); ++q) {
    mrc_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.pd = pd_;
    init.cap.max_send_wr = init.cap.max_recv_wr = 4;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    qps_.push_back(mrc_create_qp(context_, &init));
    check(qps_.back() != nullptr, "mrc_create_qp");
  }
}

void Process::connect(const std::vector<Wire>& peers) {
  for (std::size_t q = 0; q < qps_.size(); ++q) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    check(mrc_modify_qp(qps_[q], &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, nullptr, 0) == 0,
          "mrc_modify_qp to INIT");
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peers[q].gid;
    attr.dest_qp_num = peers[q].qpn;
    attr.rq_psn = peers[q].psn;
    check(mrc_modify_qp(qps_[q], &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                        nullptr, 0) == 0,
          "mrc_modify_qp to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = static_cast<std::uint32_t>(q);
    check(mrc_modify_qp(qps_[q], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, nullptr, 0) == 0,
          "mrc_modify_qp to RTS");
  }
}

void Process::post_receive(std::uint32_t q) {
  ibv_recv_wr work{}, *bad = nullptr;
  work.wr_id = q;
  check(mrc_post_recv(qps_[q], &work, &bad) == 0, "mrc_post_recv");
}

void Process::send(std::uint32_t q, std::uint32_t round, const Wire& peer) {
  const std::uint32_t slot = round % kSlots;
  std::uint8_t* const from = memory_.data() + std::size_t{q} * kStride + slot * kSize;
  for (std::uint32_t i = 0; i < kSize; ++i) from[i] = pattern(seed(q, round, false), i);
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(from), .length = kSize, .lkey = mr_->lkey};
  ibv_send_wr work{}, *bad = nullptr;
  work.wr_id = q;
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htobe32(round);
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = peer.at + (kSlots + slot) * kSize;
  work.wr.rdma.rkey = peer.rkey;
  check(mrc_post_send(qps_[q], &work, &bad) == 0, "mrc_post_send");
}

void Process::look_at(std::uint32_t q, std::uint32_t round) {
  const std::uint8_t* const at =
      memory_.data() + std::size_t{q} * kStride + (kSlots + round % kSlots) * kSize;
  for (std::uint32_t i = 0; i < kSize; ++i) {
    errno = EBADMSG;
    check(at[i] == pattern(seed(q, round, true), i), "a byte did not arrive as it was sent");
  }
}

// Asleep, until the CQ has news.
void Process::wait(Clock::time_point until) {
  pollfd news{.fd = channel_fd_, .events = POLLIN, .revents = 0};
  if (poll(&news, 1, 100) > 0) {
    mrc_cq* of = nullptr;
    void* program = nullptr;
    check(mrc_get_cq_event(channel_, &of, &program) == 0, "mrc_get_cq_event");
    mrc_ack_cq_events(of, 1);
    check(mrc_req_notify_cq(cq_, 0) == 0, "mrc_req_notify_cq");
  }
  errno = ETIMEDOUT;
  check(Clock::now() < until, "not all messages came");
}

// A QP goes on to its next round when the last one's message came and its own was acknowledged: so
// the two ends are never more than a round apart, and two slots are enough.
void Process::exchange(const std::vector<Wire>& peers) {
  struct State {
    std::uint32_t sent = 0, done = 0, received = 0;
  };
  std::vector<State> states(qps_.size());
  const auto until = Clock::now() + kPatience;
  const std::uint64_t wanted = std::uint64_t{qps_.size()} * shape_.rounds;
  std::uint64_t received = 0, done = 0;
  const auto go_on = [&](std::uint32_t q) {
    State& state = states[q];
    if (state.sent == shape_.rounds || state.done < state.sent || state.received < state.sent)
      return;
    send(q, state.sent++, peers[q]);
  };
  check(mrc_req_notify_cq(cq_, 0) == 0, "mrc_req_notify_cq");
  for (std::uint32_t q = 0; q < qps_.size(); ++q) go_on(q);
  while (received < wanted || done < wanted) {
    ibv_wc batch[32];
    const int count = mrc_poll_cq(cq_, 32, batch);
    check(count >= 0, "mrc_poll_cq");
    if (count == 0) wait(until);
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = batch[i];
      errno = EIO;
      check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
      const auto q = static_cast<std::uint32_t>(wc.wr_id);
      if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        const std::uint32_t round = be32toh(wc.imm_data);
        errno = EPROTO;
        check(round == states[q].received, "an immediate came out of turn");
        look_at(q, round);
        ++states[q].received;
        ++received;
        post_receive(q);
      } else {
        ++states[q].done;
        ++done;
      }
      go_on(q);
    }
  }
  report_.messages = received;
}

Report Process::run() {
  auto start = Clock::now();
  open();
  report_.open_us = us_since(start);
  report_.pss_kib_open = pss_kib();
  start = Clock::now();
  create();
  report_.create_us = us_since(start);
  report_.qps = qps_.size();
  std::vector<Wire> ours(qps_.size());
  for (std::size_t q = 0; q < qps_.size(); ++q) {
    check(ibv_query_gid(verbs_, 1, 3, &ours[q].gid) == 0, "ibv_query_gid");
    check(mrc_get_qpn(qps_[q], &ours[q].qpn) == 0, "mrc_get_qpn");
    ours[q].psn = static_cast<std::uint32_t>(q);
    ours[q].rkey = mr_->rkey;
    ours[q].at = reinterpret_cast<std::uintptr_t>(memory_.data()) + q * kStride;
  }
  tell(line_, ours);
  const std::vector<Wire> peers = hear<Wire>(line_, qps_.size());
  start = Clock::now();
  connect(peers);
  report_.connect_us = us_since(start);
  report_.pss_kib_connected = pss_kib();
  for (std::uint32_t q = 0; q < qps_.size(); ++q) {
    for (std::uint32_t i = 0; i < kSlots; ++i) post_receive(q);
  }
  tell<int>(line_, {1});
  hear<int>(line_, 1);  // all are ready
  start = Clock::now();
  exchange(peers);
  report_.exchange_us = us_since(start);
  report_.pss_kib_used = pss_kib();
  tell<int>(line_, {1});
  hear<int>(line_, 1);  // all have theirs
  for (mrc_qp* const qp : qps_) check(mrc_destroy_qp(qp) == 0, "mrc_destroy_qp");
  check(mrc_destroy_cq(cq_) == 0, "mrc_destroy_cq");
  check(mrc_destroy_comp_channel(channel_) == 0, "mrc_destroy_comp_channel");
  check(ibv_dereg_mr(mr_) == 0 && ibv_dealloc_pd(pd_) == 0, "ibv_dereg_mr");
  check(mrc_destroy_context(context_) == 0, "mrc_destroy_context");
  check(ibv_close_device(verbs_) == 0, "ibv_close_device");
  return report_;
}

// Carries the words of the processes to each other.
std::vector<Report> lead(const Shape& shape, const std::vector<int>& lines) {
  std::vector<std::vector<std::uint32_t>> edges_of(shape.processes);
  for (std::uint32_t e = 0; e < shape.edges(); ++e) {
    edges_of[shape.from(e)].push_back(e);
    edges_of[shape.to(e)].push_back(e);
  }
  const auto bundle = static_cast<std::ptrdiff_t>(shape.qps);
  struct Edge {
    std::vector<Wire> from, to;
  };
  std::vector<Edge> edges(shape.edges());
  for (std::uint32_t p = 0; p < shape.processes; ++p) {
    std::sort(edges_of[p].begin(), edges_of[p].end());
    const auto all = hear<Wire>(lines[p], edges_of[p].size() * shape.qps);
    auto at = all.begin();
    for (const std::uint32_t e : edges_of[p]) {
      (shape.from(e) == p ? edges[e].from : edges[e].to).assign(at, at + bundle);
      at += bundle;
    }
  }
  for (std::uint32_t p = 0; p < shape.processes; ++p) {
    for (const std::uint32_t e : edges_of[p])
      tell(lines[p], shape.from(e) == p ? edges[e].to : edges[e].from);
  }
  for (int barrier = 0; barrier < 2; ++barrier) {
    for (const int line : lines) hear<int>(line, 1);
    for (const int line : lines) tell<int>(line, {1});
  }
  std::vector<Report> reports;
  for (const int line : lines) reports.push_back(hear<Report>(line, 1)[0]);
  return reports;
}

template <typename Of>
double mean(const std::vector<Report>& reports, Of of) {
  double sum = 0;
  for (const Report& report : reports) sum += static_cast<double>(of(report));
  return sum / static_cast<double>(reports.size());
}

void show(const Shape& shape, const std::vector<Report>& reports, double seconds) {
  const double qps = mean(reports, [](const Report& r) { return r.qps; });
  double exchange_us = 0;
  for (const Report& report : reports) exchange_us = std::max(exchange_us, report.exchange_us);
  std::printf(
      "{\"processes\": %u, \"qps\": %.0f, \"open_us\": %.0f, \"create_us\": %.2f, "
      "\"connect_us\": %.2f, \"pss_kib_open\": %.0f, \"pss_kib_connected\": %.0f, "
      "\"pss_kib_used\": %.0f, \"messages\": %.0f, \"exchange_ms\": %.1f, \"seconds\": %.2f}\n",
      shape.processes, qps, mean(reports, [](const Report& r) { return r.open_us; }),
      mean(reports, [](const Report& r) { return r.create_us; }) / qps,
      mean(reports, [](const Report& r) { return r.connect_us; }) / qps,
      mean(reports, [](const Report& r) { return r.pss_kib_open; }),
      mean(reports, [](const Report& r) { return r.pss_kib_connected; }),
      mean(reports, [](const Report& r) { return r.pss_kib_used; }),
      mean(reports, [](const Report& r) { return r.messages; }) *
          static_cast<double>(reports.size()),
      exchange_us / 1000, seconds);
}

std::uint32_t number(const char* text, std::uint32_t least, std::uint32_t most) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*end != '\0' || value < least || value > most) {
    std::fprintf(stderr, "many_qps: %s: expected %u to %u\n", text, least, most);
    std::exit(2);
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "usage: many_qps PROCESSES NEIGHBOURS QPS ROUNDS\n");
    return 2;
  }
  Shape shape;
  shape.processes = number(words[1], 2, 128);
  shape.neighbours = number(words[2], 1, std::max((shape.processes - 1) / 2, 1u));
  shape.qps = number(words[3], 1, 1024 / shape.hops());
  shape.rounds = number(words[4], 1, 1u << 16);
  const auto start = Clock::now();
  std::vector<int> lines;
  std::vector<pid_t> children;
  const timeval patience{.tv_sec = 90, .tv_usec = 0};
  for (std::uint32_t p = 0; p < shape.processes; ++p) {
    int pair[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
    for (const int end : pair)
      setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the parent
      close(pair[0]);
      for (const int line : lines) close(line);
      tell<Report>(pair[1], {Process(shape, p, pair[1]).run()});
      _exit(0);
    }
    close(pair[1]);
    lines.push_back(pair[0]);
    children.push_back(child);
  }
  const std::vector<Report> reports = lead(shape, lines);
  bool all = true;
  for (const pid_t child : children) {
    int status = -1;
    all = waitpid(child, &status, 0) == child && status == 0 && all;
  }
  if (!all) return 1;
  show(shape, reports, us_since(start) / 1e6);
  return 0;
}
