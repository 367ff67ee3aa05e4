#include "conformance/checks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace weft::conformance {
namespace {

std::string one_of(Errnos expected) {
  std::string out;
  for (const int value : expected) out += (out.empty() ? "" : " or ") + errno_name(value);
  return out;
}
bool is_in(int value, Errnos expected) {
  return std::find(expected.begin(), expected.end(), value) != expected.end();
}

}  // namespace

std::string errno_name(int value) {
  const char* const name = strerrorname_np(value);
  return name != nullptr ? name : fmt::format("{}", value);
}

std::string status_name(int status) {
  static constexpr std::array kNames = {
      "SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
      "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
      "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
      "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
      "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
      "RESP_TIMEOUT_ERR", "GENERAL_ERR"};
  if (status >= 0 && static_cast<std::size_t>(status) < kNames.size())
    return kNames[static_cast<std::size_t>(status)];
  return fmt::format("status {}", status);
}

void equal_hex(std::string_view what, std::uint64_t got, std::uint64_t expected) {
  if (got != expected) fail(fmt::format("{} {:#x}", what, expected), fmt::format("{:#x}", got));
}

void works(std::string_view what, int returned) {
  const int error = errno;
  if (returned == 0) return;
  fail(fmt::format("{} works", what),
       fmt::format("it returned {}, errno {}", returned, errno_name(error)));
}

void works(std::string_view what, const void* returned) {
  const int error = errno;
  if (returned != nullptr) return;
  fail(fmt::format("{} works", what), fmt::format("NULL, errno {}", errno_name(error)));
}

void fails_minus_one(std::string_view what, int returned, Errnos expected) {
  const int error = errno;
  if (returned == -1 && is_in(error, expected)) return;
  fail(fmt::format("{}: -1, errno {}", what, one_of(expected)),
       returned == 0 ? "it worked" : fmt::format("{}, errno {}", returned, errno_name(error)));
}

void fails_null(std::string_view what, const void* returned, Errnos expected) {
  const int error = errno;
  if (returned == nullptr && is_in(error, expected)) return;
  fail(fmt::format("{}: NULL, errno {}", what, one_of(expected)),
       returned != nullptr ? "it worked" : fmt::format("NULL, errno {}", errno_name(error)));
}

void fails_value(std::string_view what, int returned, Errnos expected) {
  if (is_in(returned, expected)) return;
  fail(fmt::format("{}: it returns {}", what, one_of(expected)),
       returned == 0 ? "it worked" : fmt::format("it returned {}", errno_name(returned)));
}

}  // namespace weft::conformance
