#include "conformance/report.h"

#include <fmt/core.h>

#include <map>

namespace weft::conformance {
namespace {

std::string reason_of(const Outcome& outcome) {
  if (outcome.status == Status::kFail)
    return fmt::format("expected {}; got {}", outcome.expected, outcome.got);
  return outcome.got;
}

// Escapes the text for an XML attribute; drops characters that XML 1.0 does not permit there.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // The text may come from the library, so it may contain any bytes.
        out +=
            static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
    }
  }
  return out;
}

// The area of a test's id: "api.qp" for "api.qp.create.reset".
std::string area_of(std::string_view id) {
  const std::size_t first = id.find('.');
  return std::string(id.substr(0, id.find('.', first + 1)));
}

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1e3; }

std::string case_of(const Outcome& outcome) {
  const Test& test = *outcome.test;
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">\n",
                                escaped(area_of(test.id)), escaped(test.id), seconds(outcome.took));
  out += fmt::format(
      "      <properties><property name=\"clause\" value=\"{}\"/>"
      "<property name=\"certainty\" value=\"{}\"/>"
      "<property name=\"level\" value=\"{}\"/>"
      "<property name=\"what\" value=\"{}\"/></properties>\n",
      escaped(test.clause), to_string(test.certainty), to_string(test.level), escaped(test.what));
  const std::string reason = escaped(reason_of(outcome));
  if (outcome.status == Status::kFail && test.level == Level::kMust) {
    out += fmt::format("      <failure message=\"{}\"/>\n", reason);
  } else if (outcome.status == Status::kFail) {
    out += fmt::format("      <skipped message=\"SHOULD: {}\"/>\n", reason);
  } else if (outcome.status == Status::kSkip) {
    out += fmt::format("      <skipped message=\"{}\"/>\n", reason);
  } else if (outcome.status == Status::kError) {
    out += fmt::format("      <error message=\"{}\"/>\n", reason);
  }
  return out + "    </testcase>\n";
}

// An extra test case for a run that was cut short. Without it the report would look complete.
std::string suite_cut_short(const std::string& why) {
  return fmt::format(
      "  <testsuite name=\"run\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\" "
      "time=\"0.000\">\n"
      "    <testcase classname=\"run\" name=\"run.complete\" time=\"0.000\">\n"
      "      <error message=\"{}\"/>\n"
      "    </testcase>\n"
      "  </testsuite>\n",
      escaped(why));
}

}  // namespace

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}.{}", version >> 24, version >> 16 & 0xff, version & 0xffff);
}

std::string heading(const std::string& library, const Survey& survey) {
  return fmt::format("{}: device {}, GID {}, {} ports, API {}, control API {}, ICRC {}{}\n",
                     library, survey.device, survey.gid.empty() ? "unknown" : survey.gid,
                     survey.ports, version_text(survey.api_version),
                     version_text(survey.ctl_version), to_string(survey.icrc),
                     survey.icrc_known ? "" : " (assumed)");
}

std::string line_of(const Outcome& outcome, std::size_t id_width) {
  const Test& test = *outcome.test;
  std::string out = fmt::format("{:<5}  {:<6}  {:<{}}  {}\n", to_string(outcome.status),
                                to_string(test.level), test.id, id_width, test.what);
  if (outcome.status != Status::kPass) {
    out += fmt::format("{:15}{} [{}, {}]\n", "", reason_of(outcome), test.clause,
                       to_string(test.certainty));
  }
  return out;
}

std::string summary_of(const Count& count) {
  return fmt::format("{} passed, {} MUST and {} SHOULD failed, {} skipped, {} error{}\n",
                     count.pass, count.fail_must, count.fail_should, count.skip, count.error,
                     count.error == 1 ? "" : "s");
}

std::string row_of(const Test& test, std::size_t id_width) {
  return fmt::format("{:<6}  {:<{}}  {} [{}, {}]\n", to_string(test.level), test.id, id_width,
                     test.what, test.clause, to_string(test.certainty));
}

std::string junit(const std::string& library, const Survey& survey,
                  const std::vector<Outcome>& outcomes, const std::string& cut_short) {
  std::map<std::string, std::vector<Outcome>> areas;
  for (const Outcome& outcome : outcomes) areas[area_of(outcome.test->id)].push_back(outcome);
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weft conformance\">\n";
  for (const auto& [area, cases] : areas) {
    const Count sum = count(cases);
    std::chrono::milliseconds took{0};
    for (const Outcome& outcome : cases) took += outcome.took;
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
        "time=\"{:.3f}\">\n",
        escaped(area), cases.size(), sum.fail_must, sum.error, sum.skip + sum.fail_should,
        seconds(took));
    out += fmt::format(
        "    <properties><property name=\"library\" value=\"{}\"/>"
        "<property name=\"device\" value=\"{}\"/></properties>\n",
        escaped(library), escaped(survey.device));
    for (const Outcome& outcome : cases) out += case_of(outcome);
    out += "  </testsuite>\n";
  }
  if (!cut_short.empty()) out += suite_cut_short(cut_short);
  return out + "</testsuites>\n";
}

}  // namespace weft::conformance
