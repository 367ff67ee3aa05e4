// Devices and contexts: device attributes; creating, refusing and destroying contexts.
#include <bit>

#include "conformance/end.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

// A verbs context on which no MRC context was created.
struct Verbs {
  const Library& library;
  ibv_context* context;
  explicit Verbs(Session& session) : library(session.library()), context(open_device(session)) {}
  ~Verbs() { library.ibv_close_device.call_if_present(context); }
  Verbs(const Verbs&) = delete;
  Verbs& operator=(const Verbs&) = delete;
};

void query_device_ex(Session& session) {
  Host host(session);
  mrc_device_attr attr{};
  int supported = -1;
  works("mrc_query_device_ex",
        host.library.mrc_query_device_ex(host.verbs, host.context, &attr, &supported));
  equal("supported", supported, 1);
  equal("max_mpr, as mrc_query_device says", attr.mpr_attr.max_mpr, host.attr.mpr_attr.max_mpr);
  equal("cap, as mrc_query_device says", attr.cap, host.attr.cap);
}

void query_device_ex_null(Session& session) {
  Verbs verbs(session);
  mrc_device_attr attr{};
  int supported = 0;
  works("mrc_query_device_ex without an MRC context",
        verbs.library.mrc_query_device_ex(verbs.context, nullptr, &attr, &supported));
  equal("supported", supported, 1);
}

void minimums_are_met(Session& session) {
  Host host(session);
  const auto& a = host.attr;
  holds(a.mpr_attr.max_mpr >= 8, "max_mpr of 8 (1024 PSNs) at least",
        text_of_value(a.mpr_attr.max_mpr));
  holds(a.wimm_attr.max_wimm >= 32, "max_wimm of 32 at least", text_of_value(a.wimm_attr.max_wimm));
  holds(a.wimm_attr.max_wimm_dest >= 32, "max_wimm_dest of 32 at least",
        text_of_value(a.wimm_attr.max_wimm_dest));
}

void mpr_resolution_fits(Session& session) {
  Host host(session);
  const auto& mpr = host.attr.mpr_attr;
  holds(mpr.mpr_resolution >= 1 && mpr.mpr_resolution <= mpr.max_mpr,
        "mpr_resolution of 1 to max_mpr", text_of_value(mpr.mpr_resolution));
}

void known_bits(Session& session) {
  Host host(session);
  const std::uint32_t caps =
      MRC_DEVICE_CAP_TRIM_NACK | MRC_DEVICE_CAP_DYNAMIC_MPR | MRC_DEVICE_CAP_SVC_TIME;
  equal_hex("cap bits beyond the header's:", host.attr.cap & ~caps, 0);
  const std::uint32_t protocol = host.attr.mrc_protocol_version;
  holds(protocol == 0 || (protocol & MRC_PROTOCOL_VERSION_1) != 0,
        "protocol version 1 among the bits", fmt::format("{:#x}", protocol));
}

void version_is_accepted(Session& session, std::uint32_t version) {
  Verbs verbs(session);
  mrc_context_attr attr{.mrc_api_version_used = version, .mrc_vendor_api_version_used = 0};
  mrc_context* const context = verbs.library.mrc_create_context(verbs.context, &attr);
  works(fmt::format("mrc_create_context for API {:#x}", version), context);
  works("mrc_destroy_context", verbs.library.mrc_destroy_context(context));
}

void future_version_is_refused(Session& session) {
  Verbs verbs(session);
  mrc_context_attr attr{.mrc_api_version_used = MRC_API_VER(9, 0, 0),
                        .mrc_vendor_api_version_used = 0};
  fails_null("mrc_create_context for API 9.0.0",
             verbs.library.mrc_create_context(verbs.context, &attr), {EINVAL, EOPNOTSUPP, ENOTSUP});
}

// Destroying a context must fail with EBUSY while an object of the context exists.
template <typename Make>
void context_in_use_is_busy(Session& session, const char* what, Make make) {
  Host host(session);
  make(host, [&] {
    fails_minus_one(fmt::format("mrc_destroy_context with a {}", what),
                    host.library.mrc_destroy_context(host.context), {EBUSY});
  });
}

