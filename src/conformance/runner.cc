#include "conformance/runner.h"

#include <cstring>

#include "conformance/child.h"
#include "conformance/duel.h"
#include "os/interfaces.h"

namespace weft::conformance {
namespace {

// Separates the fields of a child's result. No field contains this character.
constexpr char kBetween = '\x1f';

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

std::string join(Status status, const std::string& expected, const std::string& got) {
  return std::string(1, static_cast<char>('0' + static_cast<int>(status))) + kBetween +
         one_line(expected) + kBetween + one_line(got);
}

std::string run_body(const Test& test, const Options& options) {
  Session session(options);
  try {
    test.body(session);
    return join(Status::kPass, "", "");
  } catch (const Failure& failure) {
    return join(Status::kFail, failure.expected, failure.got);
  } catch (const Skip& skipped) {
    return join(Status::kSkip, "", skipped.reason);
  } catch (const SuiteError& error) {
    return join(Status::kError, "", error.what);
  } catch (const std::exception& e) {
    return join(Status::kError, "", e.what());
  }
}

std::string how_it_died(const ChildResult& child) {
  std::string out = child.signal != 0 ? std::string("signal ") + strsignal(child.signal)
                                      : fmt::format("exit status {}", child.exit_status);
  if (!child.last_line.empty()) out += ": " + one_line(child.last_line.substr(0, 200));
  return out;
}

}  // namespace

std::string_view to_string(Status status) {
  switch (status) {
    case Status::kPass:
      return "pass";
    case Status::kFail:
      return "fail";
    case Status::kSkip:
      return "skip";
    case Status::kError:
      return "error";
  }
  return "";
}

Outcome run_test(const Test& test, const Options& options) {
  Outcome out{.test = &test};
  const auto began = Clock::now();
  const auto child = run_in_child(options.timeout, [&] { return run_body(test, options); });
  out.took = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
  if (!child) {
    out.got = child.error().message;
  } else if (child->timed_out) {
    out.status = Status::kFail;
    out.expected = fmt::format("an end within {} ms", options.timeout.count());
    out.got = "it hangs";
  } else if (!child->finished) {
    out.status = Status::kFail;
    out.expected = "the library lets the program live";
    out.got = how_it_died(*child);
  } else {
    const std::string& text = child->text;
    const std::size_t first = text.find(kBetween), second = text.rfind(kBetween);
    out.status = static_cast<Status>(text[0] - '0');
    out.expected = text.substr(first + 1, second - first - 1);
    out.got = text.substr(second + 1);
  }
  return out;
}

namespace {

// Lets the device send one write to the tester: its packet shows which bytes the ICRC covers.
void find_icrc_cover(Session& session, Survey& out) {
  if (session.options().icrc) {
    out.icrc = *session.options().icrc;
    return;
  }
  try {
    Duel duel(session);
    duel.post(100);
    const ReceivedPacket seen = duel.next_write();
    out.icrc_known = true;
    if (!seen.icrc_full && seen.icrc_headers) out.icrc = IcrcCover::kHeaders;
  } catch (const Failure&) {
    // Ignore the error here: each wire test reports it.
  } catch (const Skip&) {
  } catch (const SuiteError&) {
  }
}

std::string survey_in_child(const Options& options) {
  Session session(options);
  Survey out;
  try {
    const Library& library = session.library();
    if (!library.found.has_mrc())
      return fmt::format("!{}: it has no function of mrc.h; expected a lib_mrc.so",
                         options.library);
    const auto version = [](const auto& query) {
      std::uint32_t current = 0, last = 0, vendor = 0, last_vendor = 0;
      if (query.is_present()) query(&current, &last, &vendor, &last_vendor);
      return current;
    };
    out.api_version = version(library.mrc_query_version);
    out.ctl_version = version(library.mrc_ctl_query_version);
    ibv_context* const verbs = open_device(session);
    out.device = library.ibv_get_device_name(verbs->device);
    ibv_gid gid{};
    if (library.ibv_query_gid(verbs, 1, options.gid_index, &gid) != 0)
      return fmt::format(
          "!--gid-index {}: port 1 of {} has no such GID; expected one that "
          "`ibv_devinfo -v` shows",
          options.gid_index, out.device);
    std::array<std::byte, 16> bytes;
    std::memcpy(bytes.data(), gid.raw, bytes.size());
    out.gid = os::text_of(base::load_ipv6(bytes, 0));
    mrc_ctl_device_attr attr{};
    if (library.mrc_ctl_query_device.is_present() &&
        library.mrc_ctl_query_device(verbs, &attr) == 0)
      out.ports = static_cast<std::uint32_t>(__builtin_popcount(attr.phy_port_mask));
    library.ibv_close_device(verbs);
    find_icrc_cover(session, out);
  } catch (const Failure& failure) {
    return fmt::format("!{}: expected {}, found {}", options.library, failure.expected,
                       failure.got);
  } catch (const SuiteError& error) {
    return "!" + error.what;
  }
  return fmt::format("{}{}{}{}{}{}{}{}{}{}{}{}{}", out.device, kBetween, out.gid, kBetween,
                     out.api_version, kBetween, out.ctl_version, kBetween, out.ports, kBetween,
                     out.icrc == IcrcCover::kFull ? 0 : 1, kBetween, out.icrc_known ? 1 : 0);
}

}  // namespace

Result<Survey> survey(const Options& options) {
  WEFT_TRY(const ChildResult child,
           run_in_child(options.timeout, [&] { return survey_in_child(options); }));
  if (!child.finished) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: it cannot be tested: opening a device ends with {}",
                             options.library, child.timed_out ? "no end" : how_it_died(child))};
  }
  if (child.text.starts_with('!')) return Error{ErrorKind::kInvalid, child.text.substr(1)};
  std::vector<std::string> fields(1);
  for (const char c : child.text) {
    if (c == kBetween) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (fields.size() != 7) return Error{ErrorKind::kSystem, "the survey's answer is damaged"};
  const auto number = [&](std::size_t i) {
    return static_cast<std::uint32_t>(std::strtoul(fields[i].c_str(), nullptr, 10));
  };
  return Survey{.device = fields[0],
                .gid = fields[1],
                .api_version = number(2),
                .ctl_version = number(3),
                .ports = number(4),
                .icrc = number(5) == 0 ? IcrcCover::kFull : IcrcCover::kHeaders,
                .icrc_known = number(6) != 0};
}

Count count(const std::vector<Outcome>& outcomes) {
  Count out;
  for (const Outcome& outcome : outcomes) {
    switch (outcome.status) {
      case Status::kPass:
        ++out.pass;
        break;
      case Status::kFail:
        ++(outcome.test->level == Level::kMust ? out.fail_must : out.fail_should);
        break;
      case Status::kSkip:
        ++out.skip;
        break;
      case Status::kError:
        ++out.error;
        break;
    }
  }
  return out;
}

}  // namespace weft::conformance
