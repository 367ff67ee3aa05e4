"""Helpers for tests of `weft bench write`: the program, a complete run of it, a free TCP port."""

import os
import subprocess

import clean_environment  # the import itself changes the environment
from free_port import free_port  # noqa: F401, used by files that import this module

WEFT = os.environ["WEFT_BINARY"]
SECONDS_MAX = 90  # limit of every command, also on a busy machine and under sanitizers


def run(bench, *words, env=None):
    """Runs the command `bench` + `words`; `env` is added to the environment."""
    return subprocess.run([*bench, *words], capture_output=True, text=True, timeout=SECONDS_MAX,
                          env={**os.environ, **(env or {})})
