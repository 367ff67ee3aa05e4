// Controller: a context that changes profiles, shared by the tests of mrc_ctl.h. It uses only free
// profiles (in state INIT), from the highest number down, and returns them to INIT at the end. So
// the device is unchanged afterwards.
#pragma once

#include <vector>

#include "conformance/end.h"

namespace weft::conformance {

class Controller {
 public:
  explicit Controller(Session& session);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  Host host;
  const Library& library;
  mrc_ctl_device_attr device{};
  std::uint64_t format_id = 0, ev_id = 0, cc_id = 0;

  // Each returns 0 or errno. EPERM, a missing privilege, skips the test.
  int set_format(mrc_ctl_ev_fmt_profile_attr attr, int mask);
  int set_ev(mrc_ctl_ev_profile_attr attr, int mask);
  int set_cc(mrc_ctl_cc_profile_attr attr, int mask);
  int move_format(mrc_ctl_profile_state state);
  int move_ev(mrc_ctl_profile_state state);
  int move_cc(mrc_ctl_profile_state state);
  mrc_ctl_profile_state ev_state() const;
  mrc_ctl_profile_state format_state() const;
  mrc_ctl_profile_state cc_state() const;

  // The format profile ONLINE: STEV with two fields of 16 bits, or UDP with one. Throws.
  mrc_ctl_ev_fmt_mode mode() const;
  int fields(std::vector<std::uint8_t> widths, mrc_ctl_profile_state to);
  void format_online();
  // An explicit EV profile with that format, OFFLINE, with unpopulated EVs.
  int explicit_offline(std::uint32_t count);
  void populate(std::uint32_t count);
  int ev_op(mrc_ctl_ev_op op, std::vector<mrc_ctl_ev_op_entry>& entries);
  std::vector<mrc_ctl_ev_op_entry> array(std::uint32_t count);

  // EV number i, on port 1 + i mod port_count(), as bytes in network order.
  mrc_ctl_ev ev(std::uint32_t i) const;
  std::uint32_t port_count() const;

 private:
  int allowed(int returned) const;
};

}  // namespace weft::conformance
