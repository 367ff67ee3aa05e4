"""The program from the command line: bad input, failing runs, JSON, pcap and trace."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import clean_environment  # the import itself changes the environment
import run_tests

WEFT = os.environ["WEFT_BINARY"]

SMALL = """
description = "two hosts"

[topology]
shape = "single"
hosts = 2
planes = 2
host_rate = "100Gbps"

[transport]
evs = 4
backup_evs = 0

[workload]
kind = "pairs"
bytes = "256KiB"
message = "64KiB"
immediate = true

[run]
memory = "bytes"
"""

JSON_FIELDS = """scenario seed trace_hash flows completed fct_us ideal_us goodput_gbps jain packets_sent retransmits trims
drops ecn_marks ev_bad qp_errors longest_pause_us packet_hops wall_s packet_hops_per_s rss_mb flows_abandoned
qp_errors_expected""".split()


def weft(*arguments):
    return subprocess.run([WEFT, *map(str, arguments)], capture_output=True, text=True, timeout=300)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, text, name="small.toml"):
        path = self.folder / name
        path.write_text(text)
        return path


class Misuse(Files):
    """Exit 2, nothing on stdout, exactly one line on stderr that names the mistake and its position."""

    def refused(self, ran, *says):
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertEqual(ran.stdout, "")
        self.assertRegex(ran.stderr, r"\Aweft: [^\n]+\n\Z")
        for text in says:
            self.assertIn(text, ran.stderr)

    def refused_scenario(self, old, new, *says):
        self.assertIn(old, SMALL)
        self.refused(weft("sim", "run", self.write(SMALL.replace(old, new))), "small.toml:", *says)

    def test_unknown_key(self):
        self.refused_scenario('host_rate = "100Gbps"', 'host_rate = "100Gbps"\nhost_speed = 3', "small.toml:9:", "host_speed")

    def test_unknown_table(self):
        self.refused_scenario("[run]", "[runs]", "runs")

    def test_wrong_unit(self):
        self.refused_scenario('"256KiB"', '"256 potatoes"', "potatoes", "expected")

    def test_wrong_type(self):
        self.refused_scenario("hosts = 2", 'hosts = "two"', "hosts")

    def test_missing_table(self):
        self.refused_scenario("[workload]\nkind", "[transport2]\nkind", "transport2")

    def test_not_toml(self):
        self.refused_scenario("hosts = 2", "hosts == 2", "small.toml:6:")

    def test_impossible_topologies(self):
        tiers = 'shape = "two-tier"\nhosts_per_t0 = 3\nt1_count = 2'
        self.refused_scenario('shape = "single"', tiers, "hosts_per_t0")
        self.refused_scenario("planes = 2", "planes = 9", "planes")
        self.refused_scenario("hosts = 2", "hosts = 0", "hosts")

    def test_a_workload_that_does_not_fit_the_topology(self):
        self.refused_scenario('kind = "pairs"', 'kind = "flows"\n[[workload.flow]]\nfrom = 0\nto = 7', "small.toml:")

    def test_unknown_values(self):
        self.refused_scenario('kind = "pairs"', 'kind = "gossip"', "gossip", "pairs")
        self.refused_scenario("evs = 4", 'evs = 4\npolicy = "luck"', "luck", "oblivious")

    def test_missing_file(self):
        none = self.folder / "none.toml"
        for words in (["sim", "run", none], ["sim", "seeds", none], ["lab", "up", none], ["lab", "run", none],
                      ["lab", "switch", none], ["bench", "write", "--fabric", none]):
            self.refused(weft(*words), "none.toml", "cannot be read: No such file or directory")

    def test_an_empty_file_name_is_reported_as_empty(self):
        for words in (["sim", "run", ""], ["sim", "seeds", ""], ["lab", "up", ""], ["lab", "run", ""], ["lab", "switch", ""]):
            self.refused(weft(*words), "the name of a file is empty; expected a scenario file")

    def test_an_empty_value_is_an_error_and_not_the_default(self):
        small = self.write(SMALL)
        for words in (["sim", "run", small, "--policy"], ["sim", "run", small, "--pcap"], ["sim", "run", small, "--trace"],
                      ["sim", "seeds", small, "--policy"], ["conformance", "run", "--only"], ["conformance", "list", "--skip"],
                      ["conformance", "run", "--junit"], ["conformance", "run", "--device"],
                      ["ctl", "ev-format", "set", "1", "--widths"], ["ctl", "ev-format", "set", "1", "--mode"],
                      ["ctl", "ev", "set", "1", "--mode"], ["ctl", "ev", "set", "1", "--events"],
                      ["ctl", "ev", "set", "1", "--state"], ["ctl", "ev", "set", "1", "--cur-state"],
                      ["ctl", "cc", "set", "1", "--algorithm"], ["ctl", "cc", "set", "1", "--set"],
                      ["ctl", "device", "--device"], ["ctl", "apply", "--file"], ["ctl", "probe", "--to"],
                      ["ctl", "events", "--timeout"]):
            self.refused(weft(*words, ""), f"{words[-1]}: it is empty; expected ")
        self.refused(weft("lab", "up", small, "--mtu", ""), "--mtu: : expected a whole number from 1280 to 65000")
        self.refused(weft("conformance", "run", "--dscp-data", ""), "--dscp-data: : expected a whole number from 0 to 63")

    def test_a_folder_is_refused_as_a_scenario(self):
        self.refused(weft("sim", "run", self.folder))

    def test_flags(self):
        small = self.write(SMALL)
        self.refused(weft("sim", "run", small, "--sede", "3"), "--sede: not expected here")
        # Before what is missing: it may be that, misspelt.
        self.refused(weft("sim", "run", "--sede"), "--sede: not expected here")
        self.refused(weft("--sede"), "--sede: not expected here")
        self.refused(weft("lab", "exec", "--name", "", "host", "0", "--", "ls", "--all"), "--name: it is empty")
        self.refused(weft("sim", "run", small, "--seed"), "--seed: its value is missing")
        self.refused(weft("sim", "run", small, "--seed", "1", "--seed", "2"), "--seed: given more than once; expected once")
        self.refused(weft("sim", "run", small, "--policy", "luck"), "luck", "flow-hash")
        self.refused(weft("sim", "run", small, "--seed", "one"), "--seed")
        self.refused(weft("sim", "run"), "FILE")
        self.refused(weft("sim", "seeds", small, "--count", "0"), "--count")
        self.refused(weft("sim"), "run", "seeds")
        self.refused(weft("simulate"), "sim, bench")
        self.refused(weft(), "sim, bench")

    def test_help_has_the_defaults(self):
        said = " ".join(weft("bench", "write", "--help").stdout.split())
        for words in ("engine .the default", r"--port UINT\W+18515", r"--qps UINT\W+1\b", r"--clients UINT\W+1\b",
                      "default: 64 to 64MiB", r"default 4\)", r"default 15\)", r"default 50us\)"):
            self.assertRegex(said, words)

    def test_a_number_out_of_range_is_told_the_range(self):
        self.refused(weft("bench", "write", "--port", "70000"), "--port: 70000", "1 to 65535")
        self.refused(weft("bench", "write", "--seconds", "nan"), "--seconds: nan", "0.01 to 3600")
        self.refused(weft("bench", "write", "--seconds", "1", "--iterations", "9"), "--iterations excludes --seconds")
        self.refused(weft("bench", "write", "--qps", "0"), "--qps: 0", "1 to 1024")
        self.refused(weft("bench", "write", "--clients", "2"), "--listen")

    def test_an_output_beyond_the_file_size_limit_is_an_error(self):
        with tempfile.TemporaryFile() as out:
            ran = subprocess.run(["prlimit", "--fsize=0", WEFT, "--help"], stdout=out, stderr=subprocess.PIPE, text=True,
                                 timeout=30)
        self.assertEqual((ran.returncode, ran.stderr), (1, "weft: stdout: not everything could be written\n"))
        self.refused(weft("doctor", "now"), "now: not expected here")
        self.refused(weft("lab", "run", "x", "--processes", "0"), "1 to 16")

    def test_outputs_that_cannot_be_written(self):
        small = self.write(SMALL)
        for flag in ("--pcap", "--trace"):
            self.refused(weft("sim", "run", small, flag, self.folder / "no/where"),
                         f"{flag} {self.folder}/no/where: cannot be written: No such file or directory; expected a file")
            self.refused(weft("sim", "run", small, flag, self.folder),
                         f"{flag} {self.folder}: cannot be written: Is a directory; expected a file")

    def test_help_exits_with_zero(self):
        for arguments in (["--help"], ["sim", "run", "--help"], ["--version"]):
            ran = weft(*arguments)
            self.assertEqual(ran.returncode, 0)
            self.assertNotEqual(ran.stdout, "")


class BrokenOutput(unittest.TestCase):
    """A failed write of results is a failure; a failed write of messages is not."""

    def status_of(self, words, redirection):
        ran = subprocess.run(["sh", "-c", f'exec "$0" {words} {redirection}', WEFT], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, timeout=60)
        return ran.returncode

    def test_results_that_cannot_be_written(self):
        for words in ("conformance list", "conformance list --json", "bench write --size 64 --iterations 5", "doctor",
                      "--help", "--version", "bench write --help"):
            for redirection in (">/dev/full", ">&-"):
                self.assertEqual(self.status_of(words, redirection), 1, words + redirection)

    def test_a_failed_write_is_reported_once(self):
        ran = subprocess.run(["sh", "-c", 'exec "$0" bench write --self --size 64 --iterations 5 >/dev/full', WEFT],
                             stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual([line for line in ran.stderr.splitlines() if line.startswith("weft:")],
                         ["weft: stdout: No space left on device"])

    def test_messages_that_cannot_be_written(self):
        for redirection in ("2>/dev/full", "2>&-", "<&- 2>&-"):
            self.assertEqual(self.status_of("bench write --size 64 --iterations 5", redirection), 0, redirection)
            self.assertEqual(self.status_of("ctl port 99", redirection), 2, redirection)
            self.assertEqual(self.status_of("bench write --size 0", redirection), 2, redirection)


class Failure(Files):
    """Exit 1: the command ran, and the outcome is not as expected."""

    def test_results_are_printed_when_a_recording_fails(self):
        small = self.write(SMALL)
        for flag in ("--pcap", "--trace"):
            ran = weft("sim", "run", small, "--json", flag, "/dev/full")
            self.assertEqual(ran.returncode, 1)
            self.assertEqual(ran.stderr, f"weft: {flag} /dev/full: not everything could be written\n")
            self.assertEqual(json.loads(ran.stdout)["completed"], json.loads(ran.stdout)["flows"])

    def test_a_stuck_run_names_the_host_and_the_command(self):
        path = self.write(SMALL.replace('[run]', """
