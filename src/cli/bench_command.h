// `weft bench write`: measures RDMA writes between two hosts, or between two processes of one host.
#pragma once

#include "cli/app_fwd.h"

namespace weft::cli {

// Adds the `bench` subcommand. If it is called, `status` becomes the exit status.
void add_bench_command(CLI::App& app, int& status);

}  // namespace weft::cli
