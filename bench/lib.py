"""Shared by the benchmarks: building Weft, running a program and measuring its cost, medians of interleaved runs, the
memory latency of the machine, a table for people, bars, and the final JSON line.

Two programs are compared only in one session, in turn, because a shared machine's speed drifts by a factor of two.
Sizes are in bytes, times in seconds, `rss_mb` in 10^6 bytes.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


class Failure(Exception):
    """A run that failed; the text names it and the command that repeats it."""


def misuse(text):
    """Ends the benchmark with a message and exit status 2, for wrong arguments."""
    print(text, file=sys.stderr)
    raise SystemExit(2)


class Arguments(argparse.ArgumentParser):
    """The options of the benchmark `name`, described by the first line of its docstring. A mistake is one line."""

    def __init__(self, name, docstring):
        super().__init__(prog=f"bench/run {name}", description=docstring.splitlines()[0], allow_abbrev=False)

    def error(self, message):
        misuse(f"{self.prog}: {message}; see `{self.prog} --help`")


def whole_number(text):
    """For add_argument(type=...): from 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1")
    return value


def positive(text):
    """For add_argument(type=...): a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return value


def say(text=""):
    print(text, flush=True)


def install(*groups):
    subprocess.run([ROOT / "tools/install-deps", *groups], check=True)


def build(*targets):
    """The release build of these CMake targets."""
    quiet = {"cwd": ROOT, "check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["cmake", "--preset", "release"], **quiet)
    jobs = str(os.cpu_count())
    subprocess.run(["cmake", "--build", "--preset", "release", "-j", jobs, "--target", *targets], **quiet)


@dataclass
class Ran:
    """One finished run of a program, with its cost."""

    command: str
    stdout: str
    stderr: str
    exit_code: int
    wall_s: float
    cpu_s: float
    rss_mb: float


def run(command, cwd=ROOT, env=None):
    """Runs a program to its end. Raises Failure if the exit status is not 0."""
    command = [str(word) for word in command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        child = subprocess.Popen(command, cwd=cwd, env=env, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        ran = Ran(command=shlex.join(command), stdout=out.read().decode(errors="replace"),
                  stderr=err.read().decode(errors="replace"), exit_code=child.returncode, wall_s=wall_s,
                  cpu_s=usage.ru_utime + usage.ru_stime, rss_mb=usage.ru_maxrss * 1024 / 1e6)
    if ran.exit_code != 0:
        tail = "\n".join((ran.stdout + ran.stderr).splitlines()[-15:])
        raise Failure(f"{ran.command}: exit {ran.exit_code}\n{tail}")
    return ran


def weft_sim(scenario, *options):
    """`weft sim run` of a scenario file: the fields of its JSON, and the run. A flow that did not end is a Failure."""
    ran = run([BUILD / "weft", "sim", "run", scenario, "--json", *options])
    try:
        return json.loads(ran.stdout), ran
    except json.JSONDecodeError as error:
        raise Failure(f"{ran.command}: not JSON on stdout: {error}\n{ran.stderr}") from None


def read_scenario(path):
    """A scenario as a dictionary, without its [expect], because a benchmark reports and does not judge."""
    scenario = read_toml(path)
    scenario.pop("expect", None)
    return scenario


def read_toml(path):
    try:
        return tomllib.loads(pathlib.Path(path).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        misuse(f"{path}: {error}")


def to_toml(tables):
    """A dictionary of tables, lists of tables and plain values as TOML."""
    plain = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    lines = [f"{key} = {_toml_value(value)}" for key, value in plain.items()]
    for name, table in tables.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]"] + [f"{key} = {_toml_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _toml_value(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ",".join("\n  " + _toml_value(v) for v in value) + "]"
    return json.dumps(value)  # Strings, numbers and booleans are written as in JSON.


def _scaled(text, units, what):
    """A number with a unit, as scenario files write them."""
    if isinstance(text, (int, float)):
        return text
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[len(number):].strip()
    if unit not in units:
        misuse(f"{text}: expected {what} in {' '.join(units)}")
    return float(number) * units[unit]


def gbps(text):
    return _scaled(text, {"Mbps": 1e-3, "Gbps": 1, "Tbps": 1e3}, "a rate")


def seconds(text):
    return _scaled(text, {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}, "a duration")


def size(text):
    units = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    return int(_scaled(text, units, "a size"))


def interleave(contestants):
    """Runs each contestant `times` times, in turn. `contestants` is {name: (times, function)};
    returns {name: [result of the function, ...]}."""
    results = {name: [] for name in contestants}
    for turn in range(max(times for times, _ in contestants.values())):
        for name, (times, function) in contestants.items():
            if turn < times:
                results[name].append(function())
    return results


QUIET = 1.1  # times the fastest gauge; a slower gauge had neighbours on its core


def quiet_turns(contestant, gauge, wanted, most):
    """Runs `contestant` between two runs of `gauge`; both return times. Repeats until both gauges were quiet in `wanted`
    turns, or `most` times. Returns [(contestant, gauge), ...] of all turns and of the quiet turns; the gauge of a turn is
    the mean of its two."""
    gauges, times = [gauge()], []
    while True:
        times.append(contestant())
        gauges.append(gauge())
        slow = QUIET * min(gauges)
        turns = [(t, (g + h) / 2) for t, g, h in zip(times, gauges, gauges[1:])]
        quiet = [turn for turn, g, h in zip(turns, gauges, gauges[1:]) if max(g, h) <= slow]
        if len(quiet) >= wanted or len(times) >= most:
            return turns, quiet


def median_run(results, key):
    """The result whose key is the (lower) median of all."""
    return sorted(results, key=key)[(len(results) - 1) // 2]


def spread(values):
    """Smallest, median and largest value, to show how steady a figure is."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values), "runs": len(values)}


