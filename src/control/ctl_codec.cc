#include "control/ctl_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

#include "control/ctl_profiles.h"
#include "wire/crc32.h"

namespace weft::control {
namespace {

constexpr std::array<std::byte, 8> kMagic = {std::byte{'W'}, std::byte{'E'}, std::byte{'F'},
                                             std::byte{'T'}, std::byte{'C'}, std::byte{'T'},
                                             std::byte{'L'}, std::byte{'\n'}};

std::uint32_t checksum(ConstBytes bytes) { return ~wire::crc32_update(0xffff'ffff, bytes); }

class Writer {
 public:
  void u8(std::uint32_t value) { out_.push_back(static_cast<std::byte>(value & 0xff)); }
  void u32(std::uint32_t value) {
    out_.resize(out_.size() + 4);
    base::store32(out_, out_.size() - 4, value);
  }
  void u64(std::uint64_t value) {
    out_.resize(out_.size() + 8);
    base::store64(out_, out_.size() - 8, value);
  }
  void real(float value) { u32(std::bit_cast<std::uint32_t>(value)); }
  void optional_u32(const std::optional<std::uint32_t>& value) {
    u8(value ? 1 : 0);
    if (value) u32(*value);
  }
  // Writes the bytes without trailing zeros.
  void trimmed(ConstBytes bytes) {
    std::size_t size = bytes.size();
    while (size > 0 && bytes[size - 1] == std::byte{0}) --size;
    u8(static_cast<std::uint32_t>(size));
    out_.insert(out_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  }
  const std::vector<std::byte>& bytes() const { return out_; }

 private:
  std::vector<std::byte> out_;
};

// After an invalid byte the parser continues and returns zeros; callers check good() where needed.
class Parser {
 public:
  explicit Parser(ConstBytes in) : in_(in) {}
  bool is_valid() const { return is_valid_; }
  bool at_end() const { return in_.empty(); }
  void fail() { is_valid_ = false; }

  std::uint32_t u8() { return take(1) ? base::load8(taken_, 0) : 0; }
  std::uint32_t u32() { return take(4) ? base::load32(taken_, 0) : 0; }
  std::uint64_t u64() { return take(8) ? base::load64(taken_, 0) : 0; }
  float real() { return std::bit_cast<float>(u32()); }
  bool flag() { return u8(1) != 0; }
  // Reads a byte; a value above `most` is invalid.
  std::uint32_t u8(std::uint32_t most) {
    const std::uint32_t value = u8();
    if (value > most) fail();
    return value > most ? 0 : value;
  }
  // Reads a byte, which must equal one of `values`.
  template <typename E>
  E one_of(std::initializer_list<E> values) {
    const std::uint32_t value = u8();
    for (const E candidate : values) {
      if (static_cast<std::uint32_t>(candidate) == value) return candidate;
    }
    fail();
    return *values.begin();
  }
  std::optional<std::uint32_t> optional_u32() {
    if (!flag()) return std::nullopt;
    return u32();
  }
  void trimmed(Bytes out) {
    const std::size_t size = u8();
    if (size > out.size()) return fail();
    if (!take(size)) return;
    // A trailing zero is invalid: each value has exactly one encoding.
    if (size > 0 && taken_[size - 1] == std::byte{0}) return fail();
    std::copy(taken_.begin(), taken_.end(), out.begin());
  }
  // Reads a number of items. Each item takes at least one byte, which bounds the number.
  std::uint32_t count(std::uint32_t most) {
    const std::uint32_t value = u32();
    if (value > most || value > in_.size()) fail();
    return is_valid_ ? value : 0;
  }

 private:
  bool take(std::size_t size) {
    if (size > in_.size()) is_valid_ = false;
    if (!is_valid_) return false;
    taken_ = in_.first(size);
    in_ = in_.subspan(size);
    return true;
  }
  ConstBytes in_, taken_;
  bool is_valid_ = true;
};

ProfileState read_state(Parser& in) {
  return in.one_of({ProfileState::kInit, ProfileState::kOffline, ProfileState::kOnline});
}

void write(Writer& out, const FormatProfile& p) {
  out.u8(static_cast<std::uint32_t>(p.state));
  out.u8(p.mode ? 1 : 0);
  if (p.mode) out.u8(static_cast<std::uint32_t>(*p.mode));
  out.u8(p.widths ? 1 : 0);
  if (p.widths) {
    out.u8(static_cast<std::uint32_t>(p.widths->size()));
    for (const std::uint32_t width : *p.widths) out.u8(width);
  }
  out.trimmed(p.vendor);
}

FormatProfile read_format(Parser& in) {
  using fabric::EvFormatMode;
  FormatProfile p;
  p.state = read_state(in);
  if (in.flag()) p.mode = in.one_of({EvFormatMode::kStev, EvFormatMode::kSrv6, EvFormatMode::kUdp});
  if (in.flag()) {
    p.widths.emplace();
    for (std::uint32_t left = in.u8(kEvFieldsMax); left > 0; --left) p.widths->push_back(in.u8());
  }
  in.trimmed(p.vendor);
  return p;
}

void write(Writer& out, const EvProfileRecord& p) {
  out.u8(static_cast<std::uint32_t>(p.state));
  out.u8(p.mode ? 1 : 0);
  if (p.mode) out.u8(static_cast<std::uint32_t>(*p.mode));
  out.optional_u32(p.format);
  out.optional_u32(p.count);
  out.optional_u32(p.min_active);
  out.optional_u32(p.event_mask);
  out.u8(p.fields ? 1 : 0);
  if (p.fields) {
    out.u8(static_cast<std::uint32_t>(p.fields->size()));
    for (const fabric::EvField& field : *p.fields) {
      for (const auto value : {field.width, field.init_val, field.min, field.max, field.mask}) {
        out.u32(value);
      }
    }
  }
  out.u32(static_cast<std::uint32_t>(p.evs.size()));
  for (const EvEntry& entry : p.evs) {
    out.trimmed(entry.ev.value);
    out.u8(entry.ev.port);
    out.u8(static_cast<std::uint32_t>(entry.state));
  }
  out.trimmed(p.vendor);
}

EvProfileRecord read_ev(Parser& in) {
  using fabric::EvMode;
  EvProfileRecord p;
  p.state = read_state(in);
  if (in.flag()) p.mode = in.one_of({EvMode::kAutomatic, EvMode::kExplicit, EvMode::kGenerated});
  p.format = in.optional_u32();
  if (p.format && *p.format >= kFormatProfilesMax) in.fail();
  p.count = in.optional_u32();
  if (p.count && (*p.count == 0 || *p.count > kEvsPerProfileMax)) in.fail();
  p.min_active = in.optional_u32();
  if (p.min_active && p.count && *p.min_active > *p.count) in.fail();
  p.event_mask = in.optional_u32();
  if (p.event_mask && (*p.event_mask & ~kEventStates) != 0) in.fail();
  if (in.flag()) {
    p.fields.emplace();
    for (std::uint32_t left = in.u8(kEvFieldsMax); left > 0; --left) {
      fabric::EvField& field = p.fields->emplace_back();
      for (auto* value : {&field.width, &field.init_val, &field.min, &field.max, &field.mask}) {
        *value = in.u32();
      }
    }
  }
  for (std::uint32_t left = in.count(kEvsPerProfileMax); left > 0; --left) {
    EvEntry& entry = p.evs.emplace_back();
    in.trimmed(entry.ev.value);
    entry.ev.port = static_cast<std::uint8_t>(in.u8(world::kPortsMax));
    entry.state = in.one_of({EvState::kGood, EvState::kDenied});
    if (entry.ev.port == 0 && !(entry == EvEntry{})) in.fail();
  }
  in.trimmed(p.vendor);
  return p;
}

void write(Writer& out, const CcProfile& p) {
  out.u8(static_cast<std::uint32_t>(p.state));
  out.u8(p.algorithm ? 1 : 0);
  if (p.algorithm) out.u8(static_cast<std::uint32_t>(*p.algorithm));
  out.u8(p.nscc ? 1 : 0);
  if (p.nscc) {
    out.u8(p.nscc->disable_qa ? 1 : 0);
    out.u8(p.nscc->qa_gate);
    for (const auto value :
         {p.nscc->adjust_bytes, p.nscc->adjust_period_ns, p.nscc->base_rtt_ns,
          p.nscc->cwnd_bytes_max, p.nscc->qa_threshold_ns, p.nscc->target_delay_ns}) {
      out.u32(value);
    }
    for (const float value :
         {p.nscc->eta, p.nscc->fi, p.nscc->fi_scale, p.nscc->gamma, p.nscc->max_md_jump}) {
      out.real(value);
    }
  }
  out.trimmed(p.vendor);
}

CcProfile read_cc(Parser& in) {
  CcProfile p;
  p.state = read_state(in);
  if (in.flag()) p.algorithm = in.one_of({CcAlgorithm::kNone, CcAlgorithm::kNscc});
  if (in.flag()) {
    NsccSettings& nscc = p.nscc.emplace();
    nscc.disable_qa = in.flag();
    nscc.qa_gate = static_cast<std::uint8_t>(in.u8());
    for (auto* value : {&nscc.adjust_bytes, &nscc.adjust_period_ns, &nscc.base_rtt_ns,
                        &nscc.cwnd_bytes_max, &nscc.qa_threshold_ns, &nscc.target_delay_ns}) {
      *value = in.u32();
    }
    for (auto* value : {&nscc.eta, &nscc.fi, &nscc.fi_scale, &nscc.gamma, &nscc.max_md_jump}) {
      *value = in.real();
    }
  }
  in.trimmed(p.vendor);
  return p;
}

Error damaged(std::string what) { return {ErrorKind::kInvalid, std::move(what)}; }

}  // namespace

std::vector<std::byte> with_ctl_header(ConstBytes body) {
  std::vector<std::byte> out(kCtlFileHeaderBytes);
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  base::store32(out, 8, kCtlFileVersion);
  base::store32(out, 12, static_cast<std::uint32_t>(body.size()));
  base::store32(out, 16, checksum(body));
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

std::vector<std::byte> to_bytes(const CtlModel& model) {
  Writer out;
  out.u64(model.generation);
  out.u64(model.seed);
  out.u32(model.ports_disabled);
  for (const FormatProfile& p : model.formats) write(out, p);
  for (const EvProfileRecord& p : model.evs) write(out, p);
  for (const CcProfile& p : model.ccs) write(out, p);
  return with_ctl_header(out.bytes());
}

Result<CtlModel> ctl_model_from(ConstBytes bytes) {
  if (bytes.size() < kCtlFileHeaderBytes || bytes.size() > kCtlFileBytesMax) {
    return damaged(fmt::format("{} bytes; expected {} to {}", bytes.size(), kCtlFileHeaderBytes,
                               kCtlFileBytesMax));
  }
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return damaged("it is no controller state");
  }
  if (const std::uint32_t version = base::load32(bytes, 8); version != kCtlFileVersion) {
    return damaged(fmt::format("version {}; this program knows {}", version, kCtlFileVersion));
  }
  const ConstBytes body = bytes.subspan(kCtlFileHeaderBytes);
  if (base::load32(bytes, 12) != body.size()) return damaged("its size is not what it says");
  if (base::load32(bytes, 16) != checksum(body)) return damaged("its checksum does not match");
  Parser in(body);
  CtlModel model;
  model.generation = in.u64();
  model.seed = in.u64();
  model.ports_disabled = in.u32();
  if ((model.ports_disabled & 1) != 0 || model.ports_disabled >> (world::kPortsMax + 1) != 0) {
    in.fail();
  }
  for (FormatProfile& p : model.formats) p = read_format(in);
  for (EvProfileRecord& p : model.evs) p = read_ev(in);
  for (CcProfile& p : model.ccs) p = read_cc(in);
  if (!in.is_valid() || !in.at_end()) return damaged("a value in it cannot be");
  if (const auto checked = check_model(model); !checked) return damaged(checked.error().message);
  return model;
}

}  // namespace weft::control
