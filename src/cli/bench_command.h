// `weft bench write`: RDMA writes between two hosts, or two processes of this one.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds the `bench` subcommand. If it is called, `status` becomes the exit status.
void add_bench_command(CLI::App& app, int& status);

}  // namespace weft::cli
