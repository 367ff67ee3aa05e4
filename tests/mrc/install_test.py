"""The files that `make install` writes under DESTDIR, and programs that are built with them and run: a few lines in each
language, and examples/ as its README says.

If the library has sanitizers, the programs are compiled with the same sanitizers, because the library needs them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["WEFT_LIB_MRC"]).parent
sys.path.insert(0, str(ROOT / "tests/support"))
import clean_environment  # the import itself changes the environment
import mrc_programs
import run_tests

SONAME = "lib_mrc.so.1"
VERSION = "1.0.1"
SECONDS_MAX = 120  # limit of every command, also on a busy machine and under sanitizers

# Prints the newest API version of the library, which is also that of the headers. The verbs are the library's too.
PROGRAM = """
#include %s
#include %s
#include <stdio.h>
int main(void) {
  uint32_t newest = 0, oldest = 0, vendor = 0, vendor_oldest = 0;
  mrc_query_version(&newest, &oldest, &vendor, &vendor_oldest);
  struct ibv_device** devices = ibv_get_device_list(NULL);
  printf("%%u.%%u.%%u\\n", newest >> 24, newest >> 16 & 0xff, newest & 0xffff);
  if (devices != NULL) ibv_free_device_list(devices);
  return newest == MRC_API_CURRENT_VERSION && devices != NULL ? 0 : 1;
}
"""
FLAT = PROGRAM % ('"mrc.h"', '"mrc_ctl.h"')
NESTED = PROGRAM % ("<mrc/mrc.h>", "<mrc/mrc_ctl.h>")

PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(mrc {VERSION} REQUIRED)
add_executable(flat flat.c)
target_link_libraries(flat PRIVATE mrc::mrc)
add_executable(nested nested.c)
target_link_libraries(nested PRIVATE mrc::mrc)
"""