void null_arguments(Session& session) {
  Host host(session);
  mrc_device_attr attr{};
  int supported = 0;
  const Library& library = host.library;
  fails_null("mrc_create_context(NULL)", library.mrc_create_context(nullptr, nullptr), {EINVAL});
  fails_minus_one("mrc_destroy_context(NULL)", library.mrc_destroy_context(nullptr), {EINVAL});
  fails_minus_one("mrc_query_device(NULL)", library.mrc_query_device(nullptr, &attr, &supported),
                  {EINVAL});
  fails_minus_one("mrc_query_device without attr",
                  library.mrc_query_device(host.verbs, nullptr, &supported), {EINVAL});
}

constexpr Test kTests[] = {
    {.id = "api.device.query-ex",
     .clause = "mrc.h: mrc_query_device_ex",
     .what = "returns the same as mrc_query_device, and that MRC is supported",
     .body = query_device_ex},
    {.id = "api.device.query-ex-no-context",
     .clause = "mrc.h: mrc_query_device_ex",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "works without an MRC context, because the result says whether one can be created",
     .body = query_device_ex_null},
    {.id = "api.device.minimums",
     .clause = "MRC 10.1.2, minimums of MPR and WIMM",
     .certainty = Certainty::kReaders,
     .what = "max_mpr is at least 8, max_wimm and max_wimm_dest at least 32",
     .body = minimums_are_met},
    {.id = "api.device.mpr-resolution",
     .clause = "mrc.h: struct mrc_device_attr",
     .what = "mpr_resolution is from 1 to max_mpr",
     .body = mpr_resolution_fits},
    {.id = "api.device.known-bits",
     .clause = "mrc.h: enum mrc_device_cap, enum mrc_protocol_version",
     .what = "capability and version bitmaps have only bits that the header defines",
     .body = known_bits},
    {.id = "api.context.version-zero",
     .clause = "mrc.h: struct mrc_context_attr",
     .what = "version 0 means unspecified, and is accepted",
     .body = [](Session& s) { version_is_accepted(s, 0); }},
    {.id = "api.context.version-old",
     .clause = "OCP's benchmark",
     .certainty = Certainty::kOurs,
     .what = "version 0.0.1, which OCP's benchmark passes by mistake, is accepted",
     .body = [](Session& s) { version_is_accepted(s, 1); }},
    {.id = "api.context.version-current",
     .clause = "mrc.h: struct mrc_context_attr",
     .what = "version 1.0.0, the oldest published one, is accepted",
     .body = [](Session& s) { version_is_accepted(s, MRC_API_VER(1, 0, 0)); }},
    {.id = "api.context.version-future",
     .clause = "mrc.h: struct mrc_context_attr",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "a version that does not exist yet is refused",
     .body = future_version_is_refused},
    {.id = "api.context.busy-cq",
     .clause = "mrc.h: mrc_destroy_context",
     .certainty = Certainty::kOurs,
     .what = "EBUSY while a CQ of the context lives",
     .body =
         [](Session& s) {
           context_in_use_is_busy(s, "CQ", [](Host& host, auto check) {
             mrc_cq* const cq = host.library.mrc_create_cq(host.context, 1, nullptr, nullptr, 0);
             works("mrc_create_cq", cq);
             check();
             host.library.mrc_destroy_cq(cq);
           });
         }},
    {.id = "api.context.busy-hint",
     .clause = "mrc.h: mrc_destroy_context",
     .certainty = Certainty::kOurs,
     .what = "EBUSY while a QP hint of the context lives",
     .body =
         [](Session& s) {
           context_in_use_is_busy(s, "hint", [](Host& host, auto check) {
             mrc_qp_hint_init_attr init{};
             mrc_qp_hint* const hint = host.library.mrc_create_qp_hint(host.context, &init);
             works("mrc_create_qp_hint", hint);
             check();
             host.library.mrc_destroy_qp_hint(hint);
           });
         }},
    {.id = "api.context.null",
     .clause = "mrc.h: [-1], [NULL]",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "NULL instead of an object is EINVAL, not a crash",
     .body = null_arguments},
};

}  // namespace

std::span<const Test> device_tests() { return kTests; }

}  // namespace weft::conformance
