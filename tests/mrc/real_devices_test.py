#!/usr/bin/env python3
"""On a host with a NIC, lib_mrc.so adds its device to those of libibverbs and passes on calls on other devices, also in a
forked child. No NIC is needed: stub_verbs.c replaces its library.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIBRARY = pathlib.Path(os.environ["WEFT_LIB_MRC"]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import clean_environment  # noqa: F401, the import itself changes the environment
import mrc_programs
import run_tests


class RealDevices(unittest.TestCase):
    def test_each_call_reaches_the_library_of_its_device(self):
        with tempfile.TemporaryDirectory() as folder:
            versions = pathlib.Path(folder) / "versions"
            versions.write_text("IBVERBS_1.1 { global: ibv_*; };\n")
            stub = f"{folder}/libibverbs.so.1"
            subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", stub,
                            HERE / "stub_verbs.c", "-Wl,-soname,libibverbs.so.1", f"-Wl,--version-script={versions}"],
                           check=True)
            program = mrc_programs.build(f"{folder}/program", [HERE / "real_beside_ours.c"], LIBRARY, "-std=c11", "-Wall",
                                         "-Wextra", "-Werror", f"-I{mrc_programs.ROOT / 'include/mrc'}")
            ran = subprocess.run([program], env={**os.environ, "LD_LIBRARY_PATH": folder}, capture_output=True, text=True,
                                 timeout=60)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


if __name__ == "__main__":
    run_tests.main()
