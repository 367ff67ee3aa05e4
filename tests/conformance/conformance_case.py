"""One run of `weft conformance`, for the tests of this folder."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.environ["WEFT_LIB_MRC"]
MUTANTS = pathlib.Path(os.environ["WEFT_MUTANTS"])
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import clean_environment  # noqa: E402, F401: forgets what the user has set

WEFT = os.environ["WEFT_BINARY"]
SECONDS_MAX = 800


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
