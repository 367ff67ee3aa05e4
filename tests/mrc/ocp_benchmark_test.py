#!/usr/bin/env python3
"""OCP's benchmark, unmodified, with our library: on the loopback over shared memory and over UDP, and between two hosts
while a plane dies.

Takes OCP's tree from WEFT_PEER_OCP; without it only tests/mrc/pattern_test.py runs, with a program of ours. The sweep
is the benchmark's own, 1 B to 64 MiB. WEFT_OCP_ARGS replaces the options of the runs on the loopback ("-n 20 -w 2";
empty: its own defaults, 148 GB, minutes); `bench/run ocp` uses that. Between two hosts it runs with "-n 100", and
during the run one plane goes down and comes back.
"""

import os
import pathlib
import shlex
import sys
import tempfile
import time
import unittest

LIBRARY = pathlib.Path(os.environ["WEFT_LIB_MRC"]).resolve()
ARGUMENTS = shlex.split(os.environ.get("WEFT_OCP_ARGS", "-n 20 -w 2"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import clean_environment  # the import itself changes the environment
import mrc_programs
import ocp_benchmark
import run_tests

TREE = ocp_benchmark.tree_of_environment()
PATIENCE_S = 600
DOWN_AFTER_S, DOWN_FOR_S = 2.0, 2.0


class Benchmark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.program = ocp_benchmark.build(TREE, LIBRARY, cls.folder.name)

    def test_the_sweep_has_no_mismatch_on_the_loopback(self):
        for link, (settings, said) in mrc_programs.LOOPBACK_LINKS.items():
            with self.subTest(link):
                _, ended = ocp_benchmark.run(self.program, ARGUMENTS, PATIENCE_S, settings=settings)
                self.assertIn(said, ended.client_said)
                self.assertIn(said, ended.server_said)

    def test_the_sweep_survives_a_dead_plane_between_two_hosts(self):
        if reason := mrc_programs.why_no_namespaces():
            self.skipTest(reason)
        with mrc_programs.Hosts() as hosts:
            def kill_and_repair(client):
                time.sleep(DOWN_AFTER_S)
                hosts.set_plane(1, "down")
                time.sleep(DOWN_FOR_S)
                self.assertIsNone(client.poll(), "it ended before the plane came back")
                hosts.set_plane(1, "up")

            _, ended = ocp_benchmark.run(self.program, ["-n", "100"], PATIENCE_S, hosts, kill_and_repair)
        self.assertIn("is down", ended.client_said)
        self.assertIn("is up", ended.client_said)


if __name__ == "__main__":
    if not TREE:
        run_tests.skip_file("WEFT_PEER_OCP does not name a tree of OCP-Multipath-Reliable-Connection")
    run_tests.main()
