"""Builds C programs that use lib_mrc.so and runs them as two ends: on the loopback, or in two network namespaces with veth
pairs as planes, which can be cut. Used by tests/mrc and bench/ocp.py.
"""

import contextlib
import os
import pathlib
import subprocess
import time
from dataclasses import dataclass

from free_port import free_port  # noqa: F401, used by files that import this module

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LISTEN_TRIES = 400
# The links between two processes of one host: the settings of both ends, and the log text that names the link.
LOOPBACK_LINKS = {
    "shared memory": ({"WEFT_SHM": "auto", "WEFT_LOG": "info"}, "over shared memory"),
    "UDP": ({"WEFT_SHM": "off", "WEFT_LOG": "info"}, "over 4 planes"),
}


def sanitizer_flags(library):
    """Compiler flags that a program needs if the library has sanitizer_flags."""
    text = pathlib.Path(library).read_bytes()
    if b"__tsan_init" in text:
        return ["-fsanitize=thread"]
    return ["-fsanitize=address,undefined"] if b"__asan_init" in text else []


def build(out, sources, library, *flags):
    """Builds a program that links the library. The program's own headers come first in the search path."""
    library = pathlib.Path(library)
    subprocess.run(["gcc", "-O2", *flags, *sanitizer_flags(library), "-o", out, *sources, library,
                    f"-Wl,-rpath,{library.parent}", "-lm", "-libverbs"], check=True)
    return str(out)


def is_listening(port, pid):
    """Whether a process listens on the TCP port, in the network namespace of process `pid`."""
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if local.endswith(f":{int(port):04X}") and state == "0A":
                return True
    return False


@dataclass
class Ended:
    """The exit status and the whole output of both ends."""

    client_status: int
    server_status: int
    client_said: str
    server_said: str


def run_pair(server, client, port, patience_s, server_env=None, client_env=None, meanwhile=None):
    """Starts the server, waits until it listens, runs the client to its end, then waits for the server. `meanwhile(client)`
    is called while the client runs. Both have ended when this returns."""
    with contextlib.ExitStack() as stack:
        def start(command, env):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       env={**os.environ, **(env or {})})
            stack.callback(process.stdout.close)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        there = start(server, server_env)
        for _ in range(LISTEN_TRIES):
            if there.poll() is not None or is_listening(port, there.pid):
                break
            time.sleep(0.05)
        here = start(client, client_env)
        if meanwhile is not None:
            meanwhile(here)
        client_said = here.communicate(timeout=patience_s)[0]
        server_said = there.communicate(timeout=60)[0]
        return Ended(here.returncode, there.returncode, client_said, server_said)


def why_no_namespaces():
    """None if network namespaces can be created, else the reason."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"wm{os.getpid()}try"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    except FileNotFoundError:
        return "there is no `ip` here (Debian: iproute2)"
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return f"no network namespaces here: {made.stderr.strip()}" if made.returncode != 0 else None


class Hosts:
    """Hosts `a` and `b`, joined by one veth pair per plane, for packets of 4096 bytes of payload. A context manager."""

    MTU = 4200

    def __init__(self, planes=2):
        self.planes = range(planes)
        self.names = {end: f"wm{os.getpid()}{end}" for end in "ab"}

    @staticmethod
    def address(end, plane):
        return f"10.78.{plane}.{'ab'.index(end) + 1}"

    def environment(self, end):
        return {"WEFT_PLANES": ",".join(self.address(end, p) for p in self.planes), "WEFT_LOG": "warn"}

    def command(self, end, *words):
        return ["ip", "netns", "exec", self.names[end], *words]

    def set_plane(self, plane, state):
        """Sets the plane `down` or `up` at host a, so that b also loses its carrier."""
        self._ip("-n", self.names["a"], "link", "set", f"p{plane}", state)

    @staticmethod
    def _ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def __enter__(self):
        try:
            for name in self.names.values():
                self._ip("netns", "add", name)
                self._ip("-n", name, "link", "set", "lo", "up")
            for plane in self.planes:
                self._ip("link", "add", f"p{plane}", "netns", self.names["a"], "mtu", str(self.MTU), "type", "veth", "peer",
                         "name", f"p{plane}", "netns", self.names["b"], "mtu", str(self.MTU))
                for end in "ab":
                    self._ip("-n", self.names[end], "addr", "add", f"{self.address(end, plane)}/24", "dev", f"p{plane}")
                    self._ip("-n", self.names[end], "link", "set", f"p{plane}", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
