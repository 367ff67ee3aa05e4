#!/usr/bin/env python3
"""A C program with mrc.h sends messages that all differ, and checks them byte by byte (pattern_pair.c): on the loopback
over shared memory and over UDP, and between two hosts while first one plane dies and comes back, then the other. The
last test is skipped without root.
"""

import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

LIBRARY = pathlib.Path(os.environ["WEFT_LIB_MRC"]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import clean_environment  # the import itself changes the environment
import mrc_programs
import run_tests

PATIENCE_S = 120
SIZE_MAX = 4 << 20
SIZES = 23  # 1 B to SIZE_MAX
NO_END = 1 << 31


class Patterns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.program = mrc_programs.build(f"{cls.folder.name}/pattern_pair", [HERE / "pattern_pair.c"], LIBRARY, "-std=c99",
                                         "-Wall", "-Wextra", "-Werror", f"-I{mrc_programs.ROOT / 'include/mrc'}")

    def run_pair(self, seconds, messages, hosts=None, meanwhile=None, settings=None):
        """The sender's report of its run, after both ends have reported the same."""
        port = mrc_programs.free_port()
        both = [self.program, port, str(seconds), str(messages), str(SIZE_MAX)]
        if hosts is None:
            ended = mrc_programs.run_pair(both, [*both, "127.0.0.1"], port, PATIENCE_S, settings, settings)
        else:
            ended = mrc_programs.run_pair(hosts.command("b", *both), hosts.command("a", *both, hosts.address("b", 0)), port,
                                          PATIENCE_S, hosts.environment("b"), hosts.environment("a"), meanwhile)
        said = ended.client_said + ended.server_said
        self.assertEqual((ended.client_status, ended.server_status), (0, 0), said)
        sent, received = (json.loads(text.splitlines()[-1]) for text in (ended.client_said, ended.server_said))
        self.assertEqual(sent["messages"], received["messages"], said)
        self.assertTrue(received["verified"], said)
        return sent, ended

    def test_every_message_arrives_on_the_loopback(self):
        for link, (settings, said) in mrc_programs.LOOPBACK_LINKS.items():
            with self.subTest(link):
                sent, ended = self.run_pair(seconds=60, messages=20 * SIZES, settings=settings)
                self.assertEqual(sent["messages"], 20 * SIZES)
                self.assertIn(said, ended.client_said)
                self.assertIn(said, ended.server_said)

    def test_every_message_arrives_while_planes_die(self):
        if reason := mrc_programs.why_no_namespaces():
            self.skipTest(reason)
        with mrc_programs.Hosts() as hosts:
            def kill_and_repair(client):
                # If a link goes down before the kernel has checked that its addresses are unique, it is back a second late.
                for plane in (1, 0):
                    time.sleep(1.2)
                    hosts.set_plane(plane, "down")
                    time.sleep(1.2)
                    if client.poll() is not None:  # its output is reported together with its exit status
                        return
                    hosts.set_plane(plane, "up")

            sent, ended = self.run_pair(6.5, NO_END, hosts, kill_and_repair)
        self.assertGreater(sent["messages"], SIZES)
        for plane in (0, 1):
            for state in ("down", "up"):
                self.assertRegex(ended.client_said, rf"plane {plane} \(.*\) is {state}")


if __name__ == "__main__":
    run_tests.main()
