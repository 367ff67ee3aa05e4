#include "mrclib/description.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/assert.h"

namespace weft::mrclib {
namespace {

// Each description begins with such a number: a name in ASCII, and the version in the last byte.
constexpr std::uint64_t kGroupMark = 0x4d52'4347'524f'5501;   // "MRCGROU", 1
constexpr std::uint64_t kRegionMark = 0x4d52'4352'4547'4901;  // "MRCREGI", 1

namespace group_at {
constexpr std::size_t kMark = 0, kMtu = 8, kImmediates = 12, kMpr = 14, kZero = 15, kGid = 16;
}
namespace region_at {
constexpr std::size_t kMark = 0, kAt = 8, kBytes = 16, kRkey = 24;
}

Error invalid(std::string what) { return {ErrorKind::kInvalid, std::move(what)}; }

bool is_mtu(std::uint32_t mtu) { return mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0; }

}  // namespace

std::vector<std::byte> GroupDescription::to_bytes() const {
  std::vector<std::byte> bytes(size_of(qps.size()));
  const Bytes out(bytes);
  base::store64(out, group_at::kMark, kGroupMark);
  base::store32(out, group_at::kMtu, mtu);
  base::store16(out, group_at::kImmediates, immediates_max);
  base::store8(out, group_at::kMpr, mpr);
  std::copy(gid.begin(), gid.end(), bytes.begin() + group_at::kGid);
  for (std::size_t i = 0; i < qps.size(); ++i) {
    base::store32(out, size_of(i), qps[i].qpn);
    base::store32(out, size_of(i) + 4, qps[i].first_psn);
  }
  return bytes;
}

Result<GroupDescription> GroupDescription::from_bytes(ConstBytes in) {
  if (in.size() < size_of(1) || (in.size() - kHeadSize) % kQpSize != 0) {
    return invalid(fmt::format("a group's description has {} bytes; expected {} and {} for each QP",
                               in.size(), kHeadSize, kQpSize));
  }
  if (base::load64(in, group_at::kMark) != kGroupMark) {
    return invalid(
        "this is not the description of a group; expected that of a peer which runs the same "
        "version of Weft on a lib_mrc.so");
  }
  GroupDescription out;
  out.mtu = base::load32(in, group_at::kMtu);
  if (!is_mtu(out.mtu)) {
    return invalid(
        fmt::format("the peer's MTU is {}; expected 256, 512, 1024, 2048 or 4096", out.mtu));
  }
  out.immediates_max = base::load16(in, group_at::kImmediates);
  out.mpr = base::load8(in, group_at::kMpr);
  if (base::load8(in, group_at::kZero) != 0)
    return invalid("byte 15 of a group's description is not 0");
  std::copy_n(in.begin() + group_at::kGid, out.gid.size(), out.gid.begin());
  const std::size_t count = (in.size() - kHeadSize) / kQpSize;
  out.qps.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Qp qp{.qpn = base::load32(in, size_of(i)), .first_psn = base::load32(in, size_of(i) + 4)};
    if (qp.qpn > kMax24 || qp.first_psn > kMax24) {
      return invalid(
          fmt::format("QP {} of the peer has number {:#x} and first PSN {:#x}; expected "
                      "24 bits",
                      i, qp.qpn, qp.first_psn));
    }
    out.qps.push_back(qp);
  }
  return out;
}

std::vector<std::byte> RegionDescription::to_bytes() const {
  std::vector<std::byte> bytes(kSize);
  const Bytes out(bytes);
  base::store64(out, region_at::kMark, kRegionMark);
  base::store64(out, region_at::kAt, at);
  base::store64(out, region_at::kBytes, size);
  base::store32(out, region_at::kRkey, rkey);
  return bytes;
}

Result<RegionDescription> RegionDescription::from_bytes(ConstBytes in) {
  if (in.size() != kSize) {
    return invalid(
        fmt::format("a region's description has {} bytes; expected {}", in.size(), kSize));
  }
  if (base::load64(in, region_at::kMark) != kRegionMark) {
    return invalid(
        "this is not the description of a region; expected that of a peer which runs the same "
        "version of Weft on a lib_mrc.so");
  }
  const RegionDescription out{.at = base::load64(in, region_at::kAt),
                              .size = base::load64(in, region_at::kBytes),
                              .rkey = base::load32(in, region_at::kRkey)};
  if (out.size > std::numeric_limits<std::uint64_t>::max() - out.at)
    return invalid(fmt::format("the peer's region of {} bytes ends beyond its memory", out.size));
  return out;
}

}  // namespace weft::mrclib
