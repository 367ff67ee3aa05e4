"""skipped.py LOG: prints each test that a run of ctest skipped, with the reason. LOG is the build's
Testing/Temporary/LastTest.log. Fails if the log has a report of a sanitizer or of one of our own assertions, even if a
second try of that test passed.

GoogleTest says "file:line: Skipped", then the reason, then "[  SKIPPED ]"; Python tests say "skipped: NAME: why"
(run_tests.py). A test that ran twice reports a skip twice; it is printed once.
"""

import re
import sys


def skips(lines):
    """Lines "skipped: NAME: why" in the order of the log, each once."""
    found, test, reason = {}, "?", None
    for line in lines:
        line = line.rstrip("\n")
        if begins := re.fullmatch(r"\d+/\d+ Testing: (.*)", line):
            test, reason = begins[1], None
        elif re.fullmatch(r"\S+:\d+: Skipped", line):
            reason = []
        elif line.startswith("[  SKIPPED ]"):
            if reason is not None:
                # The entry may be a whole program, whose name does not contain the test case.
                case = line.split()[3]
                name = test if test.endswith(case) else f"{test}.{case}"
                found[f"skipped: {name}: {' '.join(' '.join(reason).split()) or 'no reason given'}"] = None
            reason = None
        elif reason is not None:
            reason.append(line)
        elif line.startswith("skipped: "):
            found[line] = None
    return list(found)


CRASHES = re.compile(r"ERROR: (Address|Leak)Sanitizer|: runtime error: |weft bug: assertion failed: ")


def crashes(lines):
    """Tests with a report of a sanitizer or an assertion, each once."""
    found, test = {}, "?"
    for line in lines:
        if begins := re.fullmatch(r"\d+/\d+ Testing: (.*)", line.rstrip("\n")):
            test = begins[1]
        elif CRASHES.search(line):
            found[f"{test}: {line.strip()}"] = None
    return list(found)


def main():
    if len(sys.argv) != 2:
        print("usage: skipped.py LOG", file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], errors="replace") as log:
            lines = log.readlines()
    except OSError as e:
        print(f"skipped.py: {e.filename}: {e.strerror}; ctest writes it", file=sys.stderr)
        return 1
    found = skips(lines)
    print(f"{len(found)} skipped here:" if found else "nothing skipped here", *found, sep="\n  ")
    if crashed := crashes(lines):
        print("crashed, if only once:", *crashed, sep="\n  ")
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
