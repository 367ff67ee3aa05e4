"""`weft bench write` between two hosts: two network namespaces joined by veth pairs, one for each plane. Skipped without root."""

import json
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import clean_environment  # the import itself changes the environment
import run_tests

WEFT = os.environ["WEFT_BINARY"]
SECONDS_MAX = 90


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class TwoHosts(unittest.TestCase):
    """Each test has its own hosts a and b, with one plane for each MTU that the test asks for."""

    def make(self, *mtus, family=4):
        tag = f"wt{os.getpid() % 100000}"
        self.names = {end: f"{tag}{end}" for end in "ab"}
        for name in self.names.values():
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        self.family = family
        for plane, mtu in enumerate(mtus):
            self.join(plane, mtu)
        self.planes = {end: ",".join(self.address(end, p, family) for p in range(len(mtus))) for end in "ab"}

    def join(self, plane, mtu):
        ip("link", "add", f"p{plane}", "netns", self.names["a"], "mtu", str(mtu), "type", "veth",
           "peer", "name", f"p{plane}", "netns", self.names["b"], "mtu", str(mtu))
        for end in "ab":
            length, extra = (24, []) if self.family == 4 else (64, ["nodad"])
            ip("-n", self.names[end], "addr", "add", f"{self.address(end, plane, self.family)}/{length}", "dev",
               f"p{plane}", *extra)
            ip("-n", self.names[end], "link", "set", f"p{plane}", "up")

    @staticmethod
    def address(end, plane, family=4):
        number = "ab".index(end) + 1
        return f"10.77.{plane}.{number}" if family == 4 else f"fd77:{plane}::{number}"

    def bench(self, end, *words):
        return ["ip", "netns", "exec", self.names[end], WEFT, "bench", "write", *words]

    def run_both(self, here=(), there=(), planes=True):
        """Runs both ends; returns the exit status and the output of each. `here` is for host a, the client."""
        own = {end: ["--planes", self.planes[end]] if planes else [] for end in "ab"}
        listener = subprocess.Popen(self.bench("b", "--listen", *own["b"], *there), stderr=subprocess.PIPE, text=True)
        self.addCleanup(listener.stderr.close)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.assertIn("waiting", listener.stderr.readline())
        ran = subprocess.run(self.bench("a", self.address("b", 0, self.family), *own["a"], "--size", "1MiB", "--iterations",
                                        "20", "--bidirectional", *here),
                             capture_output=True, text=True, timeout=SECONDS_MAX)
        self.said = ran.stdout
        return ran.returncode, ran.stderr, listener.wait(timeout=SECONDS_MAX), listener.stderr.read()

    def payload(self, **options):
        here, said, there, _ = self.run_both(**options)
        self.assertEqual((here, there), (0, 0), said)
        return int(re.search(r"(\d+) bytes a packet", said)[1])

    def test_the_payload_is_what_fits_the_smallest_plane(self):
        self.make(9000, 1500)
        self.assertEqual(self.payload(), 1024)
        self.assertEqual(self.payload(here=["--mtu", "1024"]), 1024)
        # An explicit MTU that is too large gives one line at each end, and no hang.
        for options in ({"here": ["--mtu", "4096"]}, {"there": ["--mtu", "2048"]}):
            here, said_here, there, said_there = self.run_both(**options)
            self.assertEqual((here, there), (2, 2), said_here + said_there)
            for said in (said_here, said_there):
                self.assertRegex(said.strip().splitlines()[-1], r"--mtu \d+ does not fit .* 1024 does")
        here, said_here, there, said_there = self.run_both(here=["--mtu", "1024"], there=["--mtu", "2048"])
        self.assertEqual((here, there), (2, 2))
        self.assertIn("give both the same --mtu", said_here)
        self.assertIn("give both the same --mtu", said_there)

    def test_the_smaller_of_both_ends_holds(self):
        self.make(4200, 4200)
        self.assertEqual(self.payload(), 4096)
        # Only one end has a route with the smaller MTU: first a, then b.
        for end in "ab":
            other = "b" if end == "a" else "a"
            ip("-n", self.names[end], "route", "add", f"{self.address(other, 1)}/32", "dev", "p1", "mtu", "2200")
            self.assertEqual(self.payload(), 2048)
            ip("-n", self.names[end], "route", "del", f"{self.address(other, 1)}/32")

    def narrow(self, mtu, family):
        """Hosts a and b with a router r between them. Only r knows that its link to b has a small MTU."""
        if family == 6 and not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("this host has no IPv6")
        self.make(family=family)
        router = self.names["a"][:-1] + "r"
        self.addCleanup(subprocess.run, ["ip", "netns", "del", router], capture_output=True)
        ip("netns", "add", router)
        length, extra = (24, []) if family == 4 else (64, ["nodad"])
        flag = "-6" if family == 6 else "-4"
        at = (lambda end, n: f"10.77.{'ab'.index(end)}.{n}") if family == 4 else (lambda end, n: f"fd77:{'ab'.index(end)}::{n}")
        forwarding = "net.ipv6.conf.all.forwarding=1" if family == 6 else "net.ipv4.ip_forward=1"
        subprocess.run(["ip", "netns", "exec", router, "sysctl", "-qw", forwarding], check=True)
        for end in "ab":
            ip("link", "add", "p0", "netns", self.names[end], "mtu", "4200", "type", "veth",
               "peer", "name", f"to-{end}", "netns", router, "mtu", "4200")
            ip("-n", self.names[end], "addr", "add", f"{at(end, 1)}/{length}", "dev", "p0", *extra)
            ip("-n", router, "addr", "add", f"{at(end, 9)}/{length}", "dev", f"to-{end}", *extra)
            ip("-n", self.names[end], "link", "set", "p0", "up")
            ip("-n", router, "link", "set", f"to-{end}", "up")
        for end in "ab":
            ip("-n", self.names[end], flag, "route", "add", "default", "via", at(end, 9))
        ip("-n", router, "link", "set", "to-b", "mtu", str(mtu))
        self.planes = {end: at(end, 1) for end in "ab"}
        self.address = lambda end, plane, family=4: at(end, 1)
        return router

    def test_a_narrow_router_is_heard(self):
        self.narrow(2300, 4)
        self.assertEqual(self.payload(), 2048)

    def test_a_narrow_router_is_heard_by_ipv6(self):
        self.narrow(2300, 6)
        self.assertEqual(self.payload(), 2048)

    def test_a_narrow_hop_that_says_nothing_is_noticed(self):
        router = self.narrow(1500, 4)
        # The router drops packets that are too large without an ICMP error, as a switch does.
        subprocess.run(["ip", "netns", "exec", router, "nft", "-f", "-"], check=True, text=True, input="""
            add table ip narrow
            add chain ip narrow out { type filter hook output priority 0; }
            add rule ip narrow out icmp type destination-unreachable icmp code 4 drop""")
        self.assertEqual(self.payload(), 1024)

    def test_a_plane_that_is_dead_is_told(self):
        self.make(4200, 4200)
        subprocess.run(["ip", "netns", "exec", self.names["b"], "nft", "-f", "-"], check=True, text=True, input="""
            add table ip dead
            add chain ip dead in { type filter hook input priority 0; }
            add rule ip dead in iifname "p1" meta l4proto udp drop""")
        here, said, there, _ = self.run_both(here=["--size", "16MiB"])
        self.assertEqual((here, there), (0, 0), said)
        self.assertRegex(said, r"plane 1 carried nothing at last: .* 10\.77\.1\.2 ")
        self.assertNotIn("plane 0 carried", said)

    def test_who_answers_nothing_is_believed(self):
        self.make(4200)
        for end in "ab":
            subprocess.run(["ip", "netns", "exec", self.names[end], "nft", "-f", "-"], check=True, text=True, input="""
                add table ip quiet
                add chain ip quiet in { type filter hook input priority 0; }
                add rule ip quiet in udp dport 15100 drop""")
        self.assertEqual(self.payload(), 4096)

    def test_ipv6_and_sealed_packets_are_longer(self):
        if not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("this host has no IPv6")
        self.make(4200, family=6)
        self.assertEqual(self.payload(), 4096)
        secret = f"/tmp/weft-two-hosts-{os.getpid()}"
        self.addCleanup(os.unlink, secret)
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
            f.write(os.urandom(32))
        words = ["--secret-file", secret]
        self.assertEqual(self.payload(here=words, there=words), 2048)

    def test_evs_by_port_and_flow_label(self):
        if not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("this host has no IPv6")
        self.make(4200, 4200, family=6)
        subprocess.run(["ip", "netns", "exec", self.names["b"], "nft", "-f", "-"], check=True, text=True, input="""
            add table ip6 labels
            add chain ip6 labels in { type filter hook input priority 0; }
            add rule ip6 labels in udp dport 4791 ip6 flowlabel 0 counter
            add rule ip6 labels in udp dport 4791 ip6 flowlabel 1-7 counter
            add rule ip6 labels in udp dport 4791 ip6 flowlabel > 7 counter""")
        words = ["--ev-mode", "stev", "--evs", "128"]
        self.assertEqual(self.payload(here=words, there=words), 4096)
        rules = json.loads(subprocess.run(["ip", "netns", "exec", self.names["b"], "nft", "-j", "list", "table", "ip6", "labels"],
                                          check=True, capture_output=True, text=True).stdout)["nftables"]
        none, first, others = (e["counter"]["packets"] for r in rules if "rule" in r
                               for e in r["rule"]["expr"] if "counter" in e)
        # 128 EVs: flow labels 0 to 15 on each of 8 source ports.
        self.assertGreater(none, 0)
        self.assertGreater(first, 3 * none)
        self.assertGreater(others, 3 * none)
        here, said_here, there, said_there = self.run_both(here=words, there=["--evs", "64"])
        self.assertEqual((here, there), (2, 2))
        for said in (said_here, said_there):
            self.assertIn("--ev-mode", said.strip().splitlines()[-1])

    def test_a_killed_end_is_noticed(self):
        self.make(1500, 1500)
        listener = subprocess.Popen(self.bench("b", "--listen", "--planes", self.planes["b"]), stderr=subprocess.PIPE,
                                    text=True)
        self.addCleanup(listener.stderr.close)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.assertIn("waiting", listener.stderr.readline())
        client = subprocess.Popen(self.bench("a", self.address("b", 0), "--planes", self.planes["a"], "--size", "1MiB",
                                             "--iterations", "1000000"),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        self.assertIn("planes", client.stderr.readline())
        self.assertIn("over UDP", client.stderr.readline())
        time.sleep(0.5)
        listener.kill()
        # With the ICMP refusal this takes 1 s on an idle machine, without it 17 s.
        _, said = client.communicate(timeout=8)
        self.assertEqual(client.returncode, 1, said)
        self.assertIn("does not answer", said)

    def test_an_interface_made_anew_is_used_again(self):
        self.make(1500, 1500)
        listener = subprocess.Popen(self.bench("b", "--listen", "--planes", self.planes["b"]), stderr=subprocess.PIPE,
                                    text=True)
        self.addCleanup(listener.stderr.close)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.assertIn("waiting", listener.stderr.readline())
        client = subprocess.Popen(self.bench("a", self.address("b", 0), "--planes", self.planes["a"], "--size", "1MiB",
                                             "--seconds", "3"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        self.assertIn("planes", client.stderr.readline())
        time.sleep(0.8)
        ip("-n", self.names["a"], "link", "del", "p1")
        time.sleep(0.5)
        self.join(1, 1500)
        _, said = client.communicate(timeout=SECONDS_MAX)
        self.assertEqual(client.returncode, 0, said)
        self.assertRegex(said, r"(?s)plane 1 .*down.*plane 1 .*up")

    def test_what_a_full_socket_does_not_take_goes_later(self):
        self.make(4200)
        made = subprocess.run(["tc", "-n", self.names["a"], "qdisc", "add", "dev", "p0", "root", "tbf", "rate", "500mbit",
                               "burst", "64kb", "latency", "400ms"], capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest(f"no slow link here: {made.stderr.strip()}")
        # All QPs share one socket, and their windows exceed its buffer.
        here, said, there, _ = self.run_both(here=["--evs", "1", "--qps", "8", "--json"], there=["--evs", "1"])
        self.assertEqual((here, there), (0, 0), said)
        counters = json.loads(self.said)["counters"]
        self.assertGreater(counters.get("net.sends_held", 0), 0)
        self.assertNotIn("net.drops_send", counters)

    def test_without_checksum_offload_runs_are_cut_here(self):
        self.make(1500)
        for end in "ab":
            if subprocess.run(["ip", "netns", "exec", self.names[end], "ethtool", "-K", "p0", "tx", "off"],
                              capture_output=True).returncode != 0:
                self.skipTest("ethtool cannot switch checksum offload off here")
        self.assertEqual(self.payload(), 1024)

    def test_planes_on_two_loopbacks_are_refused(self):
        self.make(1500)
        here, said_here, there, said_there = self.run_both(planes=False)
        self.assertEqual((here, there), (2, 2), said_here + said_there)
        for said in (said_here, said_there):
            self.assertIn("different hosts", said.strip().splitlines()[-1])
            self.assertIn("--ifname", said.strip().splitlines()[-1])


class CarrierForm(unittest.TestCase):
    """The carrier form of SRv6 is for links that do not verify UDP checksums: those of a lab, not of a NIC."""

    def test_is_refused_on_what_is_no_veth(self):
        name = f"wt{os.getpid() % 100000}n"
        self.addCleanup(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        for plane in (1, 2):
            kinds = ("dummy", "bridge", "ifb")  # the first kind that this kernel has
            if not any(subprocess.run(["ip", "-n", name, "link", "add", f"eth{plane}", "type", kind],
                                      capture_output=True).returncode == 0 for kind in kinds):
                self.skipTest(f"this kernel has none of {', '.join(kinds)}")
            ip("-n", name, "addr", "add", f"fd00:{plane}::1/64", "dev", f"eth{plane}", "nodad")
            ip("-n", name, "link", "set", f"eth{plane}", "up")
        ran = subprocess.run(["ip", "netns", "exec", name, WEFT, "bench", "write", "--fabric",
                              "scenarios/lab-two-plane.toml", "--fabric-host", "0", "--srv6", "carrier"],
                             capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertRegex(ran.stderr.strip().splitlines()[-1], "eth1 .* no veth link.*UDP checksum.*--srv6 mrc")
        # The default is MRC's own form, which needs a privilege; the message must name both forms.
        drop = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
        if subprocess.run([*drop, "true"], capture_output=True).returncode != 0:
            self.skipTest("setpriv cannot drop a capability here")
        ran = subprocess.run(["ip", "netns", "exec", name, *drop, WEFT, "bench", "write", "--fabric",
                              "scenarios/lab-two-plane.toml", "--fabric-host", "0"],
                             capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertRegex(ran.stderr.strip().splitlines()[-1], "eth1 .* no veth link.*UDP checksum.*CAP_NET_RAW")


def why_not():
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"wt{os.getpid() % 100000}try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made.stderr.strip() if made.returncode != 0 else None


if __name__ == "__main__":
    if reason := why_not():
        run_tests.skip_file(reason)
    run_tests.main()
