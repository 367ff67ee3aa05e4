#include "conformance/end.h"

#include <algorithm>
#include <cerrno>
#include <thread>

namespace weft::conformance {

ibv_context* open_device(Session& session) {
  const std::string& wanted = session.options().device;
  const mrclib::FoundDevice found = mrclib::find_device(session.library(), wanted);
  if (!found.has_list) works("ibv_get_device_list", nullptr);
  if (found.verbs == nullptr) {
    fail(wanted.empty() ? "a device that speaks MRC" : "an MRC device " + wanted,
         found.names.empty() ? "no device at all" : "only " + found.names);
  }
  return found.verbs;
}

Host::Host(Session& on) : session(on), library(on.library()) {
  verbs = open_device(session);
  int supported = 0;
  works("mrc_query_device", library.mrc_query_device(verbs, &attr, &supported));
  context = library.mrc_create_context(verbs, nullptr);
  if (context == nullptr && errno == EBUSY && session.shares_device())
    skip("the device is for one process at a time");
  works("mrc_create_context", context);
  works("ibv_alloc_pd", pd = library.ibv_alloc_pd(verbs));
  works("ibv_query_gid", library.ibv_query_gid(verbs, 1, session.options().gid_index, &gid));
}

Host::~Host() {
  if (pd != nullptr) library.ibv_dealloc_pd.call_if_present(pd);
  if (context != nullptr) library.mrc_destroy_context.call_if_present(context);
  if (verbs != nullptr) library.ibv_close_device.call_if_present(verbs);
}

End::End(Host& on, const EndOptions& with)
    : host(on), library(on.library), options(with), memory(with.bytes) {
  works("ibv_reg_mr",
        mr = library.ibv_reg_mr(host.pd, memory.data(), memory.size(), options.access));
  works("mrc_create_cq", send_cq = library.mrc_create_cq(host.context, options.cq_entries, this,
                                                         options.channel, 0));
  works("mrc_create_cq", receive_cq = library.mrc_create_cq(host.context, options.cq_entries, this,
                                                            options.channel, 0));
  mrc_qp_init_attr init =
      mrclib::qp_init({.pd = host.pd, .send_cq = send_cq, .receive_cq = receive_cq},
                      {.sends = options.depth,
                       .receives = options.depth,
                       .pieces = options.pieces,
                       .inline_bytes = options.inline_bytes});
  init.sq_sig_all = options.signal_all;
  init.send_ops_flags = options.send_ops;
  works("mrc_create_qp", qp = library.mrc_create_qp(host.context, &init));
}

End::~End() {
  if (qp != nullptr) library.mrc_destroy_qp.call_if_present(qp);
  if (send_cq != nullptr) library.mrc_destroy_cq.call_if_present(send_cq);
  if (receive_cq != nullptr) library.mrc_destroy_cq.call_if_present(receive_cq);
  if (mr != nullptr) library.ibv_dereg_mr.call_if_present(mr);
}

Address End::address() const {
  return {.gid = host.gid,
          .qpn = qpn(),
          .psn = options.psn,
          .rkey = mr->rkey,
          .at = reinterpret_cast<std::uintptr_t>(memory.data()),
          .size = memory.size()};
}

std::uint32_t End::qpn() const {
  std::uint32_t out = 0;
  works("mrc_get_qpn", library.mrc_get_qpn(qp, &out));
  return out;
}

ibv_qp_state End::state() const {
  ibv_qp_attr attr{};
  works("mrc_query_qp", library.mrc_query_qp(qp, &attr, IBV_QP_STATE, nullptr, 0, nullptr));
  return attr.qp_state;
}

namespace {

// A wrapper for mrc_modify_qp, which takes pointers that are not const.
int modify(const End& end, mrclib::QpChange change, const mrc_qp_attr* mrc = nullptr,
           int mrc_mask = 0) {
  mrc_qp_attr copy{};
  if (mrc != nullptr) copy = *mrc;
  return end.library.mrc_modify_qp(end.qp, &change.attr, change.mask,
                                   mrc != nullptr ? &copy : nullptr, mrc_mask);
}

}  // namespace

int End::to_init(int access, const mrc_qp_attr* mrc, int mask) {
  return modify(*this, mrclib::to_init({.access = access, .port = 0}), mrc, mask);
}

int End::to_rtr(const Address& peer, ibv_mtu mtu, const mrc_qp_attr* mrc, int mask) {
  return modify(*this,
                mrclib::to_rtr({.gid = peer.gid,
                                .qpn = peer.qpn,
                                .psn = peer.psn,
                                .mtu = mtu,
                                .gid_index = host.session.options().gid_index}),
                mrc, mask);
}

int End::to_rts(const mrc_qp_attr* mrc, int mask) {
  return modify(*this, mrclib::to_rts(options.psn), mrc, mask);
}

int End::to(ibv_qp_state state) { return modify(*this, mrclib::to_state(state)); }

void End::connect(const Address& peer, ibv_mtu mtu) {
  works("mrc_modify_qp to INIT", to_init());
  works("mrc_modify_qp to RTR", to_rtr(peer, mtu));
  works("mrc_modify_qp to RTS", to_rts());
}

int End::post(const Address& peer, const Write& write) {
  ibv_sge piece{};
  ibv_send_wr wr{}, *bad = nullptr;
  mrclib::set_write({.id = write.id,
                     .from = reinterpret_cast<std::uintptr_t>(memory.data()) + write.from,
                     .to = peer.at + write.to,
                     .size = write.size,
                     .lkey = mr->lkey,
                     .rkey = peer.rkey,
                     .with_immediate = write.immediate.has_value(),
                     .immediate = write.immediate.value_or(0),
                     .flags = write.flags},
                    wr, piece);
  return library.mrc_post_send(qp, &wr, &bad);
}

int End::post_receive(std::uint64_t id) {
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  return library.mrc_post_recv(qp, &wr, &bad);
}

void End::write(const Address& peer, const Write& what) {
  works("mrc_post_send", post(peer, what));
}
void End::receive(std::uint64_t id) { works("mrc_post_recv", post_receive(id)); }

ibv_wc End::wait(mrc_cq* cq) const {
  ibv_wc wc{};
  while (!host.session.is_over()) {
    const int count = library.mrc_poll_cq(cq, 1, &wc);
    if (count == 1) return wc;
    if (count < 0) fail("mrc_poll_cq works", fmt::format("it returned {}", count));
    std::this_thread::yield();
  }
  fail("a completion", "none came in time");
}

void End::expect_no_completion(mrc_cq* cq, milliseconds how_long) const {
  const auto until = Clock::now() + how_long;
  while (Clock::now() < until) {
    ibv_wc wc{};
    if (library.mrc_poll_cq(cq, 1, &wc) == 0) continue;
    fail("no completion yet",
         fmt::format("{} of work request {}", status_name(wc.status), wc.wr_id));
  }
}

void End::expect_qp_state(ibv_qp_state wanted) const {
  ibv_wc wc{};
  while (state() != wanted) {
    if (host.session.is_over())
      equal("QP state", static_cast<int>(state()), static_cast<int>(wanted));
    library.mrc_poll_cq(receive_cq, 0, &wc);
    std::this_thread::yield();
  }
}

void completed_as(const ibv_wc& wc, ibv_wc_status status, std::uint64_t id) {
  if (wc.status == status && wc.wr_id == id) return;
  fail(fmt::format("{} of work request {}", status_name(status), id),
       fmt::format("{} of {}", status_name(wc.status), wc.wr_id));
}

namespace {
std::uint8_t pattern(std::uint64_t seed, std::uint64_t at) {
  return static_cast<std::uint8_t>((seed * 0x9e3779b97f4a7c15u + at * 31) >> 16 ^ at);
}
}  // namespace

void fill(std::uint8_t* to, std::size_t size, std::uint64_t seed) {
  for (std::size_t i = 0; i < size; ++i) to[i] = pattern(seed, i);
}
std::size_t first_wrong(const std::uint8_t* at, std::size_t size, std::uint64_t seed) {
  for (std::size_t i = 0; i < size; ++i) {
    if (at[i] != pattern(seed, i)) return i;
  }
  return size;
}
void is_pattern(const std::uint8_t* at, std::size_t size, std::uint64_t seed) {
  const std::size_t wrong = first_wrong(at, size, seed);
  if (wrong != size)
    fail(fmt::format("{} bytes as they were sent", size), fmt::format("byte {} differs", wrong));
}

}  // namespace weft::conformance
