"""`weft lab up` with the software switch, as root and in a user namespace. Skipped where neither is possible."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests
from lab_hosts import (BASE, SECONDS_MAX, WEFT, Send, carrier, exchange, inside, own_namespaces, own_processes,
                       reason_to_skip, wait_until, weft)

# Four hosts, two leaves and two spines in each of two planes.
SCENARIO = """
[topology]
shape = "two-tier"
hosts = 4
hosts_per_t0 = 2
t1_count = 2
planes = 2
host_rate = "200Mbps"
[switch]
trimming = true
[workload]
kind = "permutation"
bytes = "1MiB"
"""


class Software:
    """The tests of one lab. The subclasses below run them as root and in a user namespace."""

    flags = []

    def setUp(self):
        self.name = f"{BASE}-soft-{self.__class__.__name__.lower()}"
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(SCENARIO)
            file.flush()
            weft("up", file.name, "--name", self.name, *self.flags)
        self.addCleanup(weft, "down", "--name", self.name)

    def status(self):
        return json.loads(weft("status", "--name", self.name, "--json", expect=None).stdout)["labs"][0]

    def link(self, words):
        [link] = [l for l in self.status()["links"] if l["text"] == words]
        return link

    def fault(self, text, *flags):
        weft("fault", *text.split(), *flags, "--name", self.name)

    def arrived(self, sends, count=20):
        seen, _ = exchange(self.name, sends, count)
        return {text.split(" from ")[0]: n for text, n in seen.items()}

    def test_every_path(self):
        lab = self.status()
        self.assertTrue(lab["software"]["alive"])
        self.assertFalse(lab["offloads"])
        sends = [Send(0, 3, carrier(plane, 0, 3, spine), f"{plane}{spine}") for plane in range(2) for spine in range(2)]
        sends.append(Send(0, 3, "fd00:2::4", "plain"))
        sends.append(Send(1, 0, carrier(0, 1, 0, 0), "neighbour"))
        self.assertEqual(self.arrived(sends), {send.text: 20 for send in sends})
        for spine in range(2):
            self.assertGreaterEqual(self.link(f"T0 0 -> T1 {spine} (plane 0)")["packets"], 20)

    def test_faults(self):
        to_3 = [Send(0, 3, carrier(0, 0, 3, spine), str(spine)) for spine in range(2)]
        self.fault("link t0 0 t1 1 plane 0 down")
        self.assertEqual(self.arrived(to_3), {"0": 20})
        self.assertEqual(self.link("T0 0 -> T1 1 (plane 0)")["drops"], 20)
        weft("heal", "--name", self.name)
        self.fault("link t0 0 t1 0 plane 0 silent", "--way", "up")
        self.assertEqual(self.arrived(to_3), {"1": 20})
        weft("heal", "--name", self.name)
        self.fault("link host 3 plane 0 loss 50%", "--way", "down")
        some = self.arrived(to_3, 200)
        self.assertTrue(120 < sum(some.values()) < 280, some)
        weft("heal", "--name", self.name)

        def has_carrier():
            process = inside(self.name, 3, "ip", "link", "show", "p1")
            return "NO-CARRIER" not in process.communicate(timeout=SECONDS_MAX)[0]

        self.assertTrue(has_carrier())
        self.fault("link host 3 plane 0 down")
        self.assertFalse(has_carrier())
        self.assertEqual(self.status()["hosts"][3]["ports"][0]["state"], "down")
        # The link is down and silent at the same time: repairing one fault leaves the other.
        self.fault("link host 3 plane 0 silent", "--way", "down")
        weft("heal", *"link host 3 plane 0".split(), "--way", "up", "--name", self.name)
        wait_until(has_carrier, "the carrier does not come back")
        self.assertEqual(self.arrived(to_3), {})
        weft("heal", "--name", self.name)
        self.assertEqual(self.arrived(to_3), {"0": 20, "1": 20})
        self.fault("link host 0 plane 0 rate 50Mbps")
        self.assertIn("50 Mbps", self.status()["hosts"][0]["ports"][0]["state"])

    def test_a_heal_that_got_no_answer_is_done_the_next_time(self):
        to_3 = [Send(0, 3, carrier(plane, 0, 3, 0), str(plane)) for plane in range(2)]
        for fault in ("link host 3 plane 0 down", "link t0 0 t1 0 plane 1 silent", "link host 0 loss 100%"):
            self.fault(fault)
        process = self.status()["software"]["pid"]
        os.kill(process, signal.SIGSTOP)
        try:
            self.assertIn("Resource temporarily unavailable", weft("heal", "--name", self.name, expect=1).stderr)
        finally:
            os.kill(process, signal.SIGCONT)
        self.assertEqual(self.arrived(to_3), {}, "then this shows nothing")
        weft("heal", "--name", self.name)
        wait_until(lambda: self.arrived(to_3) == {"0": 20, "1": 20}, "a link is still broken")

    def test_writes_cross_it(self):
        planes = lambda host: f"fd00:1::{host + 1},fd00:2::{host + 1}"
        listen = subprocess.Popen([WEFT, "lab", "exec", "--name", self.name, "host", "0", "--", WEFT, "bench", "write",
                                   "--listen", "--planes", planes(0)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("waiting", listen.stderr.readline())
            write = inside(self.name, 3, WEFT, "bench", "write", "fd00:1::1", "--planes", planes(3), "--size", "64KiB",
                           "--iterations", "20", "--json")
            out, _ = write.communicate(timeout=SECONDS_MAX)
            self.assertEqual(write.returncode, 0)
            self.assertEqual(json.loads(out)["rows"][0]["iterations"], 20)
            listen.communicate(timeout=SECONDS_MAX)
        finally:
            listen.kill()
            listen.communicate()
        for plane in range(2):
            self.assertGreater(self.link(f"T0 0 -> host 0 (plane {plane})")["packets"], 20)

    def test_a_switch_that_dies_is_told(self):
        process = self.status()["software"]["pid"]
        os.kill(process, signal.SIGKILL)
        wait_until(lambda: not self.status()["software"]["alive"], "it is still there")
        status = weft("status", "--name", self.name, expect=1)
        self.assertIn("GONE", status.stdout)
        self.assertEqual(status.stderr, f"weft: lab {self.name}: its software switch is gone, nothing passes\n")
        refused = weft("fault", *"link host 0 plane 0 down".split(), "--name", self.name, expect=1)
        self.assertIn("is gone", refused.stderr)
        self.assertEqual(refused.stderr.count("\n"), 1)


class Root(Software, unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        super().setUp()


class User(Software, unittest.TestCase):
    flags = ["--user-namespace"]


if __name__ == "__main__":
    reason = reason_to_skip()
    if reason:
        run_tests.skip_file(reason)
    run_tests.main(after=lambda: wait_until(lambda: not own_namespaces() and not own_processes(), "something is left over"))
