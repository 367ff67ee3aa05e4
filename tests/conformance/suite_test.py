"""`weft conformance`: our own library conforms, and libraries that are wrong in one thing fail what is about it.

What a mutant breaks is said in its own file (mutants/*.cc). For each the tests that must fail are named here, and the
run is compared with them exactly: what fails besides would be a test that says something else than it is about.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

LIBRARY = os.environ["WEFT_LIB_MRC"]
MUTANTS = pathlib.Path(os.environ["WEFT_MUTANTS"])
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import clean_environment  # noqa: E402, F401: forgets what the user has set
import run_tests

WEFT = os.environ["WEFT_BINARY"]
SECONDS_MAX = 800
# What Weft does not hold where both ends are its own (docs/conformance.md).
KNOWN_SHOULD = {"wire.icrc.covers-payload", "wire.sack.mpr"}


class Conformance(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weft-conformance-")
        self.addCleanup(self.folder.cleanup)
        self.environment = dict(os.environ, WEFT_STATE_DIR=self.folder.name + "/state")

    def run_weft(self, *words, status=0, preload=None):
        environment = dict(self.environment)
        if preload:
            environment["LD_PRELOAD"] = str(preload)
            # A sanitizer wants to be first among what is loaded, and need not be.
            environment["ASAN_OPTIONS"] = "verify_asan_link_order=0"
        ran = subprocess.run([WEFT, "conformance", *map(str, words)], capture_output=True, text=True,
                             timeout=SECONDS_MAX, env=environment)
        self.assertEqual(ran.returncode, status, f"{words}: {ran.stdout[-4000:]}{ran.stderr}")
        return ran

    def profiles_in_use(self, noun):
        """Those that are not in state INIT."""
        shown = subprocess.run([WEFT, "ctl", noun, "show", "--json"], capture_output=True, text=True,
                               env=self.environment, timeout=60)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return [p for p in json.loads(shown.stdout)["profiles"] if p["state"] != "init"]

    def failed(self, library, only, status=1, **options):
        """Which of `only` fail with this library; each with its line."""
        words = [w for glob in only for w in ("--only", glob)]
        ran = self.run_weft("run", library, "--json", *words, *options.pop("more", ()), status=status, **options)
        out = json.loads(ran.stdout)
        self.assertEqual([r["id"] for r in out["results"] if r["status"] == "error"], [])
        return {r["id"]: r for r in out["results"] if r["status"] == "fail"}

    def assert_fails(self, library, only, expected, **options):
        found = self.failed(library, only, **options)
        self.assertEqual(set(found), set(expected), json.dumps(list(found.values()), indent=1))
        return found


class OwnLibrary(Conformance):
    def test_conforms_and_reports_agree(self):
        junit = pathlib.Path(self.folder.name) / "junit.xml"
        out = json.loads(self.run_weft("run", LIBRARY, "--json", "--junit", junit).stdout)
        bad = [r for r in out["results"] if r["status"] in ("fail", "error") and r["id"] not in KNOWN_SHOULD]
        self.assertEqual(bad, [])
        self.assertTrue(out["conforms"])
        self.assertEqual(out["device"], "weft0")
        self.assertEqual(out["api_version"], "1.0.1")
        self.assertGreaterEqual(len(out["results"]), 120)
        self.assertGreaterEqual(sum(r["id"].startswith("wire.") for r in out["results"]), 40)
        for result in out["results"]:
            for key in ("id", "clause", "certainty", "level", "what", "status", "seconds"):
                self.assertIn(key, result)
            if result["status"] == "skip":
                self.assertTrue(result["got"], result)
        skipped = [r["id"] for r in out["results"] if r["status"] == "skip"]
        print("skipped:", ", ".join(skipped) or "none")
        self.assertLessEqual(len(skipped), 6)
        # The same run as JUnit's XML.
        suites = xml.etree.ElementTree.parse(junit).getroot()
        cases = suites.findall("./testsuite/testcase")
        self.assertEqual({c.get("name") for c in cases}, {r["id"] for r in out["results"]})
        self.assertEqual(sum(int(s.get("tests")) for s in suites), len(cases))
        self.assertEqual(sum(int(s.get("failures")) for s in suites), 0)
        self.assertEqual(len(suites.findall(".//failure")) + len(suites.findall(".//error")), 0)
        # Nothing is left of the controllers' doings: every profile is as it was.
        for noun in ("ev-format", "ev", "cc"):
            self.assertEqual(self.profiles_in_use(noun), [], noun)

    def test_conforms_to_the_letter_towards_others(self):
        """Planes of its own: such a device is the only one of its addresses."""
        planes = ",".join(f"127.0.{p}.1" for p in range(31, 35))
        self.environment.update({"WEFT_PEERS": "mrc", "WEFT_PLANES": planes})
        out = json.loads(self.run_weft("run", LIBRARY, "--json", "--only", "wire.*").stdout)
        self.assertEqual([r for r in out["results"] if r["status"] != "pass"], [])
        self.assertGreaterEqual(len(out["results"]), 120)
        # What needs two processes says why it cannot be.
        out = json.loads(self.run_weft("run", LIBRARY, "--json", "--only", "api.write.*", "--only", "api.err.peer-dies").stdout)
        self.assertEqual({r["got"] for r in out["results"] if r["status"] != "pass"},
                         {"the device is for one process at a time"})

    def test_library_beside_the_program_is_the_default(self):
        self.run_weft("run", "--only", "api.version.mrc")

    def test_table_for_people(self):
        out = self.run_weft("run", LIBRARY, "--only", "api.version.*").stdout.splitlines()
        self.assertIn("device weft0", out[0])
        self.assertTrue(out[1].startswith("pass   MUST    api.version.mrc"))
        self.assertEqual(out[-1], "2 passed, 0 MUST and 0 SHOULD failed, 0 skipped, 0 errors")

    def test_list(self):
        tests = json.loads(self.run_weft("list", "--json").stdout)
        self.assertEqual(len(tests), len(self.run_weft("list").stdout.splitlines()))
        self.assertTrue(all(t["clause"] for t in tests))
        some = json.loads(self.run_weft("list", "--json", "--only", "wire.*", "--skip", "wire.s*").stdout)
        self.assertTrue(some)
        self.assertTrue(all(t["id"].startswith("wire.") and not t["id"].startswith("wire.s") for t in some))

    def test_misuse_is_one_line(self):
        here = os.path.abspath(__file__)
        with open("/proc/self/maps") as maps:
            libc = next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-" in line)
        for words, says in [(("run", "/no/such/lib_mrc.so"), "no such file"),
                            (("run", here), "invalid ELF header"),
                            (("run", os.path.dirname(here)), "not a file"),
                            (("run", "/proc/self/exe"), ""),
                            (("run", LIBRARY, "--device", "mlx5_7"), "mlx5_7"),
                            (("run", LIBRARY, "--only", "no.such"), "no test"),
                            # One pattern a flag: what follows is the library, or not expected.
                            (("run", "--only", "wire.*", "/no/such/lib_mrc.so"), "no such file"),
                            (("run", "--tester", "127.0.0.1", "/no/such/lib_mrc.so"), "no such file"),
                            (("list", "--skip", "wire.*", "api.*"), "api.*: not expected here"),
                            (("run", LIBRARY, "--device-port", "70000"), "1 to 65535"),
                            (("run", LIBRARY, "--dscp-data", "64"), "0 to 63"),
                            (("run", LIBRARY, "--timeout", "soon"), "--timeout soon"),
                            (("run", LIBRARY, "--icrc", "some"), "--icrc some"),
                            (("run", LIBRARY, "--tester", "nowhere"), "--tester nowhere"),
                            (("run", LIBRARY, "--gid-index", "-1"), "-1"),
                            (("run", LIBRARY, "--gid-index", "99"), "--gid-index 99: port 1 of weft0 has no such"),
                            (("run", LIBRARY, "--tester", "203.0.113.7"), "--tester 203.0.113.7: no interface"),
                            (("run", LIBRARY, "--junit", "/nosuch/x.xml"), "cannot be written: No such file"),
                            (("run", libc), "no function of mrc.h"),
                            (("prove",), "no such command")]:
            with self.subTest(words=words):
                ran = self.run_weft(*words, status=2)
                self.assertEqual(ran.stdout, "")
                self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
                self.assertIn(says, ran.stderr)

    def test_ctrl_c_leaves_nothing(self):
        junit = pathlib.Path(self.folder.name) / "junit.xml"
        run = subprocess.Popen([WEFT, "conformance", "run", LIBRARY, "--only", "api.ctl.ev.*", "--junit", junit],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        for _ in range(3):
            run.stdout.readline()
        run.send_signal(signal.SIGINT)
        out, said = run.communicate(timeout=30)
        self.assertEqual((run.returncode, said), (130, "weft: ending after this test\nweft: interrupted\n"))
        self.assertRegex(out.splitlines()[-1], r"^interrupted after \d+ of \d+ tests: \d+ passed, ")  # of those that ran
        # Nobody takes the report for one of all tests.
        [error] = xml.etree.ElementTree.parse(junit).getroot().findall("./testsuite[@errors='1']/testcase/error")
        self.assertRegex(error.get("message"), r"^interrupted after \d+ of \d+ tests$")
        for noun in ("ev-format", "ev", "cc"):
            self.assertEqual(self.profiles_in_use(noun), [], noun)
        # Its children die with it, so that the device's first slot is free again.
        out = json.loads(self.run_weft("run", LIBRARY, "--json", "--only", "wire.write.only").stdout)
        self.assertTrue(out["conforms"])


class Mutants(Conformance):
    def test_wrong_errno(self):
        found = self.assert_fails(MUTANTS / "wrong_errno.so", ["api.context.*"],
                                  ["api.context.busy-cq", "api.context.busy-hint"])
        self.assertIn("errno EBUSY", found["api.context.busy-cq"]["expected"])
        self.assertIn("EINVAL", found["api.context.busy-cq"]["got"])

    def test_wrong_convention(self):
        self.assert_fails(MUTANTS / "wrong_convention.so", ["api.qp.rtr*", "api.qp.reset-init"],
                          ["api.qp.rtr.missing-av", "api.qp.rtr.missing-dest", "api.qp.rtr.not-global",
                           "api.qp.rtr.reserved-peer", "api.qp.rtr.mtu"])

    def test_corrupt_byte(self):
        found = self.assert_fails(MUTANTS / "corrupt_byte.so", ["api.write.*"], ["api.write.size-mtu+1"])
        self.assertIn("byte 4096 differs", found["api.write.size-mtu+1"]["got"])

    def test_lost_completion(self):
        self.assert_fails(MUTANTS / "lost_completion.so", ["api.wc.*"],
                          ["api.wc.order", "api.wc.immediate-order", "api.wc.immediate-covers", "api.wc.poll-many",
                           "api.wc.max-wimm"], more=("--timeout", "4s"))

    def test_swapped_completions(self):
        self.assert_fails(MUTANTS / "swapped_completions.so", ["api.wc.*"], ["api.wc.poll-many"])

    def test_first_psn(self):
        found = self.assert_fails(MUTANTS / "first_psn.so", ["wire.bth.*"],
                                  ["wire.bth.psn", "wire.bth.first-copy"])
        self.assertEqual(found["wire.bth.psn"]["expected"], "PSN 0x123456")
        self.assertEqual(found["wire.bth.psn"]["got"], "0x123457")

    def test_crash_is_one_failed_test(self):
        found = self.assert_fails(MUTANTS / "crash.so", ["api.hint.*"],
                                  ["api.hint.query", "api.hint.modify", "api.hint.unknown-mask"])
        self.assertIn("Aborted", found["api.hint.query"]["got"])

    def test_hang_is_one_failed_test(self):
        found = self.assert_fails(MUTANTS / "hang.so", ["api.event.cq", "api.cq.sizes"], ["api.event.cq"],
                                  more=("--timeout", "2s"))
        self.assertEqual(found["api.event.cq"]["got"], "it hangs")

    def test_takes_reads(self):
        self.assert_fails(MUTANTS / "takes_reads.so", ["api.post.*"], ["api.post.op.read"])

    def test_lets_profiles_go(self):
        self.assert_fails(MUTANTS / "lets_profiles_go.so", ["api.ctl.ev.*"], ["api.ctl.ev.busy"])

    def test_wire_bit(self):
        """Not the library is wrong but what leaves the machine: ICRC and count of every SACK."""
        about = ["wire.sack.icrc", "wire.sack.no-holes", "wire.sack.edge"]
        self.assert_fails(LIBRARY, about + ["wire.sack.entropy", "wire.sack.cumulative", "wire.write.*"], about,
                          preload=MUTANTS / "sack_bit.so", more=("--timeout", "4s"))

    def test_missing_function(self):
        """A symbol's name is changed in a copy of the library: nobody finds the function any more."""
        whole = pathlib.Path(LIBRARY).resolve().read_bytes()
        name = b"\0mrc_query_qp_hint\0"
        self.assertIn(name, whole)
        library = pathlib.Path(self.folder.name) / "lib_mrc.so"
        library.write_bytes(whole.replace(name, b"\0mrc_query_xx_hint\0"))
        found = self.assert_fails(library, ["api.library.*", "api.hint.*"],
                                  ["api.library.mrc", "api.hint.query", "api.hint.modify", "api.hint.unknown-mask"])
        self.assertIn("mrc_query_qp_hint", found["api.library.mrc"]["got"])


if __name__ == "__main__":
    run_tests.main(verbosity=2)
