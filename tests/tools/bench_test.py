"""Helper functions of the benchmarks: scenario text, units, medians, path lengths in a fat tree."""

import pathlib
import sys
import tomllib
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "bench"))

import lib  # noqa: E402
import run_tests  # noqa: E402
import sim  # noqa: E402


class Bench(unittest.TestCase):
    def test_written_toml_reads_back_unchanged(self):
        scenario = {
            "description": 'says "hello"',
            "topology": {"hosts": 8, "host_rate": "400Gbps", "ecn": True, "share": 0.5},
            "transport": {"retry": {"timeout": 10}},
            "workload": {"flow": [{"from": 0, "to": 1}, {"from": 1, "to": 0, "paths": [1, 2]}]},
            "fault": [{"kind": "loss"}],
        }
        self.assertEqual(tomllib.loads(lib.to_toml(scenario)), scenario)

    def test_units(self):
        self.assertEqual(lib.gbps("400Gbps"), 400)
        self.assertEqual(lib.size("2MB"), 2_000_000)
        self.assertEqual(lib.size("256KiB"), 262_144)
        self.assertEqual(lib.size(4096), 4096)
        self.assertAlmostEqual(lib.seconds("500ns"), 5e-7)
        with self.assertRaises(SystemExit):
            lib.size("3 furlongs")

    def test_the_median_of_an_even_number_is_an_actual_run(self):
        self.assertEqual(lib.median_run([4, 1, 3, 2], key=lambda x: x), 2)

    def test_contestants_run_in_turn(self):
        order = []
        lib.interleave({"a": (3, lambda: order.append("a")), "b": (1, lambda: order.append("b"))})
        self.assertEqual(order, ["a", "b", "a", "a"])

    def test_a_turn_between_two_fast_gauges_counts_as_quiet(self):
        gauges, times = iter([10, 10, 12, 10, 10.5, 9]), iter([1, 2, 3, 4, 5])
        turns, quiet = lib.quiet_turns(lambda: next(times), lambda: next(gauges), 2, 8)
        # The turns before and after the gauge of 12 are not quiet.
        self.assertEqual([t for t, _ in turns], [1, 2, 3, 4])
        self.assertEqual(quiet, [(1, 10), (4, 10.25)])
        gauges, times = iter([10, 20, 9, 20]), iter([1, 2, 3])
        turns, quiet = lib.quiet_turns(lambda: next(times), lambda: next(gauges), 2, 3)
        self.assertEqual((len(turns), quiet), (3, []))

    def test_path_lengths_in_a_fat_tree(self):
        tree = sim.FatTree(128)  # switches with 8 ports: 4 hosts per T0, 16 per pod
        self.assertEqual([tree.hops(0, 3), tree.hops(0, 4), tree.hops(0, 15), tree.hops(0, 16)], [2, 4, 4, 6])
        with self.assertRaises(SystemExit):
            sim.FatTree(100)


if __name__ == "__main__":
    run_tests.main()
