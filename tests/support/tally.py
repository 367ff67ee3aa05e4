"""How long `make test` took and how many test cases it ran, by half.

    tally.py forget HALF                    begins HALF (release, hashes, asan) anew
    tally.py run HALF STEP COMMAND ...      runs the command, adds its seconds to STEP (built, ran), exits as it does
    tally.py count HALF LOG                 adds the test cases of LOG, the build's Testing/Temporary/LastTest.log
    tally.py show                           a line with the counts, and as the last one a line with the seconds

The notes are files in build/tally. A case is one of GoogleTest's, one of unittest's, or a program that is neither.
"""

import pathlib
import re
import subprocess
import sys
import time

NOTES = pathlib.Path(__file__).resolve().parents[2] / "build" / "tally"
HALVES = {"release": "release", "hashes": "trace hashes of other builds", "asan": "ASan and UBSan"}


def cases(lines):
    """How many test cases passed and how many were skipped. If an entry was repeated, its last run counts."""
    entries, last = {}, None
    for line in lines:
        line = line.rstrip("\n")
        if begins := re.fullmatch(r"\d+/\d+ Testing: (.*)", line):
            last = entries[begins[1]] = {"gtest": {}, "ran": None, "skipped": 0}
        elif last is None:
            continue
        elif told := re.match(r"\[ +(OK|SKIPPED) \] (\S+) \(\d+ ms\)", line):
            last["gtest"][told[2]] = told[1]
        elif told := re.match(r"Ran (\d+) tests? in ", line):
            last["ran"] = int(told[1])
        elif told := re.match(r"OK \(.*skipped=(\d+)", line):
            last["skipped"] = int(told[1])
        elif line == "Test Skipped.":
            last["skipped"] = max(last["skipped"], 1)
    passed = skipped = 0
    for entry in entries.values():
        if entry["gtest"]:
            without = sum(word == "SKIPPED" for word in entry["gtest"].values())
            count = len(entry["gtest"])
        else:
            count = max(entry["ran"] if entry["ran"] is not None else 1, entry["skipped"])
            without = entry["skipped"]
        passed += count - without
        skipped += without
    return passed, skipped


def note(half, *words):
    NOTES.mkdir(parents=True, exist_ok=True)
    with open(NOTES / half, "a") as file:
        print(*words, file=file)


def sums(half):
    """The sum of each word of the notes of one half; None if there are no notes."""
    if not (NOTES / half).exists():
        return None
    out = {"built": 0.0, "ran": 0.0, "passed": 0.0, "skipped": 0.0}
    for line in (NOTES / half).read_text().splitlines():
        word, value = line.split()
        out[word] = out.get(word, 0.0) + float(value)
    return out


def show():
    halves = {text: found for half, text in HALVES.items() if (found := sums(half))}
    counted = [f"{found['passed']:.0f} passed and {found['skipped']:.0f} skipped in {text}"
               for text, found in halves.items() if found["passed"]]
    print("test cases: " + "; ".join(counted) + "; none failed")
    took = [f"{text} built in {found['built']:.0f} s, ran in {found['ran']:.0f} s" for text, found in halves.items()]
    total = sum(found["built"] + found["ran"] for found in halves.values())
    print("time: " + "; ".join(took) + f"; {total / 60:.1f} min in all")


def main(words):
    if words[:1] == ["forget"] and len(words) == 2:
        (NOTES / words[1]).unlink(missing_ok=True)
    elif words[:1] == ["run"] and len(words) > 3:
        began = time.monotonic()
        status = subprocess.run(words[3:]).returncode
        note(words[1], words[2], f"{time.monotonic() - began:.1f}")
        return status if status >= 0 else 128 - status
    elif words[:1] == ["count"] and len(words) == 3:
        with open(words[2], errors="replace") as log:
            passed, skipped = cases(log)
        note(words[1], "passed", passed)
        note(words[1], "skipped", skipped)
    elif words == ["show"]:
        show()
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
