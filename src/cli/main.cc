// weft: one program, `weft <noun> <verb>`, one file a noun. Exit 0: it held. 1: it ran and failed.
// 2: misuse.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <string>

#include "cli/bench_command.h"
#include "cli/sim_command.h"

int main(int argc, char** argv) {
  CLI::App app{"Weft: MRC in software, and the fabric it is proved in"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "weft 0.1.0");
  int status = 0;
  weft::cli::add_sim_command(app, status);
  weft::cli::add_bench_command(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::string command = "weft";
    for (const CLI::App* sub = &app; !sub->get_subcommands().empty();) {
      sub = sub->get_subcommands().front();
      command += " " + sub->get_name();
    }
    std::fprintf(stderr, "weft: %s; see `%s --help`\n", e.what(), command.c_str());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(
        stderr,
        "weft: out of memory; fewer hosts or flows need less, --details says what takes it\n");
    return 1;
  }
  return status;
}
