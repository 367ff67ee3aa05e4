// Library: the functions of some lib_mrc.so, ours or a vendor's, by name.
//
// A value: copies call the same functions. Any function may be missing; a caller must check the
// functions that it needs. Verbs functions are looked up in the library and its dependencies, and
// otherwise in libibverbs.so.1.
#pragma once

#include <infiniband/verbs.h>
#include <mrc/mrc.h>
#include <mrc/mrc_ctl.h>

#include <string>
#include <vector>

#include "base/assert.h"
#include "base/result.h"

// verbs.h defines macros with these names, which would hide the functions.
#undef ibv_reg_mr
#undef ibv_query_port

namespace weft::mrclib {

template <typename F>
class Function;
template <typename R, typename... A, bool N>
class Function<R(A...) noexcept(N)> {
 public:
  explicit Function(const char* name) : name_(name) {}
  // REQUIRES is_present().
  R operator()(A... arguments) const {
    WEFT_ASSERT(pointer_ != nullptr);
    return pointer_(arguments...);
  }
  const char* name() const { return name_; }
  bool is_present() const { return pointer_ != nullptr; }
  void bind(void* symbol) { pointer_ = reinterpret_cast<R (*)(A...) noexcept(N)>(symbol); }

 private:
  const char* name_;
  R (*pointer_)(A...) noexcept(N) = nullptr;
};

// The 27 functions of mrc.h and 14 of mrc_ctl.h. Not formatted: clang-format never reaches a stable
// result here.
// clang-format off
#define WEFT_MRC_FUNCTIONS(X) \
  X(mrc_query_version) X(mrc_query_device) X(mrc_query_device_ex) X(mrc_create_context) \
  X(mrc_destroy_context) X(mrc_create_comp_channel) X(mrc_get_comp_channel_fd) \
  X(mrc_destroy_comp_channel) X(mrc_create_cq) X(mrc_poll_cq) X(mrc_destroy_cq) \
  X(mrc_req_notify_cq) X(mrc_get_cq_event) X(mrc_ack_cq_events) X(mrc_create_qp_hint) \
  X(mrc_destroy_qp_hint) X(mrc_query_qp_hint) X(mrc_modify_qp_hint) X(mrc_create_qp) \
  X(mrc_destroy_qp) X(mrc_query_qp) X(mrc_modify_qp) X(mrc_get_qpn) X(mrc_post_recv) \
  X(mrc_post_send) X(mrc_get_async_event) X(mrc_ack_async_event)
#define WEFT_CTL_FUNCTIONS(X) \
  X(mrc_ctl_query_device) X(mrc_ctl_query_device_ex) X(mrc_ctl_query_version) \
  X(mrc_ctl_query_port) X(mrc_ctl_modify_port) X(mrc_ctl_modify_ev_fmt_profile) \
  X(mrc_ctl_query_ev_fmt_profile) X(mrc_ctl_modify_ev_profile) X(mrc_ctl_query_ev_profile) \
  X(mrc_ctl_modify_cc_profile) X(mrc_ctl_query_cc_profile) X(mrc_ctl_create_ev_event_cq) \
  X(mrc_ctl_poll_ev_event) X(mrc_ctl_ep_batch_send_wait)
// clang-format on
// The verbs functions that MRC programs need. Their types are written out, because macros of
// verbs.h hide some of the names.
#define WEFT_VERBS_FUNCTIONS(X)                                      \
  X(ibv_get_device_list, ibv_device**(int*))                         \
  X(ibv_free_device_list, void(ibv_device**))                        \
  X(ibv_get_device_name, const char*(ibv_device*))                   \
  X(ibv_open_device, ibv_context*(ibv_device*))                      \
  X(ibv_close_device, int(ibv_context*))                             \
  X(ibv_query_device, int(ibv_context*, ibv_device_attr*))           \
  X(ibv_query_port, int(ibv_context*, std::uint8_t, ibv_port_attr*)) \
  X(ibv_query_gid, int(ibv_context*, std::uint8_t, int, ibv_gid*))   \
  X(ibv_alloc_pd, ibv_pd*(ibv_context*))                             \
  X(ibv_dealloc_pd, int(ibv_pd*))                                    \
  X(ibv_reg_mr, ibv_mr*(ibv_pd*, void*, std::size_t, int))           \
  X(ibv_dereg_mr, int(ibv_mr*))

class Library {
 public:
  // Loads the file; it stays loaded until the process ends. Errors: kSystem, with the loader's
  // reason.
  static Result<Library> open(const std::string& path);
  // A Library without any function.
  Library() = default;

#define WEFT_MEMBER(name) Function<decltype(::name)> name{#name};
  WEFT_MRC_FUNCTIONS(WEFT_MEMBER)
  WEFT_CTL_FUNCTIONS(WEFT_MEMBER)
#undef WEFT_MEMBER
#define WEFT_MEMBER(name, type) Function<type> name{#name};
  WEFT_VERBS_FUNCTIONS(WEFT_MEMBER)
#undef WEFT_MEMBER

  // True if the library has at least one function of mrc.h.
  bool has_mrc() const;
  // Names of the functions of mrc.h that are missing.
  std::vector<std::string> missing_mrc() const;
  std::vector<std::string> missing_ctl() const;
  std::vector<std::string> missing_verbs() const;
};

}  // namespace weft::mrclib
