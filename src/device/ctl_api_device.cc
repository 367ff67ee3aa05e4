// Implements mrc_ctl.h: API versions, the device, its ports, CC profiles.
#include <string_view>

#include "device/ctl_api.h"

using namespace weft;
using namespace weft::control;
using namespace weft::device;

namespace {

constexpr unsigned kCcMask = 0xf | kVendorBit;
const char* algorithms[] = {kNsccName, nullptr};

int query_device(ibv_context* context, mrc_ctl_device_attr* attr) {
  if (context == nullptr || attr == nullptr) return EINVAL;
  SoftwareContext* const ours = SoftwareContext::of(context);
  if (ours == nullptr) return EOPNOTSUPP;
  ControllerState& state = ours->device.controller();
  const auto model = state.snapshot();
  if (!model) return code_of(model.error());
  *attr = {};
  attr->mrc_ctl_protocol_version = MRC_CTL_PROTOCOL_VERSION_1;
  attr->ev.ev_max_fmt_profiles = kFormatProfilesMax;
  attr->ev.ev_max_profiles = kEvProfilesMax;
  attr->ev.ev_max_count = kEvsMax;
  attr->ev.ev_free_count = kEvsMax - ev_count(**model);
  attr->ev.ev_max_count_profile = kEvsPerProfileMax;
  attr->ev.ev_count_align = 1;
  attr->ev.ev_max_width = fabric::kEvBits;
  attr->ev.ev_fmt_mode_mask =
      MRC_CTL_EV_FMT_MODE_STEV | MRC_CTL_EV_FMT_MODE_SRV6 | MRC_CTL_EV_FMT_MODE_UDP;
  attr->ev.ev_mode_mask = MRC_CTL_EV_MODE_AUTO | MRC_CTL_EV_MODE_EXP | MRC_CTL_EV_MODE_GEN;
  attr->cc.cc_max_profiles = kCcProfilesMax;
  attr->cc.algorithms = algorithms;
  attr->phy_port_mask = state.shape().port_mask;
  attr->opt_attr = MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE |
                   MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE | MRC_CTL_OPT_CAP_EV_EVENT |
                   MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT | MRC_CTL_OPT_CAP_EP_OP_EV_PROBE;
  return 0;
}

NsccSettings settings_from(const mrc_ctl_cc_nscc_cfg& cfg) {
  return {.disable_qa = cfg.disable_qa != 0,
          .adjust_bytes = cfg.adjust_bytes_threshold,
          .adjust_period_ns = cfg.adjust_period_threshold,
          .base_rtt_ns = cfg.base_rtt,
          .eta = cfg.eta,
          .fi = cfg.fi,
          .fi_scale = cfg.fi_scale,
          .gamma = cfg.gamma,
          .max_md_jump = cfg.max_md_jump,
          .cwnd_bytes_max = cfg.max_cwnd,
          .qa_gate = cfg.qa_gate,
          .qa_threshold_ns = cfg.qa_threshold,
          .target_delay_ns = cfg.target_delay};
}

mrc_ctl_cc_nscc_cfg to_api(const NsccSettings& settings) {
  mrc_ctl_cc_nscc_cfg cfg{};
  cfg.disable_qa = settings.disable_qa ? 1 : 0;
  cfg.adjust_bytes_threshold = settings.adjust_bytes;
  cfg.adjust_period_threshold = settings.adjust_period_ns;
  cfg.base_rtt = settings.base_rtt_ns;
  cfg.eta = settings.eta;
  cfg.fi = settings.fi;
  cfg.fi_scale = settings.fi_scale;
  cfg.gamma = settings.gamma;
  cfg.max_md_jump = settings.max_md_jump;
  cfg.max_cwnd = settings.cwnd_bytes_max;
  cfg.qa_gate = settings.qa_gate;
  cfg.qa_threshold = settings.qa_threshold_ns;
  cfg.target_delay = settings.target_delay_ns;
  return cfg;
}

int cc_change(const mrc_ctl_cc_profile_attr& attr, int mask, CcChange& out) {
  if ((mask & MRC_CTL_CC_PROFILE_STATE) != 0) {
    out.state = profile_state(raw(attr.profile_state));
    if (!out.state) return EINVAL;
  }
  if ((mask & MRC_CTL_CC_PROFILE_CUR_STATE) != 0) {
    out.cur_state = profile_state(raw(attr.cur_profile_state));
    if (!out.cur_state) return EINVAL;
  }
  if ((mask & MRC_CTL_CC_PROFILE_ALGORITHM) != 0) {
    if (attr.algorithm != nullptr && std::string_view(attr.algorithm) != kNsccName) return EINVAL;
    out.algorithm = attr.algorithm == nullptr ? CcAlgorithm::kNone : CcAlgorithm::kNscc;
  }
  if ((mask & MRC_CTL_CC_PROFILE_CONFIG) != 0) {
    out.config_empty = attr.cc_config == nullptr;
    if (!out.config_empty) {
      out.nscc = settings_from(*static_cast<const mrc_ctl_cc_nscc_cfg*>(attr.cc_config));
    }
  }
  if ((mask & MRC_CTL_CC_PROFILE_VENDOR_CFG) != 0) out.vendor = vendor_from(attr.vendor_cfg);
  return 0;
}

// Fills the program's structure, if it gave one. Otherwise fills a structure of this thread, which
// stays valid until this thread calls the function again.
void query_config(const CcProfile& profile, mrc_ctl_cc_profile_attr& attr) {
  static thread_local mrc_ctl_cc_nscc_cfg own;
  if (!profile.nscc) {
    attr.cc_config = nullptr;
    return;
  }
  auto* const to = attr.cc_config == nullptr
                       ? &own
                       : static_cast<mrc_ctl_cc_nscc_cfg*>(const_cast<void*>(attr.cc_config));
  *to = to_api(*profile.nscc);
  attr.cc_config = to;
}

}  // namespace

