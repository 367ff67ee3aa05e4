"""Compiles include/mrc/ as C99 to C++20, and checks layouts and values of tests/mrc/abi_list.h and the choice of a version.

With WEFT_PEER_OCP (a source tree of OCP's repository) the same list is also checked against OCP's own headers.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import ocp_benchmark
import run_tests

HERE = pathlib.Path(__file__).resolve().parent
OURS = HERE.parent.parent / "include/mrc"
OCP = ocp_benchmark.tree_of_environment()
HEADERS = ["mrc_api_ver.h", "mrc.h", "mrc_ctl_api_ver.h", "mrc_ctl.h"]
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror"]
C = [(name, std) for name in ("gcc", "clang-14") for std in ("c99", "c11")]
CXX = [(name, std) for name in ("g++", "clang++-14") for std in ("c++17", "c++20")]
# Macros that only steer the compiler, and names that only our headers have.
NO_INTERFACE = {"MRC_NOEXCEPT", "MRC_CTL_EV_UNPOPULATED", "mrc_ctl_ev_unpopulated"}


def compile_file(compiler, std, source, include, *flags):
    command = [compiler, f"-std={std}", "-fsyntax-only", f"-I{include}", *flags, str(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def interface(folder):
    """Every name of the interface that the headers define: constants, functions, struct and enum tags."""
    text = "\n".join((pathlib.Path(folder) / name).read_text() for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^\s*#\s*(error|warning)\b[^\n]*(\\\n[^\n]*)*", "", text, flags=re.M)
    text = re.sub(r'"[^"\n]*"', '""', text)
    constants = set(re.findall(r"\bMRC_\w+", text))
    functions = set(re.findall(r"\b(mrc_\w+)\s*\(", text))
    bodies = set(re.findall(r"\b((?:struct|enum)\s+mrc_\w+)\s*\{", text))
    return constants | functions | {re.sub(r"\s+", " ", tag) for tag in bodies}


class List:
    """The list holds for the headers in `folder`, and names everything that they define."""

    folder = None
    c = C
    flags = []

    def test_layouts_and_values(self):
        tried = 0
        for source, compilers in (("abi_check.c", self.c), ("abi_check.cc", CXX)):
            for compiler, std in compilers:
                if shutil.which(compiler):
                    with self.subTest(compiler=compiler, std=std):
                        result = compile_file(compiler, std, HERE / source, self.folder, *self.flags)
                        self.assertEqual(result.returncode, 0, result.stderr)
                        tried += 1
        self.assertGreater(tried, 0, "no compiler")

    def test_the_list_names_every_name_of_the_headers(self):
        listed = (HERE / "abi_list.h").read_text()
        names = interface(self.folder) - NO_INTERFACE
        self.assertGreater(len(names), 150)
        missing = [name for name in sorted(names) if not re.search(rf"\b{name}\b", listed)]
        self.assertEqual(missing, [])


class Ours(List, unittest.TestCase):
    folder = OURS
    flags = STRICT

    def test_every_header_compiles_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in HEADERS:
                for compiler, std, suffix in (("gcc", "c99", "c"), ("g++", "c++20", "cc")):
                    source = pathlib.Path(folder) / f"alone.{suffix}"
                    source.write_text(f"#include <{name}>\n#include <mrc/{name}>\nint unused;\n")
                    result = compile_file(compiler, std, source, OURS, f"-I{OURS.parent}", *STRICT)
                    self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_wrong_layout_is_detected(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in HEADERS:
                shutil.copy(OURS / name, folder)
            header = pathlib.Path(folder) / "mrc.h"
            text = header.read_text()
            changed = text.replace("uint32_t cap;", "uint64_t cap;")
            self.assertNotEqual(changed, text)
            header.write_text(changed)
            for compiler, std, source in (("gcc", "c99", "abi_check.c"), ("gcc", "c11", "abi_check.c"),
                                          ("g++", "c++20", "abi_check.cc")):
                self.assertNotEqual(compile_file(compiler, std, HERE / source, folder).returncode, 0)


class Versions(unittest.TestCase):
    """MRC_API_VER_USED and similar macros select the declarations."""

    def compile_text(self, text, *flags):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "version.cc"
            source.write_text(text)
            return compile_file("g++", "c++20", source, OURS, *STRICT, *flags)

    def test_version_1_0_0_has_no_ex_functions_and_a_shorter_event(self):
        text = """#define MRC_API_VER_USED MRC_API_VER(1, 0, 0)
#define MRC_CTL_API_VER_USED MRC_CTL_API_VER(1, 0, 0)
#include <mrc_ctl.h>
static_assert(sizeof(mrc_ctl_ev_event) == 48);
static_assert(MRC_API_VER_USED == 0x01000000);
"""
        for extra in ("", "extern decltype(&mrc_query_device) a;", "extern decltype(&mrc_ctl_query_device) a;"):
            result = self.compile_text(text + extra)
            self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("mrc_query_device_ex", "mrc_ctl_query_device_ex"):
            self.assertIn(name, self.compile_text(text + f"extern decltype(&{name}) a;").stderr)

    def test_latest_means_the_current_version(self):
        result = self.compile_text("""#define MRC_API_VER_USED MRC_API_VER_LATEST
#define MRC_VENDOR_API_VER_USED MRC_API_VER_LATEST
#define MRC_CTL_API_VER_USED MRC_CTL_API_VER_LATEST
#define MRC_CTL_VENDOR_API_VER_USED MRC_CTL_API_VER_LATEST
#include <mrc_ctl.h>
static_assert(MRC_API_VER_USED == MRC_API_VER(1, 0, 1));
static_assert(MRC_VENDOR_API_VER_USED == MRC_API_VER(1, 0, 0));
static_assert(MRC_CTL_API_VER_USED == MRC_CTL_API_VER(1, 0, 1));
static_assert(MRC_CTL_VENDOR_API_VER_USED == MRC_CTL_API_VER(1, 0, 0));
""")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_future_version_is_an_error_and_the_oldest_a_warning(self):
        for name, make in (("MRC_API_VER_USED", "MRC_API_VER"), ("MRC_VENDOR_API_VER_USED", "MRC_API_VER"),
                           ("MRC_CTL_API_VER_USED", "MRC_CTL_API_VER"),
                           ("MRC_CTL_VENDOR_API_VER_USED", "MRC_CTL_API_VER")):
            result = self.compile_text(f"#define {name} {make}(9, 0, 0)\n#include <mrc_ctl.h>\n")
            self.assertIn("#error", result.stderr)
            result = self.compile_text(f"#define {name} {make}(0, 0, 0)\n#include <mrc_ctl.h>\n", "-Wno-error")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(name, result.stderr)


@unittest.skipUnless(OCP, "WEFT_PEER_OCP is not set: OCP's own headers are not compared")
class Theirs(List, unittest.TestCase):
    folder = OCP
    # 0xFF << 24 in OCP's headers is not a constant expression in C99.
    c = [(compiler, std) for compiler, std in C if std != "c99"]

    def test_every_name_of_ocps_headers_is_in_ours(self):
        self.assertEqual(sorted(interface(OCP) - interface(OURS)), [])


if __name__ == "__main__":
    run_tests.main(verbosity=2)