[transport.retry]
exponential_count = 25

[[fault]]
kind = "plane-down"
plane = 0
count = 2
silent = true
from = "5us"

[run]
time_limit = "20ms"
"""))
        ran = weft("sim", "run", path)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertRegex(ran.stderr, r"(?m)^stuck: .*host 0")
        self.assertRegex(ran.stderr, r"(?m)^expected: 0 of 1 flows completed, expected all$")
        self.assertRegex(ran.stderr, rf"(?m)^repeat: weft sim run {re.escape(str(path))} --seed 1$")

    def test_a_failed_expectation_gives_a_sentence(self):
        path = self.write(SMALL + "\n[expect]\ngoodput_gbps_min = 1000\n")
        ran = weft("sim", "run", path)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, r"(?m)^expected: goodput was .* Gb/s, expected at least 1000$")

    def test_seeds_name_the_first_failing_seed(self):
        path = self.write(SMALL + "\n[expect]\ngoodput_gbps_min = 1000\n")
        ran = weft("sim", "seeds", path, "--count", 3, "--first", 5)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("3 seeds from 5, 3 failed", ran.stdout)
        self.assertIn("first failing seed: 5", ran.stderr)
        self.assertIn("--seed 5", ran.stderr)


class Success(Files):
    def test_json_is_one_object_with_every_field(self):
        ran = weft("sim", "run", self.write(SMALL), "--json", "--seed", 7)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(ran.stdout.count("\n"), 1)
        result = json.loads(ran.stdout)
        self.assertEqual([f for f in JSON_FIELDS if f not in result], [])
        self.assertEqual(set(result["fct_us"]), {"min", "mean", "p50", "p99", "max"})
        self.assertEqual((result["scenario"], result["seed"]), ("small", 7))
        self.assertEqual((result["flows"], result["completed"]), (1, 1))
        self.assertRegex(result["trace_hash"], r"\A[0-9a-f]{16}\Z")

    def test_table_and_json_agree(self):
        path = self.write(SMALL)
        table, result = weft("sim", "run", path).stdout, json.loads(weft("sim", "run", path, "--json").stdout)
        self.assertIn(result["trace_hash"], table)
        self.assertIn("1 of 1 completed", table)

    def test_the_command_line_wins_over_the_file(self):
        path = self.write(SMALL.replace("[run]", "[run]\nseed = 5"))
        seed = lambda *more: json.loads(weft("sim", "run", path, "--json", *more).stdout)["seed"]
        self.assertEqual((seed(), seed("--seed", 9)), (5, 9))

    def test_passing_seeds_exit_with_zero(self):
        ran = weft("sim", "seeds", self.write(SMALL), "--count", 8, "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(json.loads(ran.stdout), {"scenario": "small", "seeds": 8, "failed": 0})

    def test_a_file_name_with_a_quote_gives_valid_json(self):
        path = self.write(SMALL, 'a"b.toml')
        for words in (["run", path, "--json"], ["seeds", path, "--count", 1, "--json"]):
            self.assertEqual(json.loads(weft("sim", *words).stdout)["scenario"], 'a"b')

    def test_recording_does_not_change_the_run(self):
        path = self.write(SMALL)
        plain = json.loads(weft("sim", "run", path, "--json").stdout)["trace_hash"]
        watched = weft("sim", "run", path, "--json", "--pcap", self.folder / "a.pcap", "--trace", self.folder / "a.json")
        self.assertEqual(json.loads(watched.stdout)["trace_hash"], plain)

    def test_a_trace_has_one_object_per_line(self):
        trace = self.folder / "trace.json"
        ran = weft("sim", "run", self.write(SMALL), "--json", "--trace", trace)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        records = [json.loads(line) for line in trace.read_text().splitlines()]
        kinds = {r["kind"] for r in records}
        self.assertLessEqual({"qp", "send", "receive", "post", "complete", "memory", "end"}, kinds)
        sent = sum(r["kind"] == "send" for r in records)
        self.assertEqual(sent, json.loads(ran.stdout)["packets_sent"])


class Pcap(Files):
    def setUp(self):
        super().setUp()
        if shutil.which("tshark") is None:
            self.skipTest("tshark is not installed: the capture cannot be read back (tools/install-deps test)")

    def fields(self, forwarding):
        pcap = self.folder / "run.pcap"
        path = self.write(SMALL.replace("[run]", f'[switch]\nforwarding = "{forwarding}"\n\n[run]'))
        ran = weft("sim", "run", path, "--json", "--pcap", pcap)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        names = ["frame.protocols", "udp.dstport", "ipv6.dst", "udp.length", "_ws.malformed"]
        command = ["tshark", "-n", "-r", pcap, "-T", "fields", "-E", "occurrence=l"]
        for name in names:
            command += ["-e", name]
        read = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        rows = [dict(zip(names, line.split("\t"))) for line in read.stdout.splitlines()]
        self.assertEqual(len(rows), json.loads(ran.stdout)["packets_sent"])
        return rows

    def test_hashed_is_ethernet_ipv6_udp(self):
        for row in self.fields("hashed"):
            self.assertTrue(row["frame.protocols"].startswith("eth:ethertype:ipv6:udp"), row)
            self.assertEqual(row["udp.dstport"], "4791")
            self.assertRegex(row["ipv6.dst"], r"\Afd00:[12]::[12]\Z")

    def test_srv6_is_ipv6_in_ipv6(self):
        rows = self.fields("srv6")
        for row in rows:
            self.assertRegex(row["frame.protocols"], r"\Aeth:ethertype:ipv6:(ipv6\.routing:)?ipv6:udp")
            self.assertEqual(row["udp.dstport"], "4791")
        full = 8 + 36 + 4096 + 4  # UDP, headers, payload, ICRC
        self.assertIn(str(full), {row["udp.length"] for row in rows})


if __name__ == "__main__":
    run_tests.main()
