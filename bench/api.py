"""The cost of mrc.h over the engine: instructions of a write by callgrind, 4 KiB and 8 B; also rates and round trips.

`weft` is instructions of a 4 KiB write through mrc.h (`weft bench write --api mrc`), `engine` those of the same
benchmark on the engine itself, `ratio` engine over mrc; the bar is at most 10 % more for each size.

Counted are instructions in user space, of both ends. The benchmark writes to itself (--self), on one thread, so that
neither end waits for the other and no loop makes a random number of rounds. The result is the difference of two runs
with different numbers of writes, divided by the difference of the numbers, so that work done once cancels. The device's
own thread sleeps (--poll-gap 60s), because its usual 50 us are many times too short under callgrind; the rates include
its cost. The number of network polls per write (`looks`: epoll_wait and recvmmsg) is printed too, which shows whether
one API polls without success more often.

Rates and latencies are measured with two processes, without callgrind, in turn; medians of ten.
"""

import collections
import json
import pathlib
import re
import sys
import tempfile

import lib

WEFT = lib.BUILD / "weft"
APIS = ("engine", "mrc")
SIZES = (4096, 8)
FEW, MANY = 4000, 36000
BAR = 1.10
LOOKS = ("epoll_wait", "recvmmsg")


def bench(api, *words):
    ran = lib.run([WEFT, "bench", "write", "--no-shm", "--api", api, "--json", *words])
    return json.loads(ran.stdout), ran


def read_callgrind(path):
    """Instructions, and number of calls by name of the called function, from one file of callgrind."""
    names, instructions, calls = {}, 0, collections.Counter()
    called = None
    for line in pathlib.Path(path).read_text(errors="replace").splitlines():
        if line.startswith("cfn="):
            number, name = re.match(r"cfn=\((\d+)\)(?: (.*))?", line).groups()
            called = names.setdefault(number, name)
        elif line.startswith("fn="):
            number, name = re.match(r"fn=\((\d+)\)(?: (.*))?", line).groups()
            names.setdefault(number, name)
        elif line.startswith("calls="):
            calls[called] += int(line[6:].split()[0])
        elif line.startswith("totals:"):
            instructions += int(line.split()[1])
    return instructions, calls


def count(api, size, writes):
    """Instructions and network polls of one run: {"instructions": ..., "looks": ...}, of the polling thread."""
    with tempfile.TemporaryDirectory() as folder:
        # LD_BIND_NOW resolves symbols at start, because the cost of lazy binding depends on the load addresses.
        lib.run(["env", "LD_BIND_NOW=1", "valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/out",
                 WEFT, "bench", "write", "--self", "--no-shm", "--api", api, "--spin", "forever", "--poll-gap", "60s",
                 "--size", size, "--iterations", writes, "--json"])
        instructions, calls = read_callgrind(f"{folder}/out-01")
    looks = sum(n for name, n in calls.items() if name and name.split("@")[0].split("'")[0] in LOOKS)
    return {"instructions": instructions, "looks": looks}


def per_write(api, size, times):
    """Each figure per write, as the median over pairs of runs."""
    found = collections.defaultdict(list)
    for _ in range(times):
        few, many = count(api, size, FEW), count(api, size, MANY)
        for what in few:
            found[what].append((many[what] - few[what]) / (MANY - FEW))
    return {what: lib.spread(values)["median"] for what, values in found.items()}


def rate(api, size):
    return bench(api, "--size", size)[0]["rows"][0]["messages_per_s"] / 1e6


def latency(api):
    return bench(api, "--latency", "--size", 8, "--iterations", 5000)[0]["rows"][0]["p50_us"]


def main():
    parser = lib.Arguments("api", __doc__)
    parser.add_argument("--only-instructions", action="store_true", help="leave rates and latencies out")
    arguments = parser.parse_args()
    lib.install("build", "count")
    lib.build("weft")
    counted = {size: {api: per_write(api, size, lib.runs(3)) for api in APIS} for size in SIZES}
    ratios = {size: counted[size]["mrc"]["instructions"] / counted[size]["engine"]["instructions"] for size in SIZES}
    lib.table(["instructions a write, both ends", "engine", "mrc", "mrc/engine", "looks, engine", "looks, mrc"],
              [[f"{size} B", *(f"{counted[size][api]['instructions']:.0f}" for api in APIS), f"{ratios[size]:.3f}",
                *(f"{counted[size][api]['looks']:.3f}" for api in APIS)] for size in SIZES])
    spread = {}
    if not arguments.only_instructions:
        times = lib.runs(10)
        measured = lib.interleave({
            f"{what}, {api}": (times, lambda api=api, measure=measure: measure(api))
            for what, measure in (("4 KiB, M writes/s", lambda api: rate(api, 4096)),
                                  ("8 B, M writes/s", lambda api: rate(api, 8)),
                                  ("8 B in one direction, us", latency))
            for api in APIS})
        spread = {name: lib.spread(values) for name, values in measured.items()}
        lib.say()
        lib.table(["two processes", "median", "range"],
                  [[name, f"{s['median']:.3f}", f"{s['min']:.3f}..{s['max']:.3f}"] for name, s in spread.items()])
    lib.finish(weft=counted[4096]["mrc"]["instructions"], engine=counted[4096]["engine"]["instructions"],
               ratio=1 / ratios[4096],
               detail={"ratio_4096": ratios[4096], "ratio_8": ratios[8], "counted": counted,
                       "spread": spread},
               bars=[lib.Bar(f"instructions of a write of {size} B, mrc / engine", ratio, at_most=BAR)
                     for size, ratio in ratios.items()])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
