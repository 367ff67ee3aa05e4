// The device attributes that controllers can query, and the administrative state of ports.
#include <bit>
#include <cstring>

#include "conformance/controller.h"
#include "conformance/registry.h"

namespace weft::conformance {
namespace {

void query_ex(Session& session) {
  Controller controller(session);
  mrc_ctl_device_attr attr{};
  int supported = -1;
  works("mrc_ctl_query_device_ex",
        controller.library.mrc_ctl_query_device_ex(controller.host.verbs, controller.host.context,
                                                   &attr, &supported));
  equal("supported", supported, 1);
  equal("ev_max_count, as mrc_ctl_query_device says", attr.ev.ev_max_count,
        controller.device.ev.ev_max_count);
}

void limits_are_consistent(Session& session) {
  Controller controller(session);
  const auto& ev = controller.device.ev;
  holds(ev.ev_max_fmt_profiles >= 1 && ev.ev_max_profiles >= 1, "profiles of each kind",
        fmt::format("{} and {}", ev.ev_max_fmt_profiles, ev.ev_max_profiles));
  holds(ev.ev_max_count_profile <= ev.ev_max_count && ev.ev_free_count <= ev.ev_max_count,
        "no more EVs free or in one profile than in all",
        fmt::format("{}, {} of {}", ev.ev_free_count, ev.ev_max_count_profile, ev.ev_max_count));
  holds(ev.ev_count_align >= 1, "ev_count_align of 1 at least", text_of_value(ev.ev_count_align));
  equal_hex("bits of ev_mode_mask beyond the header's:", ev.ev_mode_mask & ~7u, 0);
  equal_hex("bits of ev_fmt_mode_mask beyond the header's:", ev.ev_fmt_mode_mask & ~7u, 0);
  holds(ev.ev_max_width >= 1 && ev.ev_max_width <= 256, "ev_max_width of 1 to 256",
        text_of_value(ev.ev_max_width));
}

void ports(Session& session) {
  Controller controller(session);
  const std::uint32_t mask = controller.device.phy_port_mask;
  holds(mask != 0 && (mask & 1) == 0, "ports from 1 on: bit 0 clear, another set",
        fmt::format("{:#x}", mask));
  for (std::uint8_t port = 1; port < 32; ++port) {
    if ((mask >> port & 1) == 0) continue;
    ibv_port_attr attr{};
    works(fmt::format("ibv_query_port of port {}", port),
          controller.library.ibv_query_port(controller.host.verbs, port, &attr));
  }
}

void algorithms(Session& session) {
  Controller controller(session);
  const char** const list = controller.device.cc.algorithms;
  works("the list of algorithms", list);
  for (int i = 0; i < 64; ++i) {
    if (list[i] == nullptr) fail("\"uet-1.0-nscc\" among the algorithms", "it is not there");
    if (std::strcmp(list[i], "uet-1.0-nscc") == 0) return;
  }
  fail("NULL at the end of the list", "64 names and no end");
}

void free_count(Session& session) {
  Controller controller(session);
  const std::uint32_t before = controller.device.ev.ev_free_count;
  controller.format_online();
  equal("explicit profile", errno_name(controller.explicit_offline(8)), errno_name(0));
  mrc_ctl_device_attr now{};
  works("mrc_ctl_query_device",
        controller.library.mrc_ctl_query_device(controller.host.verbs, &now));
  holds(now.ev.ev_free_count + 8 <= before, "8 EVs fewer free",
        fmt::format("{} of {}", now.ev.ev_free_count, before));
}

// Changes the administrative state of the last port. The destructor restores it.
struct Port {
  Controller controller;
  std::uint8_t number;
  mrc_ctl_port_admin_state before;
  explicit Port(Session& session)
      : controller(session),
        number(static_cast<std::uint8_t>(std::bit_width(controller.device.phy_port_mask) - 1)),
        before(get()) {}
  ~Port() {
    mrc_ctl_port_attr attr{.port_admin_state = before};
    controller.library.mrc_ctl_modify_port.call_if_present(controller.host.context, number, &attr,
                                                           MRC_CTL_PORT_ADMIN_STATE);
  }
  int set(mrc_ctl_port_admin_state state) {
    mrc_ctl_port_attr attr{.port_admin_state = state};
    return controller.library.mrc_ctl_modify_port(controller.host.context, number, &attr,
                                                  MRC_CTL_PORT_ADMIN_STATE);
  }
  mrc_ctl_port_admin_state get() {
    mrc_ctl_port_attr attr{};
    works("mrc_ctl_query_port",
          controller.library.mrc_ctl_query_port(controller.host.context, number, &attr,
                                                MRC_CTL_PORT_ADMIN_STATE));
    return attr.port_admin_state;
  }
  ibv_port_state link() {
    ibv_port_attr attr{};
    works("ibv_query_port",
          controller.library.ibv_query_port(controller.host.verbs, number, &attr));
    return attr.state;
  }
};

void admin_state(Session& session) {
  Port port(session);
  const int disabled = port.set(MRC_CTL_PORT_ADMIN_DISABLED);
  if (disabled == -1 && errno == EPERM) skip("changing ports needs CAP_NET_ADMIN");
  works("mrc_ctl_modify_port to DISABLED", disabled);
  equal("admin state", static_cast<int>(port.get()), static_cast<int>(MRC_CTL_PORT_ADMIN_DISABLED));
  equal("ibv_query_port: IBV_PORT_DOWN", static_cast<int>(port.link()),
        static_cast<int>(IBV_PORT_DOWN));
  works("mrc_ctl_modify_port to ENABLED", port.set(MRC_CTL_PORT_ADMIN_ENABLED));
  equal("admin state", static_cast<int>(port.get()), static_cast<int>(MRC_CTL_PORT_ADMIN_ENABLED));
}

void unknown_port_is_refused(Session& session) {
  Controller controller(session);
  mrc_ctl_port_attr attr{.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED};
  for (const int port : {0, 255}) {
    fails_minus_one(fmt::format("mrc_ctl_query_port of port {}", port),
                    controller.library.mrc_ctl_query_port(controller.host.context,
                                                          static_cast<std::uint8_t>(port), &attr,
                                                          MRC_CTL_PORT_ADMIN_STATE),
                    {EINVAL});
    fails_minus_one(fmt::format("mrc_ctl_modify_port of port {}", port),
                    controller.library.mrc_ctl_modify_port(controller.host.context,
                                                           static_cast<std::uint8_t>(port), &attr,
                                                           MRC_CTL_PORT_ADMIN_STATE),
                    {EINVAL, EPERM});
  }
}

constexpr Test kTests[] = {
    {.id = "api.ctl.device.query-ex",
     .clause = "mrc_ctl.h: mrc_ctl_query_device_ex",
     .what = "returns the same as mrc_ctl_query_device, and that MRC is supported",
     .body = query_ex},
    {.id = "api.ctl.device.limits",
     .clause = "mrc_ctl.h: struct mrc_ctl_device_attr",
     .what = "the limits of EVs and profiles are consistent",
     .body = limits_are_consistent},
    {.id = "api.ctl.device.ports",
     .clause = "mrc_ctl.h: phy_port_mask",
     .what = "ports count from 1, and ibv_query_port knows each",
     .body = ports},
    {.id = "api.ctl.device.algorithms",
     .clause = "mrc_ctl.h: cc.algorithms",
     .what = "the list has \"uet-1.0-nscc\" and ends with NULL",
     .body = algorithms},
    {.id = "api.ctl.device.free-count",
     .clause = "mrc_ctl.h: ev_free_count",
     .certainty = Certainty::kOurs,
     .level = Level::kShould,
     .what = "EVs of a profile no longer count as free",
     .body = free_count},
    {.id = "api.ctl.port.admin",
     .clause = "mrc_ctl.h: struct mrc_ctl_port_attr",
     .what = "a disabled port reports IBV_PORT_DOWN, and can be enabled again",
     .body = admin_state},
    {.id = "api.ctl.port.none",
     .clause = "mrc_ctl.h: mrc_ctl_query_port, EINVAL",
     .what = "ports 0 and 255 are EINVAL",
     .body = unknown_port_is_refused},
};

}  // namespace

std::span<const Test> ctl_device_tests() { return kTests; }

}  // namespace weft::conformance
