#include "cli/doctor_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ctl_target.h"
#include "cli/doctor.h"
#include "cli/net_settings.h"
#include "engine/process_config.h"
#include "lab/lab_process.h"
#include "net/steering.h"
#include "os/cpus.h"
#include "os/say.h"

namespace weft::cli {
namespace {

struct DoctorArguments {
  SettingFlags flags;
  bool json = false;
};

const char* name_of(FindingLevel level) {
  switch (level) {
    case FindingLevel::kOk:
      return "ok";
    case FindingLevel::kNote:
      return "note";
    case FindingLevel::kProblem:
      return "problem";
  }
  return "";
}

void show(const Finding& f, std::size_t width) {
  fmt::print("{:<7}  {:<{}}  {}", name_of(f.level), f.name, width, f.found);
  if (!f.cost.empty()) fmt::print("; {}", f.cost);
  if (!f.mend.empty()) fmt::print(" -> {}", f.mend);
  fmt::print("\n");
}

nlohmann::json to_json(const Finding& f) {
  return {{"level", name_of(f.level)},
          {"name", f.name},
          {"found", f.found},
          {"cost", f.cost},
          {"mend", f.mend}};
}

// Refuses settings that every program would refuse. Errors: kInvalid, kSystem.
Result<void> check(const NetSettings& settings) {
  const std::vector<std::uint32_t> own = os::own_cpus();
  for (const std::uint32_t cpu : settings.cpus) {
    if (std::binary_search(own.begin(), own.end(), cpu)) continue;
    return Error{ErrorKind::kInvalid,
                 fmt::format("cpus {}: this process has no CPU {}; expected "
                             "some of {}",
                             os::text_of_cpus(settings.cpus), cpu, os::text_of_cpus(own))};
  }
  WEFT_TRY(net::UdpWorldConfig world, engine::world_config(settings));
  WEFT_TRY(world, net::complete_config(std::move(world)));
  WEFT_CHECK(
      net::Steering::make({.carrier = world.ev_carrier, .evs_per_plane = world.evs_per_plane}));
  return {};
}

// Prints the findings and returns the number of problems.
Result<std::size_t> run(const DoctorArguments& arguments) {
  WEFT_TRY(const NetSettings settings, load_settings(arguments.flags));
  WEFT_TRY(const auto planes, planes_of(settings));
  WEFT_CHECK(check(settings));
  const auto word = controller_obstacles({.settings = arguments.flags});
  net::FactQuestion question;
  question.cpus = settings.cpus;
  for (const os::PlaneChoice& plane : planes) question.planes.push_back(plane.address);
  auto findings =
      diagnose(net::host_facts(question), {.payload = settings.mtu,
                                           .secured = !settings.secret_file.empty(),
                                           .ports_disabled = word ? word->ports_disabled : 0u,
                                           .device_flags = device_flags(arguments.flags),
                                           .lab_tools_missing = lab::missing_tools()});
  if (!word) {
    findings.push_back({.level = FindingLevel::kProblem,
                        .name = "controller-state",
                        .found = word.error().message,
                        .cost = "what controllers said is not known"});
  }
  for (std::size_t i = 0; word && i < word->obstacles.size(); ++i) {
    const ControllerObstacles::Obstacle& one = word->obstacles[i];
    findings.push_back({.level = FindingLevel::kProblem,
                        .name = one.name,
                        .found = one.what,
                        .cost = "programs of lib_mrc.so that name no profile do not work",
                        .mend = one.mend});
  }
  std::size_t problems = 0, notes = 0, width = 0;
  for (const Finding& f : findings) {
    problems += f.level == FindingLevel::kProblem ? 1 : 0;
    notes += f.level == FindingLevel::kNote ? 1 : 0;
    width = std::max(width, f.name.size());
  }
  if (arguments.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Finding& f : findings) all.push_back(to_json(f));
    fmt::print("{}\n",
               nlohmann::json{{"findings", all}, {"problems", problems}, {"notes", notes}}.dump());
  } else {
    for (const Finding& f : findings) show(f, width);
    os::say("{} problem{}, {} note{}\n", problems, problems == 1 ? "" : "s", notes,
            notes == 1 ? "" : "s");
  }
  return problems;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& status) {
  auto* const doctor = app.add_subcommand(
      "doctor", "What on this host costs speed or safety, and the command that mends it");
  const auto arguments = std::make_shared<DoctorArguments>();
  doctor->add_flag("--json", arguments->json, "one JSON object on stdout");
  add_setting_flags(*doctor, arguments->flags);
  doctor->callback([arguments, &status] {
    const auto problems = run(*arguments);
    if (!problems) {
      status = os::fail(problems.error());
    } else if (*problems > 0) {
      status = 1;
    }
  });
}

}  // namespace weft::cli
