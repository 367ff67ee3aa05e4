"""`weft bench write --api mrc`: the benchmark through mrc.h, with every kind of peer and in one process."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import bench_write
from bench_write import SECONDS_MAX, WEFT, free_port
import run_tests

BENCH = [WEFT, "bench", "write"]


def run(*words, env=None):
    return bench_write.run(BENCH, *words, env=env)


class OneHost(unittest.TestCase):
    def result(self, *words, env=None):
        ran = run("--api", "mrc", "--json", *words, env=env)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual(result["carrier"], "planes")
        self.assertEqual(result["counters"].get("transport.unbalanced", 0), 0)
        return result

    def test_bandwidth(self):
        rows = self.result("--size", "1", "--size", "5000", "--size", "1MiB", "--iterations", "50", "--qps", "3")["rows"]
        self.assertEqual([row["bytes"] for row in rows], [1, 5000, 1 << 20])
        for row in rows:
            self.assertEqual(row["iterations"], 50)
            self.assertGreater(row["gbps"], 0)

    def test_time_limit_and_both_directions(self):
        [row] = self.result("--seconds", "0.2", "--size", "64KiB")["rows"]
        self.assertGreater(sum(row["timeline"]["bytes"]), 0)
        for row in self.result("--bidirectional", "--size", "64KiB", "--size", "1MiB", "--iterations", "40")["rows"]:
            self.assertGreater(row["gbps"], 0)

    def test_latency(self):
        [row] = self.result("--latency", "--size", "8", "--iterations", "100")["rows"]
        self.assertLessEqual(row["min_us"], row["p50_us"])
        [row] = self.result("--latency", "--completions", "--size", "8", "--iterations", "100")["rows"]
        self.assertEqual(row["iterations"], 100)

    def test_an_idle_end_sleeps(self):
        self.assertLess(self.result("--size", "8", "--iterations", "1", "--idle", "300ms")["idle_cpu_pct"], 20)

    def test_settings_reach_the_device(self):
        words = ["--size", "64KiB", "--iterations", "20"]
        for flag in ("1024", "2048"):
            sent = self.result("--mtu", flag, *words)["counters"]["net.packets_sent"]
            self.assertGreaterEqual(sent, 20 * 65536 // int(flag))
        # A flag wins over the environment, and addresses replace interfaces.
        self.result("--planes", "127.0.1.1,127.0.2.1", *words, env={"WEFT_IFNAME": "none"})

    def test_the_payload_fits_the_mtu_of_the_interface(self):
        small = "ip link set lo up && ip link add eth0 mtu 1500 type veth peer name far0 && " \
                "ip addr add 10.7.0.7/24 dev eth0 && ip link set eth0 up && ip link set far0 up && exec \"$@\""
        inside = ["unshare", "-Urn", "bash", "-c", small, "setup"]
        if subprocess.run([*inside, "true"], capture_output=True, timeout=SECONDS_MAX).returncode != 0:
            self.skipTest("no such namespace can be made here")
        ran = bench_write.run([*inside, *BENCH], "--api", "mrc", "--ifname", "eth0", "--size", "64KiB", "--iterations", "3")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("1 plane, 1024 bytes a packet", ran.stderr)

    def test_unreadable_controller_state_gives_a_warning(self):
        words = ["--api", "mrc", "--self", "--size", "64", "--iterations", "1"]
        with tempfile.TemporaryDirectory() as folder:
            shared, damaged = os.path.join(folder, "shared"), os.path.join(folder, "damaged")
            for state in (shared, damaged):
                os.mkdir(state)
            os.chmod(shared, 0o775)
            with open(os.path.join(damaged, "weft0.state"), "w") as f:
                f.write("no state")
            # A device ignores a directory that is not safe. With a damaged state file its QPs get an error.
            for state, status, why in ((shared, 0, "others may write to it"), (damaged, 1, "remove it to begin anew")):
                ran = run(*words, env={"WEFT_STATE_DIR": state})
                self.assertEqual(ran.returncode, status, ran.stderr)
                self.assertRegex(ran.stderr, "what controllers said is not known: .*" + why)

    def test_it_works_without_a_home_directory(self):
        bare = ["env", "-u", "HOME", "-u", "XDG_STATE_HOME", "-u", "WEFT_STATE_DIR"]
        if os.geteuid() == 0:  # root's state is in another directory
            bare = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *bare]
            if subprocess.run([*bare, WEFT, "--help"], capture_output=True).returncode != 0:
                self.skipTest("no other user can run the program here")
        ran = bench_write.run([*bare, *BENCH], "--api", "mrc", "--self", "--size", "64", "--iterations", "1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stderr, "what controllers said is not known: .*set WEFT_STATE_DIR or HOME")

    def test_self_measures_in_one_process(self):
        for api in ("engine", "mrc"):
            ran = run("--self", "--api", api, "--size", "8", "--size", "1MiB", "--iterations", "300", "--qps", "2", "--json")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual([row["iterations"] for row in json.loads(ran.stdout)["rows"]], [300, 300])

    def test_unsupported_options_give_one_line(self):
        with tempfile.NamedTemporaryFile() as secret:
            secret.write(bytes(range(48)))
            secret.flush()
            for words in (["--shm"], ["--fabric", "scenarios/lab-two-plane.toml"], ["--receive-buffer", "65536"],
                          ["--secret-file", secret.name]):
                ran = run("--api", "mrc", *words)
                self.assertEqual(ran.returncode, 2, words)
                self.assertRegex(ran.stderr, r"^weft: .* cannot be had with --api mrc: .*\n$")
        for words in (["--api", "verbs"], ["--self", "--latency"], ["--self", "127.0.0.1"], ["--poll-gap", "0us"]):
            ran = run(*words)
            self.assertEqual(ran.returncode, 2, words)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)


class TwoEnds(unittest.TestCase):
    """An end does not depend on the API that the other end uses."""

    def test_every_pair_of_apis_works(self):
        for here, there in itertools.product(("engine", "mrc"), repeat=2):
            for what in (["--bidirectional", "--qps", "2"], ["--latency"]):
                with self.subTest(here=here, there=there, what=what[0]):
                    self.run_pair(here, there, what)

    def run_pair(self, here, there, what):
        port = free_port()
        listener = subprocess.Popen([*BENCH, "--listen", "--port", port, "--api", there], stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("waiting", listener.stderr.readline())
            ran = run("127.0.0.1", "--port", port, "--api", here, "--size", "64KiB", "--iterations", "100", "--json", *what)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual(listener.wait(timeout=SECONDS_MAX), 0, listener.stderr.read())
            if "mrc" in (here, there):
                self.assertEqual(json.loads(ran.stdout)["carrier"], "planes")
        finally:
            listener.kill()
            listener.wait()
            listener.stderr.close()


if __name__ == "__main__":
    run_tests.main()
