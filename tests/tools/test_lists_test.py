"""The lists of cmake/tests.cmake name test cases and files that exist: a name that is stale would say nothing."""

import fnmatch
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "support"))
import run_tests

LISTS = (TESTS.parent / "cmake/tests.cmake").read_text()
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.M)
SUITE = re.compile(r"^INSTANTIATE_TEST_SUITE_P\((\w+),\s*(\w+)", re.M)


def words_of(name):
    return re.search(rf"^set\({re.escape(name)} ([^)]*)\)", LISTS, re.M)[1].split()


def cases(group):
    """Names as --gtest_list_tests has them, those with parameters as PREFIX/SUITE.CASE/."""
    text = "".join(file.read_text() for file in sorted((TESTS / group).glob("*_test.cc")))
    prefixes = {}
    for prefix, suite in SUITE.findall(text):
        prefixes.setdefault(suite, []).append(prefix)
    for suite, case in TEST.findall(text):
        yield from [f"{prefix}/{suite}.{case}/" for prefix in prefixes[suite]] if suite in prefixes else [f"{suite}.{case}"]


class Lists(unittest.TestCase):
    def test_every_pattern_names_a_case(self):
        for group in ("net", "mrc"):
            names = list(cases(group))
            self.assertGreater(len(names), 20)
            for pattern in words_of(f"weft_alone_{group}"):
                self.assertTrue(any(fnmatch.fnmatchcase(name, pattern) for name in names), f"{group}: {pattern}")

    def test_every_name_is_a_file_a_folder_or_a_suite(self):
        left_out = re.findall(r"^set\(weft_release_only_(\S+) ", LISTS, re.M)
        self.assertIn("wireshark", left_out)
        for name in words_of("weft_alone_scripts") + words_of("weft_halved_scripts") + left_out:
            group, _, file = name.partition(".")
            is_suite = any(case.startswith(f"{file}.") for case in cases(group)) if file else False
            found = [path for path in (TESTS / group).glob(f"{file or '*'}*") if not file or path.stem == file]
            self.assertTrue(found or is_suite, name)


if __name__ == "__main__":
    run_tests.main()