def cached(name):
    """A value of the build's CMakeCache.txt."""
    return re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M).group(1)


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment}, text=True,
                          capture_output=True, timeout=SECONDS_MAX, check=False)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = pathlib.Path(folder.name)
        cls.destdir = cls.scratch / "destdir"
        cls.prefix = cls.destdir / "opt/weft"
        # Another prefix than the build's: no path may be fixed when the build is configured.
        run("cmake", "--install", BUILD, "--prefix", "/opt/weft", DESTDIR=str(cls.destdir))
        cls.lib = cls.prefix / cached("CMAKE_INSTALL_LIBDIR")
        cls.cxx = cached("CMAKE_CXX_COMPILER")
        cls.cc = cls.cxx.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")
        sanitizers = cached("WEFT_SANITIZE")
        cls.flags = [f"-fsanitize={sanitizers}"] if sanitizers else []

    def files(self):
        return {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if not path.is_dir()}

    def test_every_file_is_installed_and_no_other(self):
        lib = self.lib.relative_to(self.prefix)
        headers = {f"include/mrc/{path.name}" for path in (ROOT / "include/mrc").glob("*.h")}
        self.assertIn("include/mrc/mrc.h", headers)
        build_type = cached("CMAKE_BUILD_TYPE").lower()
        self.assertEqual(self.files(), headers | {
            "bin/weft",
            "share/weft/wireshark/mrc.lua",
            *(f"{lib}/{name}" for name in ("lib_mrc.so", SONAME, f"lib_mrc.so.{VERSION}", "pkgconfig/mrc.pc")),
            *(f"{lib}/cmake/mrc/{name}.cmake" for name in (
                "mrcConfig", "mrcConfigVersion", "mrcTargets", f"mrcTargets-{build_type}"))})
        # Nothing is written outside the prefix.
        self.assertEqual([path.name for path in self.destdir.iterdir()], ["opt"])
        self.assertEqual([path.name for path in (self.destdir / "opt").iterdir()], ["weft"])

    def test_the_installed_headers_are_those_of_the_repository(self):
        for path in (ROOT / "include/mrc").glob("*.h"):
            self.assertEqual((self.prefix / "include/mrc" / path.name).read_bytes(), path.read_bytes(), path.name)

    def test_no_installed_file_contains_a_path_of_this_machine(self):
        """No installed file, and no search path of the loader, contains a path of this machine."""
        texts = [self.lib / "pkgconfig/mrc.pc", *(self.lib / "cmake/mrc").iterdir()]
        self.assertGreater(len(texts), 4)
        for path in texts:
            for folder in (ROOT, BUILD, self.destdir):
                self.assertNotIn(str(folder), path.read_text(), path.name)
        for path in (self.lib / SONAME, self.prefix / "bin/weft"):
            self.assertNotRegex(run("readelf", "-d", "-W", path), r"R(UN)?PATH", path.name)

    def test_the_library_has_its_soname(self):
        self.assertIn(f"Library soname: [{SONAME}]", run("readelf", "-d", "-W", self.lib / SONAME))
        self.assertEqual(os.readlink(self.lib / "lib_mrc.so"), SONAME)
        self.assertEqual(os.readlink(self.lib / SONAME), f"lib_mrc.so.{VERSION}")

    def test_only_the_api_and_verbs_are_exported(self):
        """The library exports only the API and verbs, each with the right symbol version."""
        exported = {}
        for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", self.lib / SONAME).splitlines():
            kind, name = line.split()[-2:]
            if kind != "A":  # symbols of the versions themselves
                self.assertEqual(kind, "T", line)
                self.assertRegex(name, r"^(mrc_\w+@@MRC_1\.0|_?ibv_\w+@@IBVERBS_(1\.\d+|PRIVATE_34))$")
                exported[name.partition("@")[0]] = name
        declared = set()
        for path in (ROOT / "include/mrc").glob("*.h"):
            text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
            text = re.sub(r"^static.*?^}", "", text, flags=re.S | re.M)
            declared |= set(re.findall(r"\b(mrc_\w+)\((?=[^;{]*\) MRC_NOEXCEPT;)", text))
        self.assertGreaterEqual(len(declared), 41)
        self.assertEqual({name for name in exported if name.startswith("mrc_")}, declared)
        self.assertIn("ibv_get_device_list", exported)

    def test_the_installed_program_runs(self):
        self.assertIn("weft", run(self.prefix / "bin/weft", "--help"))

    def test_programs_build_with_pkg_config(self):
        if shutil.which("pkg-config") is None:
            self.skipTest("no pkg-config (Debian: pkgconf)")
        where = {"PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}
        self.assertEqual(run("pkg-config", "--modversion", "mrc", **where).strip(), VERSION)
        cflags = run("pkg-config", "--cflags", "mrc", **where).split()
        libs = run("pkg-config", "--libs", "mrc", **where).split()
        for compiler, std, suffix in ((self.cc, "c99", "c"), (self.cxx, "c++17", "cc")):
            for form, text in (("flat", FLAT), ("nested", NESTED)):
                with self.subTest(compiler=compiler, form=form):
                    source = self.scratch / f"{form}.{suffix}"
                    program = self.scratch / f"{form}-{suffix}"
                    source.write_text(text)
                    run(compiler, f"-std={std}", "-Wall", "-Werror", *self.flags, *cflags, source, "-o", program, *libs)
                    self.assertIn(f"[{SONAME}]", run("readelf", "-d", "-W", program))
                    self.assertEqual(run(program, LD_LIBRARY_PATH=str(self.lib)).strip(), VERSION)

    def test_programs_build_with_the_cmake_package(self):
        project = self.scratch / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT)
        (project / "flat.c").write_text(FLAT)
        (project / "nested.c").write_text(NESTED)
        run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_C_COMPILER={self.cc}", f"-DCMAKE_C_FLAGS={' '.join(self.flags)}")
        run("cmake", "--build", project / "build")
        for form in ("flat", "nested"):  # CMake puts the library's folder into the program's rpath
            self.assertEqual(run(project / "build" / form).strip(), VERSION)

    def run_example(self, program, **environment):
        """Runs both ends of the example, over shared memory and over UDP."""
        environment["WEFT_STATE_DIR"] = str(self.scratch)
        for shared_memory in ("must", "off"):
            with self.subTest(shared_memory=shared_memory):
                port = mrc_programs.free_port()
                both = {**environment, "WEFT_SHM": shared_memory}
                ended = mrc_programs.run_pair([program, port], [program, port, "127.0.0.1"], port, SECONDS_MAX, both, both)
                said = ended.client_said + ended.server_said
                self.assertEqual((ended.client_status, ended.server_status), (0, 0), said)
                self.assertEqual(ended.client_said, "8 messages of 1048576 bytes written\n")
                self.assertEqual(ended.server_said, "8 messages of 1048576 bytes have come\n")

    def test_the_example_builds_with_pkg_config_and_runs(self):
        if shutil.which("pkg-config") is None:
            self.skipTest("no pkg-config (Debian: pkgconf)")
        words = run("pkg-config", "--cflags", "--libs", "mrc", PKG_CONFIG_PATH=str(self.lib / "pkgconfig")).split()
        program = self.scratch / "write_pair"
        run(self.cc, "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", *self.flags, ROOT / "examples/write_pair.c", *words,
            "-o", program)
        self.run_example(program, LD_LIBRARY_PATH=str(self.lib))

    def test_the_example_builds_with_cmake_and_runs(self):
        build = self.scratch / "example"
        run("cmake", "-S", ROOT / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_C_COMPILER={self.cc}", f"-DCMAKE_C_FLAGS={' '.join(self.flags)}")
        run("cmake", "--build", build)
        self.run_example(build / "write_pair")

    def test_the_example_names_the_failed_call(self):
        program = mrc_programs.build(self.scratch / "lonely", [ROOT / "examples/write_pair.c"], self.lib / "lib_mrc.so",
                                     f"-I{self.prefix / 'include'}")
        for words, status, line in (([], 2, "usage: write_pair PORT [HOST]\n"),
                                    ([mrc_programs.free_port(), "127.0.0.1"], 1,
                                     "write_pair: 127.0.0.1: Connection refused\n")):
            # After an error the example exits without freeing its memory, which a sanitizer would report as a leak.
            done = subprocess.run([program, *words], text=True, capture_output=True, timeout=SECONDS_MAX, check=False,
                                  env={**os.environ, "WEFT_STATE_DIR": str(self.scratch), "ASAN_OPTIONS": "detect_leaks=0"})
            self.assertEqual((done.returncode, done.stderr), (status, line))

    def test_make_install_refuses_a_relative_prefix(self):
        with self.assertRaisesRegex(AssertionError, "PREFIX=here: expected an absolute path"):
            run("make", "-n", "-C", ROOT, "install", "PREFIX=here", f"DESTDIR={self.scratch}/none")


if __name__ == "__main__":
    run_tests.main(verbosity=2)
