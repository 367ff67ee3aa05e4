// weft: one program, `weft <noun> <verb>`; each noun has its own file. Exit status 0: success. 1:
// the command ran and failed. 2: misuse.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <new>
#include <sstream>
#include <string>
#include <system_error>

#include "cli/bench_command.h"
#include "cli/conformance_command.h"
#include "cli/ctl_command.h"
#include "cli/doctor_command.h"
#include "cli/lab_command.h"
#include "cli/sim_command.h"

namespace {

std::string commands_of(const CLI::App& app) {
  std::string out;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    out += (out.empty() ? "" : ", ") + sub->get_name();
  return out;
}

// Reports the first word if it is not a command, with the list of commands. CLI11 would only say
// that a command is missing.
bool names_no_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  std::string command = "weft";
  for (int i = 1; i < argc && argv[i][0] != '-' && at->get_require_subcommand_min() > 0; ++i) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->check_name(argv[i])) next = sub;
    }
    if (next == nullptr) {
      std::fprintf(stderr, "weft: %s: no such command; expected one of: %s; see `%s --help`\n",
                   argv[i], commands_of(*at).c_str(), command.c_str());
      return true;
    }
    command += std::string(" ") + argv[i];
    at = next;
  }
  return false;
}

// Picks one word from those that CLI11 could not use, which it lists in reverse order: the first
// flag, otherwise the first word.
std::string first_of(const std::string& words) {
  std::istringstream in(words);
  std::string first;
  for (std::string word; in >> word;) {
    if (first.empty() || word[0] == '-' || first[0] != '-') first = word;
  }
  return first;
}

// The first unknown flag, or empty. It is reported before missing arguments, because it may be a
// misspelt one.
std::string unknown_flag(const CLI::App& command) {
  if (command.get_prefix_command()) return {};  // the following flags are for another program
  for (const std::string& word : command.remaining()) {
    if (word.size() > 1 && word[0] == '-') return word.substr(0, word.find('='));
  }
  return {};
}

// Rewrites CLI11's messages about a flag with too many values or none, such as "--seed: At Most 1
// required but ...".
std::string words_of_mismatch(const std::string& said) {
  const std::string flag = said.substr(0, said.find(": "));
  if (said.find("At Most") != said.npos) return flag + ": given more than once; expected once";
  if (said.ends_with("missing")) return flag + ": its value is missing";
  return said;
}

// Prints what is wrong. If CLI11 does not say what was expected, adds that.
void say_misuse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string command = "weft";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  std::string what = error.what();
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (const std::string flag = unknown_flag(*at); !extras && !flag.empty())
    what = flag + ": not expected here";
  else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    what = words_of_mismatch(what);
  else if (!extras && at->get_require_subcommand_min() > 0)
    what = "no command; expected one of: " + commands_of(*at);
  else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    what = what.substr(what.find(": ") + 2) + ": expected another kind of value";
  else if (extras)
    what = first_of(what.substr(what.find(": ") + 2)) + ": not expected here";
  std::fprintf(stderr, "weft: %s; see `%s --help`\n", what.c_str(), command.c_str());
}

// Opens descriptors 0 to 2 if they are closed. Otherwise a socket could become descriptor 1 and
// receive what is printed to stdout. stdout becomes /dev/full, on which writing fails, so that the
// missing stdout is noticed.
void open_what_is_closed() {
  constexpr const char* kInstead[] = {"/dev/null", "/dev/full", "/dev/null"};
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // open() returns the lowest free number, which is `fd`.
    [[maybe_unused]] const int opened = open(kInstead[fd], O_RDWR);
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_what_is_closed();
  // With a handler, write() fails with an error at the file size limit, and the error is reported.
  // SIGXFSZ is not ignored, because child programs would inherit that.
  std::signal(SIGXFSZ, [](int) {});
  CLI::App app{"Weft: MRC in software, and the fabric it is proved in"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "weft 0.1.0");
  int status = 0;
  weft::cli::add_sim_command(app, status);
  weft::cli::add_bench_command(app, status);
  weft::cli::add_ctl_command(app, status);
  weft::cli::add_conformance_command(app, status);
  weft::cli::add_doctor_command(app, status);
  weft::cli::add_lab_command(app, status);
  if (names_no_command(app, argc, argv)) return 2;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    status = app.exit(e);  // --help and --version were printed
  } catch (const CLI::ParseError& e) {
    say_misuse(app, e);
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(
        stderr,
        "weft: out of memory; fewer hosts or flows need less, --details says what takes it\n");
    return 1;
  } catch (const std::system_error& e) {  // thrown when printing fails
    std::fprintf(stderr, "weft: stdout: %s\n", e.what());
    return 1;
  }
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || status != 0) return status;  // a failure was already reported
  std::fprintf(stderr, "weft: stdout: not everything could be written\n");
  return 1;
}
