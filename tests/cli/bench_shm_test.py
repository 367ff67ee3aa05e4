"""`weft bench write` over shared memory: the default on one host, optional, and freed when its process dies."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import bench_write
from bench_write import SECONDS_MAX, WEFT, free_port
import run_tests

BENCH = [WEFT, "bench", "write"]


def run(*words, env=None):
    return bench_write.run(BENCH, *words, env=env)


class Choice(unittest.TestCase):
    def carrier(self, *words, env=None):
        ran = run("--size", "64KiB", "--iterations", "20", "--json", *words, env=env)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        used = result["counters"].get("net.shm_packets_sent", 0) > 0
        self.assertEqual(used, result["carrier"] == "shared memory")
        self.assertIn("shared memory" if used else "planes", ran.stderr)
        return result["carrier"]

    def test_auto_uses_shared_memory(self):
        self.assertEqual(self.carrier(), "shared memory")
        self.assertEqual(self.carrier("--shm"), "shared memory")

    def test_off_uses_the_planes(self):
        self.assertEqual(self.carrier("--no-shm"), "planes")
        self.assertEqual(self.carrier(env={"WEFT_SHM": "0"}), "planes")

    def test_misuse_gives_one_line(self):
        for words in (["--shm", "--no-shm"], ["--spin", "often"], ["--idle", "long"]):
            ran = run(*words)
            self.assertEqual(ran.returncode, 2, words)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)


class TwoEnds(unittest.TestCase):
    """The ends agree on the link of their QPs, even if their settings differ."""

    def two_ends(self, here, there, **listener_options):
        port = free_port()
        listener = subprocess.Popen([*BENCH, "--listen", "--port", port, *there], stderr=subprocess.PIPE, text=True,
                                    **listener_options)
        self.addCleanup(listener.stderr.close)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.assertIn("waiting", listener.stderr.readline())
        ran = run("127.0.0.1", "--port", port, "--size", "64KiB", "--iterations", "20", "--bidirectional", "--json", *here)
        return ran, listener

    def carriers(self, here=(), there=(), **listener_options):
        ran, listener = self.two_ends(here, there, **listener_options)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(listener.wait(timeout=SECONDS_MAX), 0)
        carrier = json.loads(ran.stdout)["carrier"]
        said = "over shared memory\n" if carrier == "shared memory" else "over UDP, "
        self.assertIn(f"127.0.0.1 has come, {said}", listener.stderr.read())
        self.assertIn(f"\n{said}", ran.stderr)
        return carrier

    def test_both_ends_on_auto_share_memory(self):
        self.assertEqual(self.carriers(), "shared memory")

    def test_one_end_off_disables_shared_memory(self):
        self.assertEqual(self.carriers(here=["--no-shm"]), "planes")
        self.assertEqual(self.carriers(there=["--no-shm"]), "planes")

    def test_must_against_off_is_reported_by_both_ends(self):
        for here, there in (("--shm", "--no-shm"), ("--no-shm", "--shm")):
            ran, listener = self.two_ends([here], [there])
            self.assertEqual((ran.returncode, listener.wait(timeout=SECONDS_MAX)), (2, 2), ran.stderr)
            said = {here: ran.stderr, there: listener.stderr.read()}
            self.assertIn("weft: no shared memory with the other end", said["--shm"])
            self.assertIn("weft: the other end insists on shared memory", said["--no-shm"])

    def test_ends_of_different_users_share_no_memory(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        if subprocess.run([WEFT, "--help"], user="nobody", capture_output=True, cwd="/").returncode != 0:
            self.skipTest(f"the user nobody may not run {WEFT}")
        self.assertEqual(self.carriers(user="nobody", cwd="/"), "planes")


class Sizes(unittest.TestCase):
    def test_every_size_arrives_in_both_directions(self):
        ran = run("--shm", "--size", "1", "--size", "65535", "--size", "65537", "--size", "3MB", "--iterations", "30",
                  "--qps", "3", "--bidirectional", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual([row["bytes"] for row in result["rows"]], [1, 65535, 65537, 3_000_000])
        for name in ("net.shm_drops_full", "net.shm_drops_gone", "net.shm_links_broken", "transport.unbalanced"):
            self.assertEqual(result["counters"].get(name, 0), 0, name)

    def test_ping_pong_works_spinning_and_sleeping(self):
        for spin in ("0us", "50us", "forever"):
            for carrier in ("--shm", "--no-shm"):
                ran = run("--latency", carrier, "--spin", spin, "--size", "8", "--iterations", "300", "--json")
                self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_an_idle_end_sleeps(self):
        ran = run("--size", "8", "--iterations", "1", "--idle", "300ms", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertLess(json.loads(ran.stdout)["idle_cpu_pct"], 20)


class Killed(unittest.TestCase):
    def test_a_killed_end_is_reported_and_its_ring_is_freed(self):
        port = free_port()
        listener = subprocess.Popen([*BENCH, "--listen", "--shm", "--port", port], stderr=subprocess.PIPE, text=True)
        listener.stderr.readline()
        client = subprocess.Popen([*BENCH, "127.0.0.1", "--shm", "--port", port, "--size", "1MiB", "--iterations",
                                   "100000000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("planes: ", client.stderr.readline())
            self.assertIn("shared memory", client.stderr.readline())
            self.assertTrue(self.rings(client.pid))
            listener.send_signal(signal.SIGKILL)
            listener.wait()
            until = time.monotonic() + 10
            while self.rings(client.pid) and client.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            self.assertFalse(self.rings(client.pid))
            _, said = client.communicate(timeout=SECONDS_MAX)
            self.assertEqual(client.returncode, 1, said)
            self.assertRegex(said, "does not answer|has gone")  # detected by its timers, or by the end of the TCP stream
        finally:
            for process in (listener, client):
                process.kill()
                process.wait()
            listener.stderr.close()

    @staticmethod
    def rings(pid):
        try:
            with open(f"/proc/{pid}/maps") as maps:
                return [line for line in maps if "weft-ring" in line]
        except OSError:
            return []


if __name__ == "__main__":
    run_tests.main()
