"""`weft lab`: a fabric of network namespaces, as root and in a user namespace. Skipped where neither is possible."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests
from lab_hosts import (BASE, HOSTS, LEAVES, PLANES, SCENARIO, SECONDS_MAX, SPINES, WEFT, Send, carrier, exchange, inside,
                       own_namespaces, own_processes, reason_to_skip, usid, wait_until, weft)


class Fabric:
    """The tests of one lab. The subclasses below run them as root and in a user namespace."""

    flags = []

    @classmethod
    def setUpClass(cls):
        cls.name = f"{BASE}-{cls.__name__.lower()}"
        weft("up", SCENARIO, "--name", cls.name, *cls.flags)

    @classmethod
    def tearDownClass(cls):
        weft("down", "--name", cls.name)

    def tearDown(self):
        weft("heal", "--name", self.name)

    def lines(self, host, *command):
        process = inside(self.name, host, *command)
        out, _ = process.communicate(timeout=SECONDS_MAX)
        self.assertEqual(process.returncode, 0)
        return out

    def status(self):
        labs = json.loads(weft("status", "--name", self.name, "--json").stdout)["labs"]
        self.assertEqual([lab["name"] for lab in labs], [self.name])
        return labs[0]

    def link(self, source, to):
        [link] = [l for l in self.status()["links"]
                  if l["from"].endswith("." + source) and l["to"].endswith("." + to)]
        return link

    def fault(self, text, *flags):
        weft("fault", *text.split(), *flags, "--name", self.name)

    def heal(self, text="", *flags):
        weft("heal", *text.split(), *flags, "--name", self.name)

    def send(self, routes, count=20):
        """Sends datagrams over each route (plane, from, to, spine). Returns how many arrived, {route: count}, and which addresses
        sent ICMP errors."""
        sends = [Send(r[1], r[2], carrier(*r), "-".join(map(str, r)) + "|") for r in routes]
        seen, complaints = exchange(self.name, sends, count)
        arrived = {}
        for route, send in zip(routes, sends):
            plane, source, _, _ = route
            arrived[route] = seen.pop(f"{send.text} from fd00:{plane + 1}::{source + 1}", 0)
        self.assertEqual(seen, {}, "something else arrived")
        return arrived, complaints

    def assert_sound(self):
        routes = [(plane, 0, 2, spine) for plane in range(PLANES) for spine in range(SPINES)]
        routes += [(plane, 2, 0, spine) for plane in range(PLANES) for spine in range(SPINES)]
        self.assertEqual(self.send(routes)[0], {route: 20 for route in routes})

    def test_every_path_by_its_address(self):
        routes = [(plane, source, to, spine)
                  for plane in range(PLANES) for source in range(HOSTS) for to in range(HOSTS) if source != to
                  for spine in range(SPINES if source // 2 != to // 2 else 1)]
        count = 10
        before = self.status()["links"]
        arrived, complaints = self.send(routes, count)
        self.assertEqual(arrived, {route: count for route in routes})
        self.assertEqual(complaints, {})
        after = self.status()["links"]
        for plane in range(PLANES):
            for spine in range(SPINES):
                for leaf in range(LEAVES):
                    expected = sum(count for p, source, to, s in routes
                                   if (p, s, to // 2) == (plane, spine, leaf) and source // 2 != leaf)
                    [sent] = [b["packets"] - a["packets"] for a, b in zip(before, after)
                              if a["from"].endswith(f".p{plane}.t1.{spine}") and a["to"].endswith(f".t0.{leaf}")]
                    self.assertGreater(expected, 0)
                    # The kernel sometimes adds packets about its multicast groups.
                    self.assertTrue(expected <= sent <= expected + 8, f"{sent} packets, expected {expected}")

    def test_link_between_switches_down_and_repaired(self):
        dead, beside, other_plane = (0, 0, 2, 1), (0, 0, 2, 0), (1, 0, 2, 1)
        back = (0, 2, 0, 1)
        self.fault("link t0 0 t1 1 plane 0 down")
        self.assertEqual(self.link("p0.t0.0", "p0.t1.1")["state"], "down")
        arrived, complaints = self.send([dead, beside, other_plane, back])
        self.assertEqual(arrived, {dead: 0, beside: 20, other_plane: 20, back: 0})
        # In one direction the leaf before the dead link sends ICMP errors, in the other direction the spine.
        self.assertGreater(complaints["fd00:1:1::"], 0)
        self.assertGreater(complaints["fd00:1:4002::"], 0)
        self.heal("link t0 0 t1 1 plane 0")
        self.assertEqual(self.link("p0.t0.0", "p0.t1.1")["state"], "up")
        self.assert_sound()

    def test_host_link_down_and_repaired(self):
        self.fault("link host 0 plane 1 down")
        [port] = json.loads(self.lines(0, "ip", "-j", "link", "show", "p2"))
        self.assertEqual(port["operstate"], "DOWN")
        self.assertIn("fd00:2::1", self.lines(0, "ip", "-6", "addr", "show", "dev", "p2"))
        arrived, _ = self.send([(0, 0, 2, 0), (1, 0, 2, 0), (1, 2, 0, 0), (1, 3, 1, 1)])
        self.assertEqual(arrived, {(0, 0, 2, 0): 20, (1, 0, 2, 0): 0, (1, 2, 0, 0): 0, (1, 3, 1, 1): 20})
        self.heal("link host 0")
        [port] = json.loads(self.lines(0, "ip", "-j", "link", "show", "p2"))
        self.assertEqual(port["operstate"], "UP")
        self.assert_sound()

    def test_silence_one_way_and_both(self):
        there, back, beside = (0, 0, 2, 0), (0, 2, 0, 0), (1, 0, 2, 0)
        self.fault("link host 0 plane 0 silent", "--way", "up")
        arrived, complaints = self.send([there, back, beside])
        self.assertEqual(arrived, {there: 0, back: 20, beside: 20})
        self.assertEqual(complaints, {})
        self.fault("link host 0 plane 0 silent")
        self.assertEqual(self.send([there, back, beside])[0], {there: 0, back: 0, beside: 20})
        [port] = json.loads(self.lines(0, "ip", "-j", "link", "show", "p1"))
        self.assertEqual(port["operstate"], "UP")
        self.heal("link host 0 plane 0", "--way", "down")
        self.assertEqual(self.send([there, back])[0], {there: 0, back: 20})
        self.heal()
        self.assert_sound()

    def test_a_whole_plane(self):
        self.fault("plane 1 down")
        self.assertEqual(self.send([(0, 0, 2, 0), (1, 0, 2, 0), (1, 3, 2, 0)])[0],
                         {(0, 0, 2, 0): 20, (1, 0, 2, 0): 0, (1, 3, 2, 0): 0})
        self.heal()
        self.assert_sound()

    def test_loss(self):
        route = (0, 0, 2, 0)
        self.fault("link t0 1 t1 0 plane 0 loss 90%", "--way", "down")
        self.fault("link t0 1 t1 0 plane 0 loss 50%", "--way", "down")  # replaces the first loss
        self.assertEqual(self.link("p0.t1.0", "p0.t0.1")["state"], "loss 50%")
        self.assertEqual(self.link("p0.t0.1", "p0.t1.0")["state"], "up")
        arrived, _ = self.send([route], 400)
        self.assertTrue(120 < arrived[route] < 280, arrived)  # eight standard deviations
        self.assertEqual(self.send([(0, 2, 0, 0)])[0], {(0, 2, 0, 0): 20})
        self.heal()
        self.fault("nics loss 100%")
        self.assertEqual(self.send([route])[0], {route: 0})

    def test_rate(self):
        self.assertIn("rate 1Gbit", self.lines(0, "tc", "qdisc", "show", "dev", "p1"))
        self.fault("link host 0 plane 0 rate 10Mbps")
        self.assertIn("rate 10Mbit", self.lines(0, "tc", "qdisc", "show", "dev", "p1"))
        self.assertIn("rate 1Gbit", self.lines(0, "tc", "qdisc", "show", "dev", "p2"))
        self.assertEqual(self.link("h0", "p0.t0.0")["state"], "10 Mbps")
        self.heal()
        self.assertIn("rate 1Gbit", self.lines(0, "tc", "qdisc", "show", "dev", "p1"))

    def test_the_mtu_holds_a_full_packet(self):
        [port] = json.loads(self.lines(0, "ip", "-j", "link", "show", "p1"))
        self.assertEqual(port["mtu"], 4200)

    def test_runs_of_packets_cross_as_one(self):
        self.assertEqual(self.packets_of_ten_segments(), 1)

    def packets_of_ten_segments(self):
        before = self.link("p0.t1.0", "p0.t0.1")["packets"]
        send = Send(0, 2, carrier(0, 0, 2, 0), "")
        arrived, _ = exchange(self.name, [send], count=20, segments=10)
        self.assertEqual(arrived, {" from fd00:1::1": 200})
        sent = self.link("p0.t1.0", "p0.t0.1")["packets"] - before
        return round(sent / 20)

    def test_a_second_lab_and_the_same_name_again(self):
        again = weft("up", SCENARIO, "--name", self.name, *self.flags, expect=1)
        self.assertIn("is there already", again.stderr)
        other = self.name + "2"
        weft("up", SCENARIO, "--name", other, *self.flags)
        try:
            weft("fault", "plane", "0", "silent", "--name", other)
            self.assert_sound()
        finally:
            weft("down", "--name", other)
        self.assert_sound()

    def test_killed_while_it_is_built(self):
        name = self.name + "k"
        half_built = 0
        # Kill later and later, until a kill finds a lab that is half built.
        for i in range(60):
            if i >= 12 and half_built > 0:
                break
            up = subprocess.Popen([WEFT, "lab", "up", SCENARIO, "--name", name, *self.flags],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.012 * (i + 1))
            up.send_signal(signal.SIGKILL)
            up.wait()
            down = weft("down", "--name", name, expect=None)
            # The program may have been killed before it had made anything.
            self.assertTrue(down.returncode == 0 or "there is none called" in down.stderr, down.stderr)
            half_built += down.returncode == 0
            self.assertEqual([n for n in own_namespaces() if n.startswith(f"weft.{name}.")], [])
        self.assertGreater(half_built, 0)
        weft("up", SCENARIO, "--name", name, *self.flags)
        weft("down", "--name", name)

    def test_a_killed_end_is_noticed_over_carriers(self):
        bench = lambda host, *words: [WEFT, "lab", "exec", "--name", self.name, "host", str(host), "--", WEFT, "bench",
                                      "write", *words, "--fabric", os.path.abspath(SCENARIO), "--fabric-host", str(host)]
        listener = subprocess.Popen(bench(3, "--listen"), stderr=subprocess.PIPE, text=True)
        client = None
        try:
            self.assertIn("waiting", listener.stderr.readline())
            client = subprocess.Popen(bench(0, "fd00:1::4", "--size", "1MiB", "--iterations", "1000000"),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.assertIn("planes", client.stderr.readline())
            self.assertIn("over UDP", client.stderr.readline())
            time.sleep(0.5)
            listener.kill()
            # With the ICMP refusal this takes 1 s on an idle machine, without it 17 s.
            _, said = client.communicate(timeout=8)
            self.assertEqual(client.returncode, 1, said)
            self.assertIn("does not answer", said)
        finally:
            for process in (listener, client):
                if process is not None:
                    process.kill()
                    process.communicate()

    def test_interrupted_while_it_is_built(self):
        name = self.name + "i"
        for send in os.killpg, os.kill:  # to its process group as a terminal does, and to the process alone
            in_the_middle = 0
            for _ in range(5):
                up = subprocess.Popen([WEFT, "lab", "up", SCENARIO, "--name", name, *self.flags],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
                wait_until(lambda: up.poll() is not None or
                           "half built" in weft("status", "--name", name, expect=None).stderr, "it does not begin", 0)
                if up.poll() is None:
                    send(up.pid, signal.SIGINT)
                said = up.communicate(timeout=SECONDS_MAX)[1]
                # On a busy machine the program may have finished before the signal.
                self.assertIn(up.returncode, (0, 128 + signal.SIGINT), said)
                if up.returncode != 0:
                    in_the_middle += 1
                    self.assertIn("interrupted", said)
                weft("down", "--name", name, expect=1 if up.returncode else 0)
                self.assertEqual([n for n in own_namespaces() if n.startswith(f"weft.{name}.")], [])
            self.assertGreater(in_the_middle, 0, send.__name__)

    def test_a_program_stands_where_it_was_called(self):
        execute = lambda *command, **expect: weft("exec", "--name", self.name, "host", "0", "--", *command, **expect)
        self.assertEqual(execute("pwd").stdout.strip(), os.getcwd())
        self.assertIn("cannot be run", execute("/nonexistent", expect=127).stderr)
        self.assertIn("cannot be run", execute(".", expect=126).stderr)

    def test_misuse_is_one_line(self):
        for words in (["fault", "link", "host", "9", "down"], ["fault", "link", "host", "0"], ["fault", "plane", "0", "up"],
                      ["fault", "plane", "0", "down", "--way", "up"], ["fault", "nics", "loss", "lots"],
                      ["fault", "plane", "0", "rate", "100Gbps"], ["heal", "link"], ["heal", "--way", "up"],
                      ["heal", "plane", "0", "down"]):
            ran = weft(*words, "--name", self.name, expect=None)
            self.assertIn(ran.returncode, (1, 2), words)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
        self.assertTrue(all(link["state"] == "up" for link in self.status()["links"]))
        for words in (["host", "4", "--", "true"], ["host", "0", "true"], ["0", "--", "true"], ["host", "0", "--"]):
            self.assertEqual(weft("exec", "--name", self.name, *words, expect=2).stdout, "")
        self.assertIn("there is none called", weft("status", "--name", self.name + "x", expect=1).stderr)
        for words in (["down"], ["status"], ["up", SCENARIO], ["fault", "plane", "0", "down"]):
            self.assertIn("--name: it is empty", weft(*words, "--name", "", expect=2).stderr)


class Root(Fabric, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("not root")
        super().setUpClass()

    def test_a_fault_that_fails_half_way_is_told_and_healed(self):
        name = self.name + "m"
        weft("up", SCENARIO, "--name", name)
        try:
            port = f"weft.{name}.p0.t0.0"
            subprocess.run(["ip", "-n", f"weft.{name}.h2", "link", "del", "p1"], check=True)
            self.assertIn("Cannot find device", weft("fault", "plane", "0", "down", "--name", name, expect=1).stderr)
            self.assertIn("fd00:1::1          down", weft("status", "--name", name, expect=1).stdout)
            weft("heal", "--name", name, expect=1)  # the interface is still missing; everything else is repaired
            shown = subprocess.run(["ip", "-n", port, "link", "show", "h0"], check=True, capture_output=True, text=True)
            self.assertIn("UP", shown.stdout.split("<")[1].split(">")[0].split(","))
            said = weft("status", "--name", name, expect=1).stderr
            self.assertIn(f"weft.{name}.h2 has no interface p1 any more", said)
        finally:
            weft("down", "--name", name)

    def test_what_is_not_ours_stays(self):
        name = self.name + "f"
        subprocess.run(["ip", "netns", "add", f"weft.{name}.h1"], check=True)
        try:
            self.assertIn("no lab knows it", weft("up", SCENARIO, "--name", name, expect=1).stderr)
            self.assertEqual([n for n in own_namespaces() if n.startswith(f"weft.{name}.")], [f"weft.{name}.h1"])
            weft("down", "--name", name, expect=1)
            self.assertEqual([n for n in own_namespaces() if n.startswith(f"weft.{name}.")], [f"weft.{name}.h1"])
        finally:
            subprocess.run(["ip", "netns", "del", f"weft.{name}.h1"], check=True)


class UserNamespace(Fabric, unittest.TestCase):
    flags = ["--user-namespace"]

    def test_a_keeper_that_was_killed(self):
        name = self.name + "d"
        weft("up", SCENARIO, "--name", name, *self.flags)
        before = set(own_processes())
        self.assertTrue(before)
        [lab] = [text for text in weft("status", "--name", name).stdout.splitlines() if "of process" in text]
        os.kill(int(lab.split("of process ")[1]), signal.SIGKILL)
        wait_until(lambda: "is gone" in weft("status", "--name", name, expect=None).stderr, "its death is not noticed")
        weft("up", SCENARIO, "--name", name, *self.flags)  # of the killed lab only the file was left
        weft("down", "--name", name)


class SinglePackets(Fabric, unittest.TestCase):
    """A lab without offloads; only the tests whose result differs."""

    flags = ["--no-offloads"]

    def test_runs_of_packets_cross_as_one(self):
        self.assertEqual(self.packets_of_ten_segments(), 10)


for inherited in [n for n in dir(Fabric) if n.startswith("test_") and n != "test_runs_of_packets_cross_as_one"]:
    setattr(SinglePackets, inherited, None)


class Shapes(unittest.TestCase):
    """Fabrics of other shapes work too."""

    def setUp(self):
        self.name = f"{BASE}-shape"

    def build(self, topology):
        path = pathlib.Path(f"/tmp/weft-{self.name}.toml")
        path.write_text(f"[topology]\n{topology}\n[workload]\nkind = 'permutation'\nbytes = '1MiB'\n")
        try:
            weft("up", str(path), "--name", self.name)
        finally:
            path.unlink()
        self.addCleanup(weft, "down", "--name", self.name)
        return json.loads(weft("status", "--name", self.name, "--json").stdout)["labs"][0]

    def test_single(self):
        lab = self.build("shape = 'single'\nhosts = 3\nplanes = 4\nhost_rate = '100Gbps'")
        self.assertEqual(len(lab["switches"]), 4)
        self.assertIsNone(lab["links"][0]["mbps"])
        self.assertIn("not held", lab["rates"])
        usids = [usid(0, 3, 0), usid(2, 3, 2)]
        to = "fd00:1:" + ":".join(f"{u:x}" for u in usids) + "::"
        seen, _ = exchange(self.name, [Send(0, 2, to, "carrier"), Send(0, 2, "fd00:2::3", "plain")], 10)
        self.assertEqual(seen, {"carrier from fd00:4::1": 10, "plain from fd00:2::1": 10})

    def test_three_tiers(self):
        lab = self.build("shape = 'three-tier'\nhosts = 8\nhosts_per_t0 = 2\nt0_per_pod = 2\nt1_per_pod = 2\n"
                         "t2_per_t1 = 2\nhost_rate = '1Gbps'\nfabric_rate = '2Gbps'")
        self.assertEqual([s["tier"] for s in lab["switches"]], [0] * 4 + [1] * 4 + [2] * 4)
        sends = [Send(0, 7, "fd00:1::8", "plain")]
        for j in range(2):
            for k in range(2):  # six uSIDs, as many as an address can hold
                usids = [usid(0, 0, 0), usid(1, 0, j), usid(3, 0, 2 * j + k), usid(1, 0, 2 + j), usid(0, 0, 3),
                         usid(2, 0, 1)]
                sends.append(Send(0, 7, "fd00:1:" + ":".join(f"{u:x}" for u in usids), f"{j}{k}"))
        seen, _ = exchange(self.name, sends, 10)
        self.assertEqual(seen, {f"{send.text} from fd00:1::1": 10 for send in sends})
        after = json.loads(weft("status", "--name", self.name, "--json").stdout)["labs"][0]["links"]
        for t2 in range(4):
            [sent] = [l["packets"] for l in after if l["from"].endswith(f"t2.{t2}") and l["to"].endswith(f"t1.{2 + t2 // 2}")]
            self.assertGreaterEqual(sent, 10)

    def test_too_large(self):
        with self.assertRaisesRegex(AssertionError, "64"):
            self.build("shape = 'single'\nhosts = 65\nhost_rate = '1Gbps'")


class Nowhere(unittest.TestCase):
    def test_says_what_is_missing(self):
        # In a user namespace that forbids further user namespaces, a lab is not possible.
        forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""
        command = ["unshare", "-Ur", "sh", "-c", forbid, "sh"]
        if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
            self.skipTest("no user namespace to forbid them in")
        ran = subprocess.run([*command, WEFT, "lab", "up", SCENARIO, "--name", f"{BASE}-none"], capture_output=True,
                             text=True, timeout=SECONDS_MAX)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
        self.assertIn("needs root, or a user namespace", ran.stderr)


if __name__ == "__main__":
    reason = reason_to_skip()
    if reason:
        run_tests.skip_file(reason)
    run_tests.main(verbosity=2, after=lambda: wait_until(lambda: not own_namespaces() and not own_processes(),
                                                         "something is left over"))
