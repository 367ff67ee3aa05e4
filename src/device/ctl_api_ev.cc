// Implements mrc_ctl.h: EV format profiles and EV profiles.
#include <algorithm>
#include <span>

#include "device/ctl_api.h"

using namespace weft;
using namespace weft::control;
using namespace weft::device;

namespace {

constexpr unsigned kFormatMask = 0xf | kVendorBit, kEvMask = 0x1ff | kVendorBit;

bool has(int mask, int bit) { return (mask & bit) != 0; }

// --- EV format profiles

int format_change(const mrc_ctl_ev_fmt_profile_attr& attr, int mask, FormatChange& out) {
  if (has(mask, MRC_CTL_EV_FMT_PROFILE_STATE)) {
    out.state = profile_state(raw(attr.profile_state));
    if (!out.state) return EINVAL;
  }
  if (has(mask, MRC_CTL_EV_FMT_PROFILE_CUR_STATE)) {
    out.cur_state = profile_state(raw(attr.cur_profile_state));
    if (!out.cur_state) return EINVAL;
  }
  if (has(mask, MRC_CTL_EV_FMT_PROFILE_MODE)) out.mode = raw(attr.ev_fmt_mode);
  if (has(mask, MRC_CTL_EV_FMT_PROFILE_OP) &&
      raw(attr.ev_fmt_op.op) == MRC_CTL_EV_FMT_OP_MODIFY_FIELDS) {
    const int count = attr.ev_fmt_op.fmt_field_count;
    if (count < 0 || (count > 0 && attr.ev_fmt_op.fmt_fields == nullptr)) return EINVAL;
    if (count > static_cast<int>(kEvFieldsMax)) return E2BIG;
    out.widths.emplace();
    for (int i = 0; i < count; ++i) out.widths->push_back(attr.ev_fmt_op.fmt_fields[i].width);
  }
  if (has(mask, MRC_CTL_EV_FMT_VENDOR_CFG)) out.vendor = vendor_from(attr.vendor_cfg);
  return 0;
}

int query_format_fields(const FormatProfile& profile, mrc_ctl_ev_fmt_profile_attr& attr) {
  const std::vector<std::uint32_t> widths = profile.widths.value_or(std::vector<std::uint32_t>());
  const auto count = static_cast<int>(widths.size());
  const bool fits = attr.ev_fmt_op.fmt_field_count >= count;
  attr.ev_fmt_op.fmt_field_count = count;
  if (!fits) return E2BIG;
  if (count > 0 && attr.ev_fmt_op.fmt_fields == nullptr) return EINVAL;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    attr.ev_fmt_op.fmt_fields[i].width = static_cast<std::uint8_t>(widths[i]);
  }
  return 0;
}

// --- EV profiles

int ev_ops(const mrc_ctl_ev_profile_attr& attr, EvOps& out) {
  const int count = attr.ev_op.entry_count;
  if (count < 0 || (count > 0 && attr.ev_op.entries == nullptr)) return EINVAL;
  out.op = raw(attr.ev_op.op) == MRC_CTL_EV_OP_REPLACE_EV ? EvOp::kReplace : EvOp::kModifyState;
  for (int i = 0; i < count; ++i) {
    const mrc_ctl_ev_op_entry& entry = attr.ev_op.entries[i];
    if ((entry.flags & ~static_cast<std::uint32_t>(MRC_CTL_EV_OP_F_ALL_COPIES)) != 0) return EINVAL;
    out.entries.push_back({.ev = ev_from(entry.ev),
                           .ev_new = ev_from(entry.ev_new),
                           .state = raw(entry.state),
                           .all_copies = (entry.flags & MRC_CTL_EV_OP_F_ALL_COPIES) != 0});
  }
  return 0;
}

int ev_fields(const mrc_ctl_ev_profile_attr& attr, std::vector<fabric::EvField>& out) {
  const int count = attr.ev_fields_op.field_count;
  if (count < 0 || (count > 0 && attr.ev_fields_op.fields == nullptr)) return EINVAL;
  if (count > static_cast<int>(kEvFieldsMax)) return E2BIG;
  for (int i = 0; i < count; ++i) {
    const mrc_ctl_ev_field& field = attr.ev_fields_op.fields[i];
    out.push_back({.width = field.width,
                   .init_val = field.init_val,
                   .min = field.min_val,
                   .max = field.max_val,
                   .mask = field.mask});
  }
  return 0;
}

bool is_query(const mrc_ctl_ev_profile_attr& attr) {
  return raw(attr.ev_op.op) == MRC_CTL_EV_OP_QUERY_EV_STATE ||
         raw(attr.ev_op.op) == MRC_CTL_EV_OP_QUERY_EV_ARRAY;
}

