"""`weft bench write`, for tests that start it: the program, a run of it to the end, a TCP port to meet at."""

import os
import subprocess

import clean_environment  # for what it does when imported
from free_port import free_port  # noqa: F401, for those who import this

WEFT = os.environ["WEFT_BINARY"]
SECONDS_MAX = 90  # of anything here, also on a busy machine and under sanitizers


def run(bench, *words, env=None):
    """`bench` is the command's beginning, `words` the rest; `env` is set besides."""
    return subprocess.run([*bench, *words], capture_output=True, text=True, timeout=SECONDS_MAX,
                          env={**os.environ, **(env or {})})
