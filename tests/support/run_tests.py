"""`unittest.main()` for our tests. It prints one line with the reason for each skipped test, in the form that
tests/support/skipped.py finds in ctest's log. If every test of a file was skipped, the exit status is 77, which ctest knows.
"""

import os
import pathlib
import sys
import unittest

ALL_SKIPPED = 77  # the exit status for "all skipped", SKIP_RETURN_CODE in cmake/tests.cmake


def _name():
    """The name that ctest uses for the file: group.file_test."""
    file = pathlib.Path(sys.argv[0]).resolve()
    return f"{file.parent.name}.{file.stem}"


def _tell(name, why):
    print(f"skipped: {name}: {' '.join(why.split())}", flush=True)


def skip_file(why):
    """Skips the whole file and ends the process."""
    _tell(_name(), why)
    sys.exit(ALL_SKIPPED)


class _Result(unittest.TextTestResult):
    """Also counts passed tests. A class that is skipped as a whole counts as no test, and a subtest is not a test of
    its own."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.passed += 1

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.passed += err is None


class _Loader(unittest.TestLoader):
    """With TESTS_PARTS=2 and TESTS_PART=0 or 1, every second class: ctest runs the parts of a long file side by side."""

    seen = 0

    def loadTestsFromTestCase(self, case):
        suite = super().loadTestsFromTestCase(case)
        if not suite.countTestCases():
            return suite
        self.seen += 1
        mine = self.seen % int(os.environ.get("TESTS_PARTS", "1")) == int(os.environ.get("TESTS_PART", "0"))
        return suite if mine else self.suiteClass()


class _Runner(unittest.TextTestRunner):
    resultclass = _Result


def main(verbosity=1, after=None):
    """Runs the tests of the main file, then `after()`, and exits."""
    result = unittest.main(testRunner=_Runner, testLoader=_Loader(), verbosity=verbosity, exit=False).result
    for test, why in result.skipped:
        # "__main__.Class.test", and for a whole class "setUpClass (__main__.Class)".
        _tell(f"{_name()}.{test.id().replace('__main__.', '')}", why)
    if after is not None:
        after()
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(ALL_SKIPPED if result.skipped and not result.passed else 0)