def runs(default):
    """Number of repetitions: WEFT_BENCH_RUNS, or the benchmark's default."""
    text = os.environ.get("WEFT_BENCH_RUNS", str(default))
    try:
        return whole_number(text)
    except argparse.ArgumentTypeError as error:
        misuse(f"WEFT_BENCH_RUNS={error}; unset it for the default")


def pointer_chase(*sizes_mib):
    """Nanoseconds of one dependent load by size of the working set in MiB: {"1": 15.2, ...}."""
    return json.loads(run([BUILD / "bench/pointer_chase", *sizes_mib]).stdout)


def memory_line(memory_ns):
    return "one load from memory: " + ", ".join(f"{ns:.0f} ns in {mib} MiB" for mib, ns in memory_ns.items())


def peer_program(variable):
    """The program that the environment variable names, or None and the reason."""
    path = os.environ.get(variable)
    if not path:
        return None, f"{variable} is not set: only Weft's half ran"
    if not os.access(path, os.X_OK) or not os.path.isfile(path):
        misuse(f"{variable}={path}: not a program; name the file of one, or unset it")
    return pathlib.Path(path).resolve(), None


def table(header, rows):
    """Prints rows under a header, first column left-aligned, the others right-aligned. Returns the lines as
    Markdown."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for number, row in enumerate(cells):
        say("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))))
        if number == 0:
            say("  ".join("-" * width for width in widths))
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    lines.insert(1, "|---|" + "---:|" * (len(header) - 1))
    return lines


def _figure(value, unit=""):
    if math.isinf(value):
        return "never"
    number = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{number} {unit}".strip()


@dataclass(frozen=True)
class Bar:
    """A limit that a benchmark must reach, and the measured value: None if not measured, and then `why` is the reason."""

    what: str
    measured: float | None
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""
    why: str | None = None
    peers: dict = field(default_factory=dict)  # figures of the peers, by name

    @property
    def held(self):
        """Whether the bar held; None if nothing was measured."""
        if self.measured is None:
            return None
        return ((self.at_least is None or self.measured >= self.at_least)
                and (self.at_most is None or self.measured <= self.at_most))

    def line(self):
        limits = [f"{words} {_figure(limit, self.unit)}" for words, limit in
                  (("at least", self.at_least), ("at most", self.at_most)) if limit is not None]
        bar = f"bar: {self.what}: {' and '.join(limits)}: "
        if self.measured is None:
            return bar + f"not measured: {self.why}"
        peers = ", ".join(f"{name} {_figure(value, self.unit)}" for name, value in self.peers.items())
        return (bar + f"measured {_figure(self.measured, self.unit)}: {'held' if self.held else 'missed'}"
                + (f" ({peers})" if peers else ""))

    def fields(self):
        """The fields for JSON, which has no infinity."""
        finite = {name: value if value is not None and math.isfinite(value) else None
                  for name, value in {"measured": self.measured, **self.peers}.items()}
        out = {"what": self.what, "measured": finite.pop("measured")}
        out |= {name: limit for name, limit in (("at_least", self.at_least), ("at_most", self.at_most)) if limit is not None}
        out |= {"unit": self.unit} if self.unit else {}
        out |= {"held": self.held}
        out |= {"why": self.why} if self.measured is None else {}
        return out | ({"peers": finite} if finite else {})


def finish(weft, ratio, why=None, detail=None, bars=(), **peers):
    """The end of a benchmark: one line per bar, and one JSON object as the last line. `why` is the reason for a missing
    ratio."""
    line = {"weft": weft, **peers, "ratio": ratio}
    if why:
        line["why"] = why
    line["bars"] = [bar.fields() for bar in bars]
    line["detail"] = detail or {}
    say()
    for bar in bars:
        say(bar.line())
    if bars:
        say()
    say(json.dumps(line))


def main(function):
    """Runs a benchmark's main; a Failure becomes one message and exit status 1. Also cleans up when terminated by a
    signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    runs(1)  # reports a wrong WEFT_BENCH_RUNS before anything is built
    try:
        return function()
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        command = error.cmd if isinstance(error.cmd, str) else shlex.join(map(str, error.cmd))
        print(f"{command}: exit {error.returncode}", file=sys.stderr)
        return 1
