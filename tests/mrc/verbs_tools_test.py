#!/usr/bin/env python3
"""Programs that use only verbs, ibv_devices and ibv_devinfo, see Weft's device if lib_mrc.so is preloaded."""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests


def run(*command):
    environment = dict(os.environ, LD_PRELOAD=os.environ["WEFT_LIB_MRC"])
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    with open(os.environ["WEFT_LIB_MRC"], "rb") as library:
        content = library.read()
    if b"__asan_init" in content or b"__tsan_init" in content:
        run_tests.skip_file("a library with sanitizers does not run inside a program without them")
    if shutil.which("ibv_devinfo") is None:
        run_tests.skip_file("no ibv_devinfo (Debian: ibverbs-utils)")
    status, said = run("ibv_devices")
    print(said)
    if status != 0 or "weft0" not in said:
        return "ibv_devices does not list weft0"
    status, said = run("ibv_devinfo", "-v", "-d", "weft0")
    print(said)
    for wanted in ("PORT_ACTIVE", "4096 (5)", "Ethernet", "::ffff:127.0.1.1", "RoCE v2"):
        if wanted not in said:
            return f"ibv_devinfo does not say {wanted}"
    return status


if __name__ == "__main__":
    sys.exit(main())
