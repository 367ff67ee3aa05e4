"""Helper functions of the benchmarks: scenario text, units, medians, path lengths in a fat tree, bars, and messages about
mistakes."""

import contextlib
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tomllib
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "bench"))

import failover  # noqa: E402
import lib  # noqa: E402
import loss  # noqa: E402
import run_tests  # noqa: E402
import shm  # noqa: E402
import sim  # noqa: E402
import tcp  # noqa: E402

sim_limits = importlib.import_module("sim-limits")
RUN = pathlib.Path(__file__).resolve().parent.parent.parent / "bench/run"


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


class Bars(unittest.TestCase):
    def finish(self, *bars):
        """The lines before the last, and the last as JSON."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            lib.finish(weft=1, ratio=None, why="alone", bars=bars)
        *lines, last = out.getvalue().splitlines()
        return [line for line in lines if line], json.loads(last)

    def test_each_bar_is_a_line_and_in_the_json(self):
        lines, last = self.finish(lib.Bar("kept", 0.973, at_least=0.97, peers={"MPTCP": 0.991}),
                                  lib.Bar("pause", 11.84, at_most=10, unit="ms"),
                                  lib.Bar("share", 7.5, at_least=0.3, at_most=3))
        self.assertEqual(lines, ["bar: kept: at least 0.97: measured 0.973: held (MPTCP 0.991)",
                                 "bar: pause: at most 10 ms: measured 11.84 ms: missed",
                                 "bar: share: at least 0.3 and at most 3: measured 7.5: missed"])
        self.assertEqual([bar["held"] for bar in last["bars"]], [True, False, False])
        self.assertEqual(last["bars"][0], {"what": "kept", "measured": 0.973, "at_least": 0.97, "held": True,
                                           "peers": {"MPTCP": 0.991}})
        self.assertEqual(last["bars"][1], {"what": "pause", "measured": 11.84, "at_most": 10, "unit": "ms", "held": False})

    def test_a_bar_that_is_just_reached_is_held(self):
        self.assertTrue(lib.Bar("kept", 0.97, at_least=0.97).held)
        self.assertTrue(lib.Bar("pause", 10, at_most=10).held)

    def test_what_was_not_measured_is_neither_held_nor_missed(self):
        lines, last = self.finish(lib.Bar("ratio", None, at_least=20, why="no peer"))
        self.assertEqual(lines, ["bar: ratio: at least 20: not measured: no peer"])
        self.assertEqual(last["bars"], [{"what": "ratio", "measured": None, "at_least": 20, "held": None, "why": "no peer"}])

    def test_what_never_came_is_missed_and_the_json_has_no_infinity(self):
        lines, last = self.finish(lib.Bar("full rate", float("inf"), at_most=20, unit="ms"))
        self.assertEqual(lines, ["bar: full rate: at most 20 ms: measured never: missed"])
        self.assertEqual((last["bars"][0]["measured"], last["bars"][0]["held"]), (None, False))

    def test_loss_shows_the_peers_of_its_bar(self):
        two = {"weft": {"kept": 0.96}, "MPTCP": {"kept": 0.99}}
        self.assertEqual(loss.bar_of("two links", two, 0.97).line(),
                         "bar: two links: at least 0.97: measured 0.96: missed (MPTCP 0.99)")

    def test_failover_judges_both_faults(self):
        one = {"trials": 20, "pause_max_ms": 3, "pause_median_ms": 1, "survivor_share": 1, "full_after_median_ms": None}
        detail = {f"{name}, {kind}": one for name in ("weft", "MPTCP") for kind in ("down", "silent")}
        self.assertEqual([bar.held for bar in failover.bars_of(detail, 20)], [True, True, True, False] * 2)

    def test_tcp_judges_what_each_link_measures(self):
        by_udp = {"veth": "weft {}", "loopback": "weft {}, as by default"}
        for link, name in by_udp.items():
            results = {tcp.TCP: [10], tcp.RUNS: [20], tcp.SINGLES: [5], "weft 16MiB": [13],
                       "weft 16MiB, single packets of 64 EVs": [3]} | {name.format(size): [13] for size in tcp.SIZES}
            self.assertEqual([bar.held for bar in tcp.bars_of(link, results)], [True] * 3 + [False, False])

    def test_shm_judges_quiet_turns_where_there_were_enough(self):
        asleep = {"weft over UDP, both asleep, us": ("of bare", 1.2)}
        busy = {"weft over UDP, both busy, us": ("of bare", 1.4)}
        quiet = {"weft over UDP, both busy, quiet, us": ("of bare", 1.2)}
        median = {"weft, both busy, us": 0.5}
        self.assertEqual([bar.held for bar in shm.bars_of(median, 0.9, asleep | busy)], [True, True, False, False])
        self.assertEqual([bar.held for bar in shm.bars_of(median, 0.9, asleep | busy | quiet)], [True, True, True, False])

    def test_the_simulator_is_judged_without_its_peer_too(self):
        detail = {"weft": {"rss_mb": 480, "slowest_over_ideal": 1.1}}
        self.assertEqual([bar.held for bar in sim.bars_of(detail, None, "no htsim")], [None, None, True, True])
        detail |= {"htsim": {"slowest_over_ideal": 1.18}, "wall_ratio": 19}
        self.assertEqual([bar.held for bar in sim.bars_of(detail, 21, None)], [True, False, True, True])

    def test_limits_of_the_simulator(self):
        speed, longest = sim_limits.LIMITS[:2]
        self.assertEqual([speed.bar(2.4e6).held, speed.bar(2.5e6).held], [False, True])
        self.assertEqual([longest.bar(61).held, longest.bar(60).held], [False, True])


class Mistakes(unittest.TestCase):
    """One line, that says what was expected, and exit 2, before anything is built."""

    def test_misuse_is_one_line(self):
        for words, environment, said in (
                (["nosuch"], {}, "'nosuch': no such benchmark; expected one of: api "),
                ([""], {}, "'': no such benchmark"),
                (["--all", "--seconds"], {}, "--seconds: not expected beside --all"),
                (["sim", "--hosts", "-1"], {}, "--hosts: '-1': expected a whole number from 1"),
                (["sim", "--hosts", "100"], {}, "k^3/4 hosts"),
                (["sim", "--bytes", "64KiB"], {}, "expected a whole number from 1"),
                (["sim", "more"], {}, "unrecognized arguments: more; see `bench/run sim --help`"),
                (["sim"], {"WEFT_PEER_HTSIM": "/nonexistent"}, "WEFT_PEER_HTSIM=/nonexistent: not a program"),
                (["sim-scaling", "--hosts", "7"], {}, "powers of two"),
                (["failover", "--trials", "0"], {}, "expected a whole number from 1"),
                (["budget", "--seconds", "nan"], {}, "expected a number above 0"),
                (["shm"], {"WEFT_BENCH_RUNS": "often"}, "WEFT_BENCH_RUNS='often': expected a whole number from 1"),
                (["shm"], {"WEFT_BENCH_RUNS": ""}, "WEFT_BENCH_RUNS='': expected a whole number from 1"),
                (["ocp"], {"WEFT_PEER_OCP": "/nonexistent"}, "WEFT_PEER_OCP=/nonexistent: there is no mrc.h; expected")):
            with self.subTest(words=words, environment=environment):
                ran = subprocess.run([sys.executable, RUN, *words], capture_output=True, text=True, timeout=60,
                                     env={**os.environ, **environment})
                self.assertEqual(ran.returncode, 2, ran.stderr)
                self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
                self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    run_tests.main()
