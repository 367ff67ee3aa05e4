"""What the benchmarks compute themselves: scenario text, units, medians, the ways through a fat tree."""

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
    def test_toml_reads_back_as_it_was(self):
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

    def test_median_of_an_even_number_is_a_run_that_was_made(self):
        self.assertEqual(lib.median_run([4, 1, 3, 2], key=lambda x: x), 2)

    def test_contestants_take_turns(self):
        order = []
        lib.interleave({"a": (3, lambda: order.append("a")), "b": (1, lambda: order.append("b"))})
        self.assertEqual(order, ["a", "b", "a", "a"])

    def test_quiet_turns_are_those_between_quick_gauges(self):
        gauges, times = iter([10, 10, 12, 10, 10.5, 9]), iter([1, 2, 3, 4, 5])
        turns, quiet = lib.quiet_turns(lambda: next(times), lambda: next(gauges), 2, 8)
        # Not those beside 12.
        self.assertEqual([t for t, _ in turns], [1, 2, 3, 4])
        self.assertEqual(quiet, [(1, 10), (4, 10.25)])
        gauges, times = iter([10, 20, 9, 20]), iter([1, 2, 3])
        turns, quiet = lib.quiet_turns(lambda: next(times), lambda: next(gauges), 2, 3)
        self.assertEqual((len(turns), quiet), (3, []))

    def test_ways_through_a_fat_tree(self):
        tree = sim.FatTree(128)  # switches of 8 ports: 4 hosts a T0, 16 a pod
        self.assertEqual([tree.hops(0, 3), tree.hops(0, 4), tree.hops(0, 15), tree.hops(0, 16)], [2, 4, 4, 6])
        with self.assertRaises(SystemExit):
            sim.FatTree(100)


if __name__ == "__main__":
    run_tests.main()
