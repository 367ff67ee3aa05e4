"""Builds OCP's unmodified benchmark with its own headers and our library, runs it, and reads its output.

The program exits with 0 even if data did not arrive as sent, and only prints it; therefore its output is read.
"""

import os
import pathlib
import sys

import mrc_programs

SIZES = [1 << i for i in range(27)]  # the benchmark's sweep, 1 B to 64 MiB


# The files of OCP's tree that are built and compared.
NEEDED = ["mrc.h", "mrc_ctl.h", "examples/benchmark/mrc_example.c", "examples/benchmark/utils.c",
          "examples/ev_expansion/ev_expansion.c"]


class Failed(Exception):
    """The benchmark failed; the text is one line."""


def tree_of_environment():
    """The folder that the variable WEFT_PEER_OCP names; None if the variable is unset or empty. A folder that does not exist,
    or is not OCP's tree, ends the process with one line."""
    tree = os.environ.get("WEFT_PEER_OCP")
    if not tree:
        return None
    for file in NEEDED:
        if not pathlib.Path(tree, file).is_file():
            print(f"WEFT_PEER_OCP={tree}: there is no {file}; expected a source tree of OCP-Multipath-Reliable-Connection; "
                  "clone https://github.com/opencomputeproject/OCP-Multipath-Reliable-Connection, or unset the variable",
                  file=sys.stderr)
            sys.exit(2)
    return tree


def build(tree, library, folder):
    source = pathlib.Path(tree) / "examples/benchmark"
    return mrc_programs.build(f"{folder}/mrc_example", [source / "mrc_example.c", source / "utils.c"], library,
                              "-std=gnu11", f"-I{tree}")


def run(program, arguments, patience_s, hosts=None, meanwhile=None, settings=None):
    """Runs both ends, on the loopback with `settings` (environment) or between `hosts`, and returns the rows: {size: Gb/s}.
    Raises Failed."""
    port = mrc_programs.free_port()
    both = [program, "-d", "weft0", "-p", port, *arguments]
    if hosts is None:
        server, client = both, [program, "127.0.0.1", *both[1:]]
        environments = {"client_env": settings, "server_env": settings}
    else:
        server = hosts.command("b", *both)
        client = hosts.command("a", program, hosts.address("b", 0), *both[1:])
        environments = {"client_env": hosts.environment("a"), "server_env": hosts.environment("b")}
    ended = mrc_programs.run_pair(server, client, port, patience_s, meanwhile=meanwhile, **environments)
    print(ended.client_said)
    print(ended.server_said)
    if ended.client_status or ended.server_status:
        raise Failed(f"the client ended with {ended.client_status}, the server with {ended.server_status}")
    if "Data mismatch" in ended.server_said or "Data mismatch" in ended.client_said:
        raise Failed("data mismatch")
    rows = [line.split() for line in ended.client_said.splitlines() if line.strip()[:1].isdigit()]
    found = {int(row[0]): float(row[2]) for row in rows if len(row) == 4}
    if list(found) != SIZES:
        raise Failed(f"expected a line for each size from 1 B to 64 MiB, found {list(found)}")
    return found, ended
