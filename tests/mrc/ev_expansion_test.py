"""OCP's ev_expansion sample expands EVs as Weft does.

Takes OCP's tree from WEFT_PEER_OCP and builds the sample with the system's compiler. The sample prints formats, fields,
EVs and expansions. The test sets each as a profile with `weft ctl`, and `weft ctl ev show --json` must print the same
expansion. The sample's shifts by 32 are undefined behaviour, so only complete expansions are compared.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import ocp_benchmark
import run_tests

WEFT = os.environ["WEFT_BINARY"]
OCP = ocp_benchmark.tree_of_environment()
SECONDS_MAX = 60


def parse(text):
    """The sample's cases: mode, widths, fields, and pairs of an EV and its expansion."""
    cases = []
    for part in text.split("\nev_fmt_prof:\n")[1:]:
        fmt, rest = part.split("\nev_prof:\n")
        profile, expanded = rest.split("\nEXPANDED EVs:\n")
        fields = re.findall(r"width=(\d+), init_val=(0x[0-9a-f]+), min=(0x[0-9a-f]+) max=(0x[0-9a-f]+) mask=(0x[0-9a-f]+)",
                            profile)
        evs = re.findall(r"\d+: 0x([0-9a-f]{64})", profile)
        results = re.findall(r"^ +0x([0-9a-f]{64})", expanded, re.M)
        cases.append({"mode": "stev" if "STEV" in fmt else "srv6",
                      "widths": re.findall(r"width=(\d+)", fmt),
                      "fields": [[int(word, 0) for word in field] for field in fields],
                      "pairs": list(zip(evs, results))})
    return cases


@unittest.skipUnless(OCP, "WEFT_PEER_OCP is not set: OCP's ev_expansion is not compared")
class Expansion(unittest.TestCase):
    def test_the_sample_and_weft_expand_evs_alike(self):
        with tempfile.TemporaryDirectory(prefix="weft-expand-") as directory:
            program = directory + "/ev_expansion"
            source = pathlib.Path(OCP, "examples/ev_expansion/ev_expansion.c")
            subprocess.run(["cc", "-w", "-o", program, str(source)], check=True, timeout=SECONDS_MAX)
            said = subprocess.run([program], capture_output=True, text=True, check=True, timeout=SECONDS_MAX).stdout
            cases = parse(said)
            self.assertEqual(len(cases), 10)
            environment = dict(os.environ, WEFT_STATE_DIR=directory + "/state")

            def ctl(*words):
                ran = subprocess.run([WEFT, "ctl", *words], capture_output=True, text=True, timeout=SECONDS_MAX,
                                     env=environment)
                self.assertEqual(ran.returncode, 0, f"{words}: {ran.stderr}")
                return ran.stdout

            for number, case in enumerate(cases, start=1):
                number = str(number)
                self.assertEqual(len(case["pairs"]), 8)
                ctl("ev-format", "set", number, "--mode", case["mode"], "--widths", ",".join(case["widths"]), "--state",
                    "offline")
                ctl("ev-format", "set", number, "--state", "online")
                fields = []
                for field in case["fields"]:
                    fields += ["--field", ":".join(str(word) for word in field)]
                ctl("ev", "set", number, "--mode", "explicit", "--format", number, "--count", "8", "--min-active", "1",
                    "--events", "none", *fields, "--state", "offline")
                evs = []
                for ev, _ in case["pairs"]:
                    evs += ["--with", ev + "@1"]
                ctl("ev", "replace", number, *evs)
                [profile] = json.loads(ctl("ev", "show", number, "--json"))["profiles"]
                ours = [entry["expanded"] for entry in profile["evs"]]
                self.assertEqual(ours, [expanded for _, expanded in case["pairs"]], f"case {number}")


if __name__ == "__main__":
    run_tests.main()