int ev_change(const mrc_ctl_ev_profile_attr& attr, int mask, EvChange& out) {
  if (has(mask, MRC_CTL_EV_PROFILE_STATE)) {
    out.state = profile_state(raw(attr.profile_state));
    if (!out.state) return EINVAL;
  }
  if (has(mask, MRC_CTL_EV_PROFILE_CUR_STATE)) {
    out.cur_state = profile_state(raw(attr.cur_profile_state));
    if (!out.cur_state) return EINVAL;
  }
  if (has(mask, MRC_CTL_EV_PROFILE_MODE)) out.mode = raw(attr.ev_mode);
  if (has(mask, MRC_CTL_EV_PROFILE_FMT_ID)) out.format = attr.ev_fmt_profile_id;
  if (has(mask, MRC_CTL_EV_PROFILE_COUNT)) out.count = attr.ev_count;
  if (has(mask, MRC_CTL_EV_PROFILE_MIN_ACTIVE)) out.min_active = attr.ev_min_active;
  if (has(mask, MRC_CTL_EV_PROFILE_EVENT_MASK)) {
    out.event_mask = static_cast<std::uint32_t>(attr.ev_event_mask);
  }
  if (has(mask, MRC_CTL_EV_PROFILE_EV_OP) && !is_query(attr)) {
    if (raw(attr.ev_op.op) > MRC_CTL_EV_OP_QUERY_EV_ARRAY) return EINVAL;
    if (const int bad = ev_ops(attr, out.ops.emplace())) return bad;
  }
  if (has(mask, MRC_CTL_EV_PROFILE_EV_FIELDS_OP) &&
      raw(attr.ev_fields_op.op) == MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS) {
    if (const int bad = ev_fields(attr, out.fields.emplace())) return bad;
  }
  if (has(mask, MRC_CTL_EV_PROFILE_VENDOR_CFG)) out.vendor = vendor_from(attr.vendor_cfg);
  return 0;
}

int query_ev_states(const CtlModel& model, std::uint64_t id, mrc_ctl_ev_profile_attr& attr) {
  const int count = attr.ev_op.entry_count;
  if (count < 0 || (count > 0 && attr.ev_op.entries == nullptr)) return EINVAL;
  for (int i = 0; i < count; ++i) {
    const CtlEv ev[] = {ev_from(attr.ev_op.entries[i].ev)};
    const auto state = control::query_ev_states(model, id, ev);
    if (!state) return code_of(state.error());
    attr.ev_op.entries[i].state = static_cast<mrc_ctl_ev_state>(state->front());
  }
  return 0;
}

int query_ev_array(const EvProfileRecord& profile, mrc_ctl_ev_profile_attr& attr) {
  const auto count = static_cast<int>(profile.evs.size());
  const bool fits = attr.ev_op.entry_count >= count;
  attr.ev_op.entry_count = count;
  if (!fits) return E2BIG;
  if (count > 0 && attr.ev_op.entries == nullptr) return EINVAL;
  for (std::size_t i = 0; i < profile.evs.size(); ++i) {
    attr.ev_op.entries[i].ev = to_api(profile.evs[i].ev);
    attr.ev_op.entries[i].state = static_cast<mrc_ctl_ev_state>(profile.evs[i].state);
  }
  return 0;
}

int query_ev_fields(const EvProfileRecord& profile, mrc_ctl_ev_profile_attr& attr) {
  const auto fields = profile.fields.value_or(std::vector<fabric::EvField>());
  const auto count = static_cast<int>(fields.size());
  const bool fits = attr.ev_fields_op.field_count >= count;
  attr.ev_fields_op.field_count = count;
  if (!fits) return E2BIG;
  if (count > 0 && attr.ev_fields_op.fields == nullptr) return EINVAL;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    attr.ev_fields_op.fields[i] = {.width = fields[i].width,
                                   .init_val = fields[i].init_val,
                                   .min_val = fields[i].min,
                                   .max_val = fields[i].max,
                                   .mask = fields[i].mask};
  }
  return 0;
}

// Carries out a query, or the query operation that a modification contains.
int query_ev_op(const CtlModel& model, std::uint64_t id, mrc_ctl_ev_profile_attr& attr, int mask) {
  if (has(mask, MRC_CTL_EV_PROFILE_EV_OP)) {
    return raw(attr.ev_op.op) == MRC_CTL_EV_OP_QUERY_EV_STATE ? query_ev_states(model, id, attr)
                                                              : query_ev_array(model.evs[id], attr);
  }
  if (has(mask, MRC_CTL_EV_PROFILE_EV_FIELDS_OP)) return query_ev_fields(model.evs[id], attr);
  return 0;
}

int query_ev(const CtlModel& model, std::uint64_t id, mrc_ctl_ev_profile_attr& attr, int mask) {
  const EvProfileRecord& profile = model.evs[id];
  attr.profile_state = attr.cur_profile_state = static_cast<mrc_ctl_profile_state>(profile.state);
  if (has(mask, MRC_CTL_EV_PROFILE_MODE)) {
    attr.ev_mode = static_cast<mrc_ctl_ev_mode>(profile.mode.value_or(fabric::EvMode{}));
  }
  if (has(mask, MRC_CTL_EV_PROFILE_FMT_ID)) attr.ev_fmt_profile_id = profile.format.value_or(0);
  if (has(mask, MRC_CTL_EV_PROFILE_COUNT)) attr.ev_count = profile.count.value_or(0);
  if (has(mask, MRC_CTL_EV_PROFILE_MIN_ACTIVE)) attr.ev_min_active = profile.min_active.value_or(0);
  if (has(mask, MRC_CTL_EV_PROFILE_EVENT_MASK)) {
    attr.ev_event_mask = static_cast<int>(profile.event_mask.value_or(0));
  }
  if (has(mask, MRC_CTL_EV_PROFILE_VENDOR_CFG)) copy_vendor(profile.vendor, attr.vendor_cfg);
  return query_ev_op(model, id, attr, mask);
}

