"""tests/support/tally.py: the counts and seconds that end `make test` are those of ctest's logs."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
sys.path.insert(0, str(SUPPORT))
import run_tests

# A whole program, a case that passes at its second try, Python with a skip, a file that is skipped, a program of its own.
LOG = """1/5 Testing: unit.net.1
[       OK ] Gcm.One (0 ms)
[       OK ] Any/Gcm.Two/0 (12 ms)
a_test.cc:1: Skipped
[  SKIPPED ] Gcm.Three (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Gcm.Three
2/5 Testing: mrc.Events.One
[  FAILED  ] Events.One (3 ms)
2/5 Testing: mrc.Events.One
[       OK ] Events.One (3 ms)
3/5 Testing: cli.weft_test
Ran 32 tests in 4.211s
OK (skipped=2)
4/5 Testing: mrc.ocp_test
skipped: mrc.ocp_test: not here
Test Skipped.
5/5 Testing: fuzz.wire
200 inputs of 3 files
"""


class Tally(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # It writes below the repository that it lies in.
        self.root = pathlib.Path(folder.name)
        (self.root / "tests/support").mkdir(parents=True)
        self.script = shutil.copy(SUPPORT / "tally.py", self.root / "tests/support")
        self.log = self.root / "LastTest.log"

    def tally(self, *words, status=0):
        ran = subprocess.run([sys.executable, self.script, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(ran.returncode, status, ran.stderr)
        return ran.stdout

    def test_cases_of_a_log_are_counted_once_each(self):
        self.log.write_text(LOG)
        self.tally("count", "release", self.log)
        self.assertIn("test cases: 34 passed and 4 skipped in release; none failed\n", self.tally("show"))

    def test_counts_and_seconds_add_up_until_they_are_forgotten(self):
        self.log.write_text(LOG)
        self.tally("forget", "asan")
        for _ in range(2):
            self.tally("run", "asan", "ran", "sleep", "0.6")
            self.tally("count", "asan", self.log)
        self.tally("run", "release", "built", "true")
        said = self.tally("show").splitlines()
        self.assertEqual(said[0], "test cases: 68 passed and 8 skipped in ASan and UBSan; none failed")
        self.assertEqual(said[1], "time: release built in 0 s, ran in 0 s; ASan and UBSan built in 0 s, ran in 1 s; "
                                  "0.0 min in all")
        self.tally("forget", "asan")
        self.assertNotIn("ASan", self.tally("show"))

    def test_a_command_that_fails_fails_the_step(self):
        self.tally("run", "release", "ran", "sh", "-c", "exit 3", status=3)
        self.tally("run", "release", "ran", "sh", "-c", "kill -9 $$", status=137)
        self.tally("run", "release", status=2)


if __name__ == "__main__":
    run_tests.main()
