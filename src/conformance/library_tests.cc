// The library as a file: which functions it has, and the object layout that programs rely on.
#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

void all_functions_exist(const std::vector<std::string>& missing) {
  if (missing.empty()) return;
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  fail("every function of the header", "without " + names);
}

void query_version(Session& session) {
  std::uint32_t current = 0, last = 0xffff'ffff, vendor = 0, last_vendor = 0xffff'ffff;
  session.library().mrc_query_version(&current, &last, &vendor, &last_vendor);
  holds(current >= MRC_API_VER(1, 0, 0), "a current API of 1.0.0 or later",
        fmt::format("{:#x}", current));
  holds(last <= current, "an oldest API that is not newer", fmt::format("{:#x}", last));
  holds(last_vendor <= vendor, "an oldest vendor API that is not newer",
        fmt::format("{:#x}", last_vendor));
}

void query_ctl_version(Session& session) {
  std::uint32_t current = 0, last = 0xffff'ffff, vendor = 0, last_vendor = 0xffff'ffff;
  session.library().mrc_ctl_query_version(&current, &last, &vendor, &last_vendor);
  holds(current >= MRC_CTL_API_VER(1, 0, 0), "a current API of 1.0.0 or later",
        fmt::format("{:#x}", current));
  holds(last <= current, "an oldest API that is not newer", fmt::format("{:#x}", last));
}

void first_member_is_ibv_qp(Session& session) {
  Host host(session);
  End end(host);
  const ibv_qp* const verbs = *reinterpret_cast<ibv_qp* const*>(end.qp);
  holds(verbs != nullptr, "a pointer to an ibv_qp first in struct mrc_qp", "NULL");
  equal_hex("its qp_num", verbs->qp_num, end.qpn());
  equal("its context", static_cast<const void*>(verbs->context),
        static_cast<const void*>(host.verbs));
}

void two_contexts_coexist(Session& session) {
  Host first(session);
  mrc_context* const second = first.library.mrc_create_context(first.verbs, nullptr);
  works("a second mrc_create_context on one device", second);
  holds(second != first.context, "a different context", "the same pointer");
  works("mrc_destroy_context of the second", first.library.mrc_destroy_context(second));
  End still(first);
  works("the first afterwards", still.to_init());
}

constexpr Test kTests[] = {
    {.id = "api.library.mrc",
     .clause = "mrc.h, all 27 functions",
     .what = "every function of mrc.h is exported",
     .body = [](Session& s) { all_functions_exist(s.library().found.missing_mrc()); }},
    {.id = "api.library.mrc-ctl",
     .clause = "mrc_ctl.h, all 14 functions",
     .what = "every function of mrc_ctl.h is exported",
     .body = [](Session& s) { all_functions_exist(s.library().found.missing_ctl()); }},
    {.id = "api.library.verbs",
     .clause = "mrc.h, preamble",
     .what = "the verbs that MRC programs need are present: devices, GIDs, domains, memory",
     .body = [](Session& s) { all_functions_exist(s.library().found.missing_verbs()); }},
    {.id = "api.version.mrc",
     .clause = "mrc.h: mrc_query_version",
     .what = "versions can be queried before any context exists, and are consistent",
     .body = query_version},
    {.id = "api.version.mrc-ctl",
     .clause = "mrc_ctl.h: mrc_ctl_query_version",
     .what = "the same for the versions of the controller's API",
     .body = query_ctl_version},
    {.id = "api.abi.qp-first-member",
     .clause = "struct mrc_qp, as Microsoft's verbs shim relies on it",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "the first member of struct mrc_qp points to an ibv_qp with the QP's number",
     .body = first_member_is_ibv_qp},
    {.id = "api.context.two",
     .clause = "mrc.h: mrc_create_context",
     .what = "two contexts of one device can exist at the same time",
     .body = two_contexts_coexist},
};

}  // namespace

std::span<const Test> library_tests() { return kTests; }

}  // namespace weft::conformance
