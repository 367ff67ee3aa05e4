// Parses numbers with units, as people write them: sizes, durations, rates, shares. The conversion
// is exact: decimal fractions become whole bytes, picoseconds, bits per second or parts per
// million. Other values are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/rate.h"
#include "base/result.h"
#include "base/time.h"

namespace weft::config {

// On failure the text of the error says what is wrong and which units are known. Messages put "KEY
// = " before it.
Result<std::uint64_t, std::string> size_from(std::string_view text);  // "16MiB", "2MB", "4096"
Result<Duration, std::string> duration_from(std::string_view text);   // "5us", "1.5ms"
Result<Rate, std::string> rate_from(std::string_view text);           // "100Gbps"
Result<std::uint32_t, std::string> ppm_from(std::string_view text);   // "0.1%" is 1000

// The expected forms, for messages about a value that is missing or of another type.
inline constexpr std::string_view kSizeExpected =
    "a size as \"16MiB\" (units B, kB, MB, GB, KiB, MiB, GiB) or a whole number of bytes";
inline constexpr std::string_view kDurationExpected =
    "a duration as \"5us\" (units ps, ns, us, ms, s)";
inline constexpr std::string_view kRateExpected = "a rate as \"100Gbps\" (units Mbps, Gbps, Tbps)";
inline constexpr std::string_view kShareExpected = "a share as \"1%\" or 0.01";

}  // namespace weft::config
