#!/usr/bin/env python3
"""OCP's benchmark, unmodified, against our library: server and client in two processes on the loopback.

Takes OCP's tree by WEFT_PEER_OCP. The program exits with 0 even where data did not arrive as sent and only says so, so
its output is read. The sweep is its own, 1 B to 64 MiB; WEFT_OCP_ARGS replaces the number of iterations, which would
take minutes ("-n 20 -w 2").
"""

import os
import pathlib
import shlex
import socket
import subprocess
import sys
import tempfile

SKIP = 77
PATIENCE_S = 600


def main():
    tree = os.environ.get("WEFT_PEER_OCP")
    if not tree:
        print("skipped: WEFT_PEER_OCP does not name a tree of OCP-Multipath-Reliable-Connection")
        return SKIP
    library = pathlib.Path(os.environ["WEFT_LIB_MRC"])
    if b"__asan_init" in library.read_bytes() or b"__tsan_init" in library.read_bytes():
        print("skipped: a library with sanitizers does not run inside a program without them")
        return SKIP
    source = pathlib.Path(tree) / "examples/benchmark"
    arguments = shlex.split(os.environ.get("WEFT_OCP_ARGS", "-n 20 -w 2"))
    with tempfile.TemporaryDirectory() as scratch:
        program = f"{scratch}/mrc_example"
        subprocess.run(["cc", "-O2", "-std=gnu11", f"-I{tree}", "-o", program, source / "mrc_example.c",
                        source / "utils.c", library, f"-Wl,-rpath,{library.parent}", "-lm", "-libverbs"], check=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        both = [program, "-d", "weft0", "-p", port, *arguments]
        environment = dict(os.environ, MRC_LOG_LEVEL="2")
        server = subprocess.Popen(both, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            server_said = ""
            while "listening" not in server_said:
                line = server.stdout.readline()
                if not line:
                    print(server_said)
                    return "the server ended before it listened"
                server_said += line
            client = subprocess.run([both[0], "127.0.0.1", *both[1:]], env=environment, timeout=PATIENCE_S,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            server_said += server.communicate(timeout=60)[0]
        finally:
            server.kill()
            server.wait()
    print(client.stdout)
    print(server_said)
    if client.returncode or server.returncode:
        return f"client ended with {client.returncode}, server with {server.returncode}"
    if "Data mismatch" in server_said or "Data mismatch" in client.stdout:
        return "data mismatch"
    rows = [line.split() for line in client.stdout.splitlines() if line.strip()[:1].isdigit()]
    sizes = [int(row[0]) for row in rows if len(row) == 4]
    if sizes != [1 << i for i in range(27)]:
        return f"expected a line for each size from 1 B to 64 MiB, found {sizes}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
