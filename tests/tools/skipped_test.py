"""tests/support: `make test` prints every skipped test with its reason."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "support"))
import run_tests

LOG = """Start testing: Nov 16 00:48 UTC
----------------------------------------------------------
1/4 Testing: wireshark.MrcClient.ItsPacketsParseHere
1/4 Test: wireshark.MrcClient.ItsPacketsParseHere
Output:
----------------------------------------------------------
[ RUN      ] MrcClient.ItsPacketsParseHere
../tests/wireshark/mrc_client_test.cc:48: Skipped
WEFT_PEER_MRC_CLIENT is not set:
no packets are compared
[  SKIPPED ] MrcClient.ItsPacketsParseHere (10 ms)
[  PASSED  ] 0 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] MrcClient.ItsPacketsParseHere
2/4 Testing: wire.Frame.SegmentRoutingHeaderIsSkipped
[ RUN      ] Frame.SegmentRoutingHeaderIsSkipped
[       OK ] Frame.SegmentRoutingHeaderIsSkipped (0 ms)
3/4 Testing: mrc.Silent.One
a_test.cc:1: Skipped
[  SKIPPED ] Silent.One (0 ms)
4/5 Testing: unit.net.1
[ RUN      ] GcmIpsecMb.AgreesWithOpenSsl
a_test.cc:1: Skipped
none on this CPU
[  SKIPPED ] GcmIpsecMb.AgreesWithOpenSsl (0 ms)
[ RUN      ] Other.Passes
[       OK ] Other.Passes (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] GcmIpsecMb.AgreesWithOpenSsl
4/4 Testing: net.lab_test
skipped: net.lab_test: no `ip` here
4/4 Testing: net.lab_test
skipped: net.lab_test: no `ip` here
"""
FOUND = """4 skipped here:
  skipped: wireshark.MrcClient.ItsPacketsParseHere: WEFT_PEER_MRC_CLIENT is not set: no packets are compared
  skipped: mrc.Silent.One: no reason given
  skipped: unit.net.1.GcmIpsecMb.AgreesWithOpenSsl: none on this CPU
  skipped: net.lab_test: no `ip` here
"""

FILE = f"""import sys, unittest
sys.path.insert(0, {str(TESTS / "support")!r})
import run_tests
class Some(unittest.TestCase):
    def test_no(self): self.skipTest("no\\nreason")
    def test_yes(self): pass
    def test_wrong(self): self.fail()
    def test_parts(self):
        for part in (1, 2):
            with self.subTest(part):
                if part == 1: self.skipTest("one")
class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("not root")
    def test_any(self): pass
if sys.argv[1:] == ["none"]:
    run_tests.skip_file("none of it")
run_tests.main(after=lambda: print("after"))
"""


class Skipped(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "group"
        self.folder.mkdir()

    def run_python(self, *words):
        return subprocess.run([sys.executable, "-B", *words], capture_output=True, text=True)

    def test_skips_are_found_in_the_log_of_ctest(self):
        log = self.folder / "LastTest.log"
        for text, found in ((LOG, FOUND), ("", "nothing skipped here\n")):
            log.write_text(text)
            ran = self.run_python(TESTS / "support/skipped.py", log)
            self.assertEqual((ran.returncode, ran.stdout), (0, found), ran.stderr)
        ran = self.run_python(TESTS / "support/skipped.py", self.folder / "none")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))

    def test_a_crash_counts_even_if_the_second_try_passed(self):
        log = self.folder / "LastTest.log"
        for word in ("==7==ERROR: AddressSanitizer: heap-use-after-free on address", "a.cc:3:5: runtime error: shift exponent",
                     "a.cc:9: weft bug: assertion failed: count > 0"):
            log.write_text(f"1/1 Testing: net.A\n{word}\n1/1 Testing: net.A\n[       OK ] A\n")
            ran = self.run_python(TESTS / "support/skipped.py", log)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(f"net.A: {word}", ran.stdout)

    def test_a_python_file_prints_what_it_skips(self):
        file = self.folder / "a_test.py"
        file.write_text(FILE)
        whole = "skipped: group.a_test.setUpClass (Whole): not root\n"
        for words, status, said in (
                (["none"], 77, "skipped: group.a_test: none of it\n"),
                (["Some.test_no"], 77, "skipped: group.a_test.Some.test_no: no reason\nafter\n"),
                (["Whole"], 77, f"{whole}after\n"),
                (["Some.test_yes"], 0, "after\n"),
                (["Some.test_yes", "Whole"], 0, f"{whole}after\n"),
                (["Some.test_wrong", "Whole"], 1, f"{whole}after\n"),
                (["Some.test_parts"], 0, "skipped: group.a_test.Some.test_parts [1]: one\nafter\n")):
            with self.subTest(words):
                ran = self.run_python(file, *words)
                self.assertEqual((ran.returncode, ran.stdout), (status, said), ran.stderr)

    def test_every_python_test_uses_run_tests(self):
        files = sorted(TESTS.glob("*/*_test.py"))
        self.assertGreater(len(files), 20)
        texts = {str(file): file.read_text() for file in files}
        self.assertEqual([file for file, text in texts.items() if "import run_tests" not in text], [])
        self.assertEqual([file for file, text in texts.items() if re.search(r"^ +unittest\.main\(", text, re.M)], [])


if __name__ == "__main__":
    run_tests.main()
