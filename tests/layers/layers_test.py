"""The layer check passes on this repository, and fails on a small tree that breaks every rule once."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests

HERE = pathlib.Path(__file__).parent
CHECK = HERE.parent.parent / "tools/layer-check"


def run(*arguments):
    return subprocess.run([sys.executable, CHECK, *arguments], capture_output=True, text=True)


class LayerCheck(unittest.TestCase):
    def test_the_repository_passes(self):
        result = run()
        self.assertEqual(result.returncode, 0, "\n" + result.stdout + result.stderr)

    def test_every_violation_is_reported_with_file_and_line(self):
        result = run(HERE / "bad")
        self.assertEqual(result.returncode, 1)
        expected = (HERE / "bad/expected.txt").read_text()
        self.assertEqual(len(expected.splitlines()), 10)
        self.assertEqual(result.stdout, expected)

    def test_a_tree_without_sources_is_an_error(self):
        with tempfile.TemporaryDirectory() as empty:
            shutil.copytree(HERE / "bad/cmake", pathlib.Path(empty) / "cmake")
            result = run(empty)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no source files", result.stderr)


if __name__ == "__main__":
    run_tests.main()
