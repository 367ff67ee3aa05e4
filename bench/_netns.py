"""Network namespaces for benchmarks: two hosts joined by one veth pair per plane, for the duration of one run."""

import contextlib
import os
import subprocess
import time

MTU = 4200


def why_not():
    """None if namespaces can be created, else the reason."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    made = subprocess.run(["ip", "netns", "add", f"weft-try-{os.getpid()}"], capture_output=True, text=True)
    if made.returncode != 0:
        return f"network namespaces cannot be made here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", f"weft-try-{os.getpid()}"])
    return None


class Pair:
    """Hosts `a` and `b`; plane p has the addresses fd00:p::a and fd00:p::b. `rate`, `burst` and `limit` are tbf's, for
    each direction of each plane; without `offloads` the kernel sends every packet separately, as on a wire."""

    def __init__(self, planes, rate=None, burst="128kb", limit="1mb", offloads=True):
        self.planes = range(1, planes + 1)
        self.shape = (rate, burst, limit)
        self.offloads = offloads
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

    def run(self, end, *words, check=True, text=None):
        return subprocess.run(self.command(end, *words), check=check, capture_output=True, text=True, input=text)

    def down(self, end, plane):
        self.ip(end, "link", "set", self.device(end, plane), "down")

    def up(self, end, plane):
        self.ip(end, "link", "set", self.device(end, plane), "up")

    def lose(self, end, plane, of_1000):
        """Drops so many of 1,000 TCP and UDP packets that arrive at this end."""
        self.run(end, "nft", "-f", "-", text=f"""
            add table inet weft
            add chain inet weft in {{ type filter hook prerouting priority 0; }}
            add rule inet weft in iifname "{self.device(end, plane)}" meta l4proto {{ tcp, udp }} \
                numgen random mod 1000 < {of_1000} drop
        """)

    @contextlib.contextmanager
    def silencer(self, plane):
        """Yields a function that silences a plane in both directions at once: every arriving packet is dropped, and neither
        end is notified. Helper programs are started before and wait, because starting them then would take the cores of
        the transfer."""
        programs = {end: subprocess.Popen(self.command(end, "nft", "-i"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True) for end in "ab"}

        def tell(words):
            for end, program in programs.items():
                program.stdin.write(words.format(device=self.device(end, plane)) + "\n")
                program.stdin.flush()

        try:
            tell("add table netdev weft")
            yield lambda: tell('add chain netdev weft in {{ type filter hook ingress device "{device}" priority 0; policy drop; }}')
            said = [program.communicate(timeout=10)[0] for program in programs.values()]
            if any(said):
                raise RuntimeError(f"nft: {' '.join(said)}")
        finally:
            for program in programs.values():
                if program.poll() is None:
                    program.kill()
                    program.wait()

    def heal(self, end):
        for family in ("inet", "netdev"):
            self.run(end, "nft", "delete", "table", family, "weft", check=False)

    def _make(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
            subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.keep_addr_on_down=1",
                            "net.ipv6.conf.default.keep_addr_on_down=1", "net.mptcp.enabled=1",
                            "net.ipv4.tcp_rmem=4096 131072 33554432", "net.ipv4.tcp_wmem=4096 131072 33554432"],
                           check=True)
        for plane in self.planes:
            subprocess.run(["ip", "link", "add", self.device("a", plane), "netns", self.names["a"], "mtu", str(MTU),
                            "type", "veth", "peer", "name", self.device("b", plane), "netns", self.names["b"],
                            "mtu", str(MTU)], check=True)
        for end in "ab":
            self.ip(end, "link", "set", "lo", "up")
            for plane in self.planes:
                self.ip(end, "addr", "add", f"{self.address(end, plane)}/64", "dev", self.device(end, plane), "nodad")
                self.ip(end, "link", "set", self.device(end, plane), "up")
                if not self.offloads:
                    self.run(end, "ethtool", "-K", self.device(end, plane), "tso", "off", "gso", "off", "gro", "off",
                             "tx-udp-segmentation", "off")
                rate, burst, limit = self.shape
                if rate is not None:
                    self.run(end, "tc", "qdisc", "add", "dev", self.device(end, plane), "root", "tbf", "rate", rate,
                             "burst", burst, "limit", limit)
        # MPTCP: b announces its addresses in the other planes, and a opens a subflow to each.
        self.run("a", "ip", "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8")
        self.run("b", "ip", "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8")
        for plane in self.planes[1:]:
            self.run("b", "ip", "mptcp", "endpoint", "add", self.address("b", plane), "signal")

    def _settle(self):
        """Waits until the kernel has checked that the addresses are unique (DAD): a link that goes down before comes
        back a second late."""
        until = time.monotonic() + 10
        while any(self.run(end, "ip", "-6", "addr", "show", "tentative").stdout for end in "ab"):
            if time.monotonic() > until:
                raise RuntimeError("the addresses of new interfaces stay tentative; see `ip -6 addr show tentative`")
            time.sleep(0.1)

    def _remove(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextlib.contextmanager
def pair(planes, **shape):
    hosts = Pair(planes, **shape)
    try:
        hosts._make()
        hosts._settle()
        yield hosts
    finally:
        hosts._remove()
