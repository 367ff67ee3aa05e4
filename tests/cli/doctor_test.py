"""`weft doctor`: its findings on this host, and in network namespaces with deliberate faults."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import clean_environment  # the import itself changes the environment
import run_tests

WEFT = os.environ["WEFT_BINARY"]
SECONDS_MAX = 90
FIELDS = {"level", "name", "found", "cost", "mend"}


def run(*words, before=()):
    return subprocess.run([*before, WEFT, "doctor", *words], capture_output=True, text=True, timeout=SECONDS_MAX)


class ThisHost(unittest.TestCase):
    def test_lines_and_json_agree_with_the_exit_status(self):
        ran = run("--json")
        found = json.loads(ran.stdout)
        problems = [f for f in found["findings"] if f["level"] == "problem"]
        self.assertEqual(ran.returncode, 1 if problems else 0)
        self.assertEqual(found["problems"], len(problems))
        for finding in found["findings"]:
            self.assertEqual(set(finding), FIELDS)
            self.assertIn(finding["level"], ("ok", "note", "problem"))
            if finding["level"] != "ok":
                self.assertTrue(finding["cost"] and finding["mend"], finding)
        names = [f["name"] for f in found["findings"]]
        for name in ("receive-buffer", "udp-runs", "mtu 127.0.1.1", "ports 127.0.4.1", "offloads lo", "shared-memory",
                     "dev-shm", "cpus", "cpu-contention", "clock", "aes", "lab"):
            self.assertIn(name, names)
        lines = run().stdout.splitlines()
        self.assertEqual(len(lines), len(names))
        for line, name in zip(lines, names):
            self.assertIn(name, line)

    def test_an_address_of_another_host_is_a_problem(self):
        ran = run("--planes", "203.0.113.9", "--json")
        self.assertEqual(ran.returncode, 1)
        [finding] = [f for f in json.loads(ran.stdout)["findings"] if f["name"] == "address 203.0.113.9"]
        self.assertEqual(finding["level"], "problem")
        self.assertIn("ip addr add", finding["mend"])

    def own_cpu(self):
        return min(os.sched_getaffinity(0))

    def test_a_port_that_a_controller_disabled_is_reported(self):
        with tempfile.TemporaryDirectory() as state:
            env = {**os.environ, "WEFT_STATE_DIR": state + "/state"}

            def weft(*words):
                return subprocess.run([WEFT, *words], capture_output=True, text=True, timeout=SECONDS_MAX, env=env)

            self.assertNotIn('"port 2"', weft("doctor", "--json").stdout)
            self.assertFalse(os.path.exists(state + "/state"))  # reading creates no file
            self.assertEqual(weft("ctl", "port", "2", "--disable").returncode, 0)
            planes = ["--planes", "127.0.1.1,127.0.2.1"]
            self.assertIn("weft ctl port 2 --enable --planes 127.0.1.1,127.0.2.1\n", weft("doctor", *planes).stdout)
            found = weft("doctor", "--json")
            self.assertEqual(found.returncode, 1)
            [port] = [f for f in json.loads(found.stdout)["findings"] if f["name"] == "port 2"]
            self.assertEqual((port["level"], port["mend"]), ("problem", "weft ctl port 2 --enable"))
            bench = weft("bench", "write", "--api", "mrc", "--size", "64", "--iterations", "1")
            self.assertIn("port 2 (127.0.2.1) is disabled", bench.stderr)
            self.assertEqual(weft(*port["mend"].split()[1:]).returncode, 0)
            self.assertNotIn('"port 2"', weft("doctor", "--json").stdout)

    def test_a_profile_zero_that_is_offline_is_reported(self):
        with tempfile.TemporaryDirectory() as state:
            env = {**os.environ, "WEFT_STATE_DIR": state + "/state"}

            def weft(*words):
                return subprocess.run([WEFT, *words], capture_output=True, text=True, timeout=SECONDS_MAX, env=env)

            for kind, more in (("cc", ("--algorithm", "none")), ("ev", ("--mode", "auto"))):
                self.assertEqual(weft("ctl", kind, "set", "0", *more, "--state", "offline").returncode, 0)
                found = weft("doctor", "--json")
                self.assertEqual(found.returncode, 1)
                [one] = [f for f in json.loads(found.stdout)["findings"] if f["name"] == f"{kind}-profile 0"]
                self.assertEqual((one["level"], one["mend"]), ("problem", f"weft ctl {kind} set 0 --state online"))
                bench = weft("bench", "write", "--api", "mrc", "--size", "64", "--iterations", "1")
                self.assertIn(f"{kind}-profile 0: it is OFFLINE; `{one['mend']}` mends it", bench.stderr)
                self.assertEqual(weft(*one["mend"].split()[1:]).returncode, 0)
                self.assertNotIn(f"{kind}-profile 0", weft("doctor", "--json").stdout)

    def test_misuse_gives_one_line(self):
        for words in (["--planes", "nowhere"], ["--mtu", "1500"], ["--ifname", "nosuch"], ["--what"],
                      ["--secret-file", "/nosuch"], ["--cpus", "1023"], ["--cpus", f"{self.own_cpu()},1023"],
                      ["--evs", "65"], ["--burst", "61"], ["--planes", "127.0.1.1,127.0.1.1"]):
            ran = run(*words)
            self.assertEqual(ran.returncode, 2, words)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)


class WrongHost(unittest.TestCase):
    """A namespace with two interfaces; one of them has a small MTU and a filter."""

    SETUP = """
        set -e
        ip link set lo up
        ip link add eth0 mtu 1500 type veth peer name far0
        ip link add eth1 mtu 9000 type veth peer name far1
        for i in 0 1; do
            ip addr add 10.7.$i.7/24 dev eth$i
            ip link set eth$i up; ip link set far$i up
        done
        ethtool -K eth1 gso off >&2
        nft add table inet filter
        nft add chain inet filter input '{ type filter hook input priority 0; }'
        nft add rule inet filter input ip daddr 10.7.1.7 udp dport 4791 drop
        exec "$@"
    """

    def setUp(self):
        self.inside = ["unshare", "-Urn", "bash", "-c", self.SETUP, "setup"]
        tried = subprocess.run([*self.inside, "true"], capture_output=True, text=True, timeout=SECONDS_MAX)
        if tried.returncode != 0:
            self.skipTest(f"no such namespace can be made here: {tried.stderr.strip()}")

    def findings(self, *words):
        ran = run(*words, "--json", before=self.inside)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        return {f["name"]: f for f in json.loads(ran.stdout)["findings"]}

    def test_each_fault_is_found_with_a_command_that_fixes_it(self):
        self.assertEqual(self.findings("--ifname", "eth")["mtu 10.7.0.7"]["level"], "note")  # the MTU that fits is used
        found = self.findings("--ifname", "eth", "--mtu", "4096")
        for name, level, mend in (("mtu 10.7.0.7", "problem", "--mtu 1024"),
                                  ("mtu 10.7.1.7", "ok", ""),
                                  ("ports 10.7.0.7", "ok", ""),
                                  ("ports 10.7.1.7", "problem", "nft insert rule"),
                                  ("offloads eth0", "ok", ""),
                                  ("offloads eth1", "problem", "ethtool -K eth1"),
                                  ("mtu-mismatch", "note", "ip link set dev eth0 mtu 9000")):
            self.assertEqual(found[name]["level"], level, found[name])
            self.assertIn(mend, found[name]["mend"])

    def test_the_suggested_command_fixes_the_fault(self):
        mend = self.findings("--planes", "10.7.1.7")["ports 10.7.1.7"]["mend"]
        command = mend.split("  #")[0]
        self.inside = [*self.inside, "bash", "-c", f'{command} && exec "$@"', "mend"]
        self.assertEqual(self.findings("--planes", "10.7.1.7")["ports 10.7.1.7"]["level"], "ok")


if __name__ == "__main__":
    run_tests.main()
