"""`weft conformance`: our own library conforms, and its reports agree with each other."""

import json
import os
import pathlib
import signal
import subprocess
import unittest
import xml.etree.ElementTree

from conformance_case import LIBRARY, WEFT, Conformance
import run_tests

# What Weft does not hold where both ends are its own (docs/conformance.md).
KNOWN_SHOULD = {"wire.icrc.covers-payload", "wire.sack.mpr"}


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
                            (("run", here), "invalid ELF header; expected a lib_mrc.so"),
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


if __name__ == "__main__":
    run_tests.main(verbosity=2)
