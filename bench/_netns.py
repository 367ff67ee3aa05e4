"""Network namespaces for benchmarks: two hosts joined by veth pairs, one pair a plane. Made for one run, gone after it."""

import contextlib
import os
import subprocess

MTU = 4200


def why_not():
    """None where namespaces can be made, else the reason."""
    if os.geteuid() != 0:
        return "network namespaces need root: only the loopback was measured"
    made = subprocess.run(["ip", "netns", "add", f"weft-try-{os.getpid()}"], capture_output=True, text=True)
    if made.returncode != 0:
        return f"network namespaces cannot be made here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", f"weft-try-{os.getpid()}"])
    return None


class Pair:
    """Hosts `a` and `b`; plane p has the addresses fd00:p::a and fd00:p::b."""

    def __init__(self, planes):
        self.planes = range(1, planes + 1)
        self.names = {end: f"weft-{end}-{os.getpid()}" for end in "ab"}

    def address(self, end, plane):
        return f"fd00:{plane}::{end}"

    def addresses(self, end):
        return ",".join(self.address(end, plane) for plane in self.planes)

    def device(self, end, plane):
        return f"p{plane}"

    def command(self, end, *words):
        return ["ip", "netns", "exec", self.names[end], *words]

    def ip(self, end, *words):
        subprocess.run(["ip", "-n", self.names[end], *words], check=True)

    def _make(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        for plane in self.planes:
            subprocess.run(["ip", "link", "add", self.device("a", plane), "netns", self.names["a"], "mtu", str(MTU),
                            "type", "veth", "peer", "name", self.device("b", plane), "netns", self.names["b"],
                            "mtu", str(MTU)], check=True)
        for end in "ab":
            self.ip(end, "link", "set", "lo", "up")
            for plane in self.planes:
                self.ip(end, "addr", "add", f"{self.address(end, plane)}/64", "dev", self.device(end, plane), "nodad")
                self.ip(end, "link", "set", self.device(end, plane), "up")

    def _remove(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextlib.contextmanager
def pair(planes):
    hosts = Pair(planes)
    try:
        hosts._make()
        yield hosts
    finally:
        hosts._remove()
