// One end of a QP as an application uses it, through the library under test. Host has device,
// context and protection domain; End has memory, CQs and a QP on a Host. Destructors destroy
// everything in order and check nothing: the tests of destroy functions call these functions
// themselves.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/psn.h"
#include "conformance/session.h"
#include "mrclib/set_up.h"

namespace weft::conformance {

// What the other end must know about an end of a QP, exchanged outside of MRC.
struct Address {
  ibv_gid gid{};
  std::uint32_t qpn = 0, psn = 0, rkey = 0;
  std::uint64_t at = 0, size = 0;
};

class Host {
 public:
  // Throws Failure if there is no such device, or if it cannot be opened.
  explicit Host(Session& session);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  Session& session;
  const Library& library;
  ibv_context* verbs = nullptr;
  mrc_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_gid gid{};
  mrc_device_attr attr{};
};

// Opens the device that the options name. Throws Failure.
ibv_context* open_device(Session& session);

using mrclib::kRemoteWrite;

struct EndOptions {
  std::size_t bytes = 1 << 20;
  std::uint32_t depth = 128, pieces = 1, inline_bytes = 0;
  int signal_all = 0;
  std::uint64_t send_ops = 0;
  mrc_comp_channel* channel = nullptr;
  int cq_entries = 512;
  int access = kRemoteWrite;
  std::uint32_t psn = 0x123456;
};

class End {
 public:
  explicit End(Host& on, const EndOptions& options = {});
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  Host& host;
  const Library& library;
  EndOptions options;
  std::vector<std::uint8_t> memory;
  ibv_mr* mr = nullptr;
  mrc_cq *send_cq = nullptr, *receive_cq = nullptr;
  mrc_qp* qp = nullptr;

  Address address() const;
  std::uint32_t qpn() const;
  ibv_qp_state state() const;

  // Each function returns the result of mrc_modify_qp.
  int to_init(int access = kRemoteWrite, const mrc_qp_attr* mrc = nullptr, int mask = 0);
  int to_rtr(const Address& peer, ibv_mtu mtu = IBV_MTU_1024, const mrc_qp_attr* mrc = nullptr,
             int mask = 0);
  int to_rts(const mrc_qp_attr* mrc = nullptr, int mask = 0);
  int to(ibv_qp_state state);
  // Brings the QP to RTS. Throws Failure.
  void connect(const Address& peer, ibv_mtu mtu = IBV_MTU_1024);

  struct Write {
    std::uint64_t from = 0, to = 0;  // offsets in the memory of the two ends
    std::uint32_t size = 0;
    std::uint64_t id = 0;
    unsigned flags = IBV_SEND_SIGNALED;
    std::optional<std::uint32_t> immediate{};
  };
  // These return the library's result.
  int post(const Address& peer, const Write& write);
  int post_receive(std::uint64_t id);
  // As above, but they throw Failure on an error.
  void write(const Address& peer, const Write& write);
  void receive(std::uint64_t id);

  // The next completion of `cq`. Throws Failure if none arrives.
  ibv_wc wait(mrc_cq* cq) const;
  ibv_wc wait_send() const { return wait(send_cq); }
  ibv_wc wait_receive() const { return wait(receive_cq); }
  // Throws Failure if a completion arrives within this time.
  void expect_no_completion(mrc_cq* cq, milliseconds how_long) const;
  void expect_qp_state(ibv_qp_state state) const;
};

// Two ends on one host, connected to each other.
struct Pair {
  Host host;
  End a, b;
  explicit Pair(Session& session, const EndOptions& options = {})
      : host(session), a(host, options), b(host, options) {
    const Address of_a = a.address(), of_b = b.address();
    a.connect(of_b);
    b.connect(of_a);
  }
};

// Throws Failure unless `wc` has this status and id.
void completed_as(const ibv_wc& wc, ibv_wc_status status, std::uint64_t id);

// A pattern of bytes, different for each seed. first_wrong() returns `size` if all bytes are right.
void fill(std::uint8_t* to, std::size_t size, std::uint64_t seed);
std::size_t first_wrong(const std::uint8_t* at, std::size_t size, std::uint64_t seed);
void is_pattern(const std::uint8_t* at, std::size_t size, std::uint64_t seed);

}  // namespace weft::conformance
