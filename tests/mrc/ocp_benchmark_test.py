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
import time

SKIP = 77
PATIENCE_S = 600
LISTEN_TRIES = 400


def wait_for_listener(port, server):
    """Whether somebody listens on that TCP port of this host, before the server ends or patience does."""
    wanted = f":{port:04X}"
    for _ in range(LISTEN_TRIES):
        if server.poll() is not None:
            return False
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                if local.endswith(wanted) and state == "0A":
                    return True
        time.sleep(0.05)
    return False


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
        server = subprocess.Popen(both, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            if not wait_for_listener(int(port), server):
                return "the server does not listen"
            client = subprocess.run([both[0], "127.0.0.1", *both[1:]], timeout=PATIENCE_S,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            server_said = server.communicate(timeout=60)[0]
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