constexpr int kBothOps = MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP;

}  // namespace

extern "C" {

int mrc_ctl_modify_ev_fmt_profile(mrc_context* context, std::uint64_t id,
                                  mrc_ctl_ev_fmt_profile_attr* attr, int mask) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr || !has_only_known_bits(mask, kFormatMask))
      return EINVAL;
    const bool op = has(mask, MRC_CTL_EV_FMT_PROFILE_OP);
    if (op && raw(attr->ev_fmt_op.op) > MRC_CTL_EV_FMT_OP_QUERY_FIELDS) return EINVAL;
    FormatChange change;
    if (const int bad = format_change(*attr, mask, change)) return bad;
    ControllerState& state = controller(*context);
    if (const int bad = code_of(state.modify_format(id, change))) return bad;
    if (!op || raw(attr->ev_fmt_op.op) != MRC_CTL_EV_FMT_OP_QUERY_FIELDS) return 0;
    const auto model = state.snapshot();
    return model ? query_format_fields((*model)->formats[id], *attr) : code_of(model.error());
  });
  return returned(error, fail_minus_one);
}

int mrc_ctl_query_ev_fmt_profile(mrc_context* context, std::uint64_t id,
                                 mrc_ctl_ev_fmt_profile_attr* attr, int mask) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr || !has_only_known_bits(mask, kFormatMask))
      return EINVAL;
    if (id >= kFormatProfilesMax) return EINVAL;
    const bool op = has(mask, MRC_CTL_EV_FMT_PROFILE_OP);
    if (op && raw(attr->ev_fmt_op.op) != MRC_CTL_EV_FMT_OP_QUERY_FIELDS) return EINVAL;
    const auto model = controller(*context).snapshot();
    if (!model) return code_of(model.error());
    const FormatProfile& profile = (*model)->formats[id];
    attr->profile_state = attr->cur_profile_state =
        static_cast<mrc_ctl_profile_state>(profile.state);
    if (has(mask, MRC_CTL_EV_FMT_PROFILE_MODE)) {
      attr->ev_fmt_mode =
          static_cast<mrc_ctl_ev_fmt_mode>(profile.mode.value_or(fabric::EvFormatMode{}));
    }
    if (has(mask, MRC_CTL_EV_FMT_VENDOR_CFG)) copy_vendor(profile.vendor, attr->vendor_cfg);
    return op ? query_format_fields(profile, *attr) : 0;
  });
  return returned(error, fail_minus_one);
}

int mrc_ctl_modify_ev_profile(mrc_context* context, std::uint64_t id, mrc_ctl_ev_profile_attr* attr,
                              int mask) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr || !has_only_known_bits(mask, kEvMask)) return EINVAL;
    if ((mask & kBothOps) == kBothOps) return EINVAL;
    const bool fields = has(mask, MRC_CTL_EV_PROFILE_EV_FIELDS_OP);
    if (fields && raw(attr->ev_fields_op.op) > MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS) return EINVAL;
    EvChange change;
    if (const int bad = ev_change(*attr, mask, change)) return bad;
    ControllerState& state = controller(*context);
    if (const int bad = code_of(state.modify_ev(id, change))) return bad;
    if (change.ops || change.fields || (mask & kBothOps) == 0) return 0;
    const auto model = state.snapshot_with_bad_evs();
    return model ? query_ev_op(**model, id, *attr, mask) : code_of(model.error());
  });
  return returned(error, fail_minus_one);
}

int mrc_ctl_query_ev_profile(mrc_context* context, std::uint64_t id, mrc_ctl_ev_profile_attr* attr,
                             int mask) noexcept {
  const int error = guarded([&] {
    if (context == nullptr || attr == nullptr || !has_only_known_bits(mask, kEvMask)) return EINVAL;
    if (id >= kEvProfilesMax || (mask & kBothOps) == kBothOps) return EINVAL;
    if (has(mask, MRC_CTL_EV_PROFILE_EV_OP) && !is_query(*attr)) return EINVAL;
    if (has(mask, MRC_CTL_EV_PROFILE_EV_FIELDS_OP) &&
        raw(attr->ev_fields_op.op) != MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS) {
      return EINVAL;
    }
    const auto model = controller(*context).snapshot_with_bad_evs();
    return model ? query_ev(**model, id, *attr, mask) : code_of(model.error());
  });
  return returned(error, fail_minus_one);
}

}  // extern "C"
