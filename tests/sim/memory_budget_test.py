"""The memory budget: 100 KB per host in total, checked on a smaller form of permutation-131072."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests

WEFT = os.environ["WEFT_BINARY"]
HOSTS = 1024
KB_PER_HOST_MAX = 100


def scenario():
    text = pathlib.Path("scenarios/permutation-131072.toml").read_text()
    for key, value in {"hosts": HOSTS, "hosts_per_t0": 32, "t1_count": 32}.items():
        text, count = re.subn(rf"(?m)^{key} = \d+$", f"{key} = {value}", text)
        assert count == 1, key
    return text


class Memory(unittest.TestCase):
    def test_a_host_stays_within_its_budget(self):
        # grep, because reading the program here would raise this process's peak memory, which its children inherit.
        if subprocess.run(["grep", "-q", "__asan_init", WEFT]).returncode == 0:
            self.skipTest("a sanitizer's own memory would be measured")
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(scenario())
            file.flush()
            ran = subprocess.run([WEFT, "sim", "run", file.name, "--json"], capture_output=True, text=True)
            parts = subprocess.run([WEFT, "sim", "run", file.name, "--details"], capture_output=True, text=True).stdout
        print(parts[parts.index("memory") : parts.index("counters")], file=sys.stderr)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual(result["completed"], HOSTS)
        self.assertLess(result["rss_mb"] * 1e3 / HOSTS, KB_PER_HOST_MAX, parts)


if __name__ == "__main__":
    run_tests.main()
