// Controller: a context that changes profiles, for the tests of mrc_ctl.h. It uses only profiles
// that are free (in state INIT), beginning with the highest number. Its destructor returns them to
// INIT, so that the device is unchanged afterwards.
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

  // Each function returns 0 or an errno value. EPERM (the user may not do this) skips the test.
  int set_format(mrc_ctl_ev_fmt_profile_attr attr, int mask);
  int set_ev(mrc_ctl_ev_profile_attr attr, int mask);
  int set_cc(mrc_ctl_cc_profile_attr attr, int mask);
  int move_format(mrc_ctl_profile_state state);
  int move_ev(mrc_ctl_profile_state state);
  int move_cc(mrc_ctl_profile_state state);
  mrc_ctl_profile_state ev_state() const;
  mrc_ctl_profile_state format_state() const;
  mrc_ctl_profile_state cc_state() const;

  // fields() and format_online() configure the format profile: STEV with two fields of 16 bits, or
  // UDP with one field. format_online() brings it ONLINE, or throws.
  mrc_ctl_ev_fmt_mode mode() const;
  int fields(std::vector<std::uint8_t> widths, mrc_ctl_profile_state to);
  void format_online();
  // Makes an explicit EV profile of that format OFFLINE; its EVs are not populated.
  int explicit_offline(std::uint32_t count);
  void populate(std::uint32_t count);
  int ev_op(mrc_ctl_ev_op op, std::vector<mrc_ctl_ev_op_entry>& entries);
  std::vector<mrc_ctl_ev_op_entry> array(std::uint32_t count);

  // EV number i, as bytes in network order. Its port is 1 + i mod port_count().
  mrc_ctl_ev ev(std::uint32_t i) const;
  std::uint32_t port_count() const;

 private:
  int allowed(int returned) const;
};

}  // namespace weft::conformance
