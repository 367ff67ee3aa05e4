#include "net_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "os/address.h"
#include "os/clock.h"

namespace weft {
namespace {

enum class Order : std::uint8_t { kSlot, kCreateQp, kConnect };
constexpr std::size_t kOrderMax = 1 + engine::Hello::kSize + engine::RegionHello::kSize;

// Two writes are always posted, so that a SIGKILL interrupts one of them.
constexpr std::uint32_t kWriteSize = 256u << 10;
constexpr std::uint32_t kUnderWay = 2;

QpHello hello_of(ConstBytes words) {
  return {.hello = engine::Hello::from_bytes(words.first<engine::Hello::kSize>()).value(),
          .region = engine::RegionHello::from_bytes(words.subspan(engine::Hello::kSize)).value()};
}

// The code of the child process. On any failure the process exits, and the test gets no answer from
// it.
class Work {
 public:
  Work(const engine::NetRdmaOptions& options, NetProcess::Does does, int socket)
      : end_(engine::NetRdma::open(options).value()),
        writes_(does == NetProcess::Does::kWrites),
        socket_(socket) {}

  [[noreturn]] void run() {
    for (;;) {
      end_->world().step(os::clock_now() + Duration::ms(1));
      std::array<std::byte, kOrderMax> order;
      const ssize_t got = recv(socket_, order.data(), order.size(), MSG_DONTWAIT);
      if (got == 0) _exit(0);
      if (got > 0) answer(ConstBytes(order).first(static_cast<std::size_t>(got)));
      std::array<transport::Completion, 32> done;
      while (end_->endpoint().poll_completions(done) == done.size()) {
      }
      for (const Qp& qp : qps_) write_more(qp);
    }
  }

 private:
  struct Qp {
    std::vector<std::byte> region = std::vector<std::byte>(NetProcess::kRegion);
    rdma::Group group;
    QpHello peer{};
    bool connected = false;
  };

  void answer(ConstBytes order) {
    const ConstBytes body = order.subspan(1);
    switch (static_cast<Order>(order[0])) {
      case Order::kSlot: {
        std::array<std::byte, 2> slot;
        base::store16(Bytes(slot), 0, end_->world().process());
        return say(slot);
      }
      case Order::kCreateQp: {
        Qp& qp = qps_.emplace_back();
        qp.group = end_->create_group({}).value();
        const auto region = end_->add_region(qp.region).value();
        auto words = end_->describe(qp.group.id);
        const auto more = end_->describe_region(region.id);
        words.insert(words.end(), more.begin(), more.end());
        return say(words);
      }
      case Order::kConnect: {
        Qp& qp = qps_.back();
        qp.peer = hello_of(body);
        if (!end_->connect(os::clock_now(), qp.group.id, body.first(engine::Hello::kSize)))
          _exit(1);
        qp.connected = true;
        return say(order.first(1));
      }
    }
  }
  void say(ConstBytes words) {
    if (send(socket_, words.data(), words.size(), MSG_NOSIGNAL) < 0) _exit(1);
  }
  transport::Qpn qpn_of(const Qp& qp) const { return end_->qpn(qp.group.first_qp); }
  // After a failure a QP accepts no more writes. A failure is expected, because tests kill peers.
  void write_more(const Qp& qp) {
    if (!writes_ || !qp.connected) return;
    while (end_->endpoint().view(qpn_of(qp)).incomplete < kUnderWay) {
      const auto posted =
          end_->endpoint().post_write(os::clock_now(), qpn_of(qp),
                                      {.local_at = reinterpret_cast<std::uintptr_t>(source_.data()),
                                       .remote_at = qp.peer.region.at,
                                       .rkey = qp.peer.region.rkey,
                                       .size = kWriteSize});
      if (!posted) return;
    }
  }

  std::unique_ptr<engine::NetRdma> end_;
  std::vector<std::byte> source_ = std::vector<std::byte>(kWriteSize, std::byte{0x3c});
  std::vector<Qp> qps_;
  bool writes_;
  int socket_;
};

std::vector<std::byte> order_of(Order order, const QpHello* peer = nullptr) {
  std::vector<std::byte> out{static_cast<std::byte>(order)};
  if (peer == nullptr) return out;
  const auto hello = peer->hello.to_bytes();
  const auto region = peer->region.to_bytes();
  out.insert(out.end(), hello.begin(), hello.end());
  out.insert(out.end(), region.begin(), region.end());
  return out;
}

}  // namespace

std::vector<Ipv6> own_planes() {
  const auto pid = static_cast<std::uint32_t>(getpid());
  std::vector<Ipv6> planes;
  for (std::uint8_t p = 1; p <= 4; ++p) {
    planes.push_back(base::ipv4(127, static_cast<std::uint8_t>(100 + pid % 20),
                                static_cast<std::uint8_t>(pid / 20), p));
  }
  return planes;
}

NetProcess::NetProcess(const engine::NetRdmaOptions& options, Does does) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    ADD_FAILURE() << "socketpair";
    return;
  }
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    Work(options, does, ends[1]).run();
  }
  close(ends[1]);
  socket_ = ends[0];
  const auto slot = ask(order_of(Order::kSlot));
  if (slot.size() == 2) slot_ = base::load16(ConstBytes(slot), 0);
}

void NetProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

NetProcess::~NetProcess() {
  kill();
  if (socket_ >= 0) close(socket_);
}

std::vector<std::byte> NetProcess::ask(const std::vector<std::byte>& question) {
  std::vector<std::byte> answer(kOrderMax);
  const bool asked = send(socket_, question.data(), question.size(), MSG_NOSIGNAL) > 0;
  const ssize_t got = asked ? recv(socket_, answer.data(), answer.size(), 0) : -1;
  EXPECT_GT(got, 0) << "the process ended early";
  answer.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return answer;
}

QpHello NetProcess::create_qp() {
  const auto answer = ask(order_of(Order::kCreateQp));
  if (answer.size() != kOrderMax - 1) return {};
  return hello_of(answer);
}

void NetProcess::connect(const QpHello& peer) { ask(order_of(Order::kConnect, &peer)); }

void connect(NetProcess& a, NetProcess& b) {
  const QpHello hello_a = a.create_qp(), hello_b = b.create_qp();
  a.connect(hello_b);
  b.connect(hello_a);
}

}  // namespace weft