extern "C" {

void mrc_ctl_query_version(std::uint32_t* current, std::uint32_t* last, std::uint32_t* vendor,
                           std::uint32_t* last_vendor) noexcept {
  if (current != nullptr) *current = MRC_CTL_API_CURRENT_VERSION;
  if (last != nullptr) *last = MRC_CTL_API_LAST_SUPPORTED_VERSION;
  if (vendor != nullptr) *vendor = MRC_CTL_API_VER(1, 0, 0);
  if (last_vendor != nullptr) *last_vendor = 0;
}

int mrc_ctl_query_device(ibv_context* context, mrc_ctl_device_attr* attr) noexcept {
  return returned(guarded([&] { return query_device(context, attr); }), fail_minus_one);
}

int mrc_ctl_query_device_ex(ibv_context* context, mrc_context*, mrc_ctl_device_attr* attr,
                            int* supported) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr || supported == nullptr) return EINVAL;
    *supported = SoftwareContext::of(context) != nullptr ? 1 : 0;
    if (*supported == 0) {
      *attr = {};
      return 0;
    }
    return query_device(context, attr);
  });
  return returned(error, fail_minus_one);
}

int mrc_ctl_query_port(mrc_context* context, std::uint8_t port, mrc_ctl_port_attr* attr,
                       int mask) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr ||
        !has_only_known_bits(mask, MRC_CTL_PORT_ADMIN_STATE)) {
      return EINVAL;
    }
    ControllerState& state = controller(*context);
    const auto model = state.snapshot();
    if (!model) return code_of(model.error());
    const auto enabled = is_port_enabled(**model, state.shape(), port);
    if (!enabled) return code_of(enabled.error());
    if ((mask & MRC_CTL_PORT_ADMIN_STATE) != 0) {
      attr->port_admin_state = *enabled ? MRC_CTL_PORT_ADMIN_ENABLED : MRC_CTL_PORT_ADMIN_DISABLED;
    }
    return 0;
  });
  return returned(error, fail_minus_one);
}

int mrc_ctl_modify_port(mrc_context* context, std::uint8_t port, mrc_ctl_port_attr* attr,
                        int mask) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr ||
        !has_only_known_bits(mask, MRC_CTL_PORT_ADMIN_STATE)) {
      return EINVAL;
    }
    const std::uint32_t wanted = raw(attr->port_admin_state);
    if ((mask & MRC_CTL_PORT_ADMIN_STATE) == 0) return 0;
    if (wanted > MRC_CTL_PORT_ADMIN_ENABLED) return EINVAL;
    return code_of(controller(*context).modify_port({.port = port, .enabled = wanted != 0}));
  });
  return returned(error, fail_minus_one);
}

int mrc_ctl_modify_cc_profile(mrc_context* context, std::uint64_t id, mrc_ctl_cc_profile_attr* attr,
                              int mask) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr || !has_only_known_bits(mask, kCcMask)) return EINVAL;
    CcChange change;
    if (const int bad = cc_change(*attr, mask, change)) return bad;
    return code_of(controller(*context).modify_cc(id, change));
  });
  return returned(error, fail_minus_one);
}

int mrc_ctl_query_cc_profile(mrc_context* context, std::uint64_t id, mrc_ctl_cc_profile_attr* attr,
                             int mask) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr || !has_only_known_bits(mask, kCcMask)) return EINVAL;
    if (id >= kCcProfilesMax) return EINVAL;
    const auto model = controller(*context).snapshot();
    if (!model) return code_of(model.error());
    const CcProfile& profile = (*model)->ccs[id];
    attr->profile_state = attr->cur_profile_state =
        static_cast<mrc_ctl_profile_state>(profile.state);
    if ((mask & MRC_CTL_CC_PROFILE_ALGORITHM) != 0) {
      attr->algorithm = profile.algorithm == CcAlgorithm::kNscc ? kNsccName : nullptr;
    }
    if ((mask & MRC_CTL_CC_PROFILE_CONFIG) != 0) query_config(profile, *attr);
    if ((mask & MRC_CTL_CC_PROFILE_VENDOR_CFG) != 0) copy_vendor(profile.vendor, attr->vendor_cfg);
    return 0;
  });
  return returned(error, fail_minus_one);
}

}  // extern "C"
