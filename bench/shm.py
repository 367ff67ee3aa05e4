"""Shared memory against a bare ring: bandwidth, 8-byte round trips (UDP and sleeping too), CPU when idle.

`weft` is GB/s of one QP over shared memory, 1 MiB messages out of and into buffers of 64 MiB, for a second; `ratio` is
the median of that over the better of two bare rings of the same turn (memcpy in pieces of 64 KiB and of 1 MiB), in and
out of buffers of the same size. The better ring, by a factor of two, depends on whether the cores share a cache, which
changes (docs/decisions/0035). Round trips are medians of 8 bytes with both ends spinning, or both ends sleeping at once
(over UDP on two cores). Weft and its peers run in turn; figures are medians. Neighbours on the same core slow the
larger program more. Therefore spinning round trips over UDP are also given for quiet turns only: the bare round trips
just before and after such a turn took at most 1.1 of the fastest bare one.
"""

import json
import os
import statistics
import sys

import _flows
import lib

WEFT = lib.BUILD / "weft"
RAW = lib.BUILD / "bench/raw_shm"
ROUNDS = 20000
QUIET_MIN = 5  # fewer quiet turns give no figure


def bandwidth():
    return json.loads(lib.run([WEFT, "bench", "write", "--shm", "--size", "1MiB", "--seconds", "1",
                               "--json"]).stdout)["rows"][0]["gbps"] / 8


def ring(piece):
    return float(lib.run([RAW, "ring", piece, "1"]).stdout)


def bare(what, rounds=ROUNDS):
    return float(lib.run([RAW, what, rounds]).stdout)


def round_trip(carrier, spin, rounds=ROUNDS):
    """`weft bench write --latency` reports half of a round trip, as perftest does."""
    out = lib.run([WEFT, "bench", "write", carrier, "--latency", "--spin", spin, "--size", "8", "--iterations", rounds,
                   "--json"]).stdout
    return 2 * json.loads(out)["rows"][0]["p50_us"]


def asleep_apart(rounds):
    """Over UDP with both ends sleeping, each on its own core as in raw_shm: two such ends on one core or on two cores differ
    by a factor of four."""
    words = ["bench", "write", "--no-shm", "--spin", "0us", "--port", "20751"]
    on = (lambda core: ["taskset", "-c", core]) if os.cpu_count() > 1 else (lambda core: [])
    listener = _flows.start_listener([*on(0), WEFT, *words, "--listen"])
    try:
        out = lib.run([*on(1), WEFT, *words, "127.0.0.1", "--latency", "--size", "8", "--iterations", rounds, "--json"])
        listener.communicate(timeout=30)
    finally:
        if listener.poll() is None:
            listener.kill()
            listener.wait()
    return 2 * json.loads(out.stdout)["rows"][0]["p50_us"]


def idle(carrier):
    """Per cent of a core that an idle end with a connected QP uses."""
    out = lib.run([WEFT, "bench", "write", carrier, "--size", "8", "--iterations", "1", "--idle", "1s", "--json"]).stdout
    return json.loads(out)["idle_cpu_pct"]


def bars_of(median, of_the_ring, beside):
    busy = "weft over UDP, both busy"
    # Where there were enough quiet turns, they are what is compared.
    busy = f"{busy}, quiet, us" if f"{busy}, quiet, us" in beside else f"{busy}, us"
    return [lib.Bar("bandwidth over shared memory / the better bare ring's", of_the_ring, at_least=0.8),
            lib.Bar("round trip over shared memory, both busy", median["weft, both busy, us"], at_most=1, unit="us"),
            lib.Bar(f"{busy.removesuffix(', us')}: round trip / bare UDP's", beside[busy][1], at_most=1.3),
            lib.Bar("weft over UDP, both asleep: round trip / bare UDP's by epoll",
                    beside["weft over UDP, both asleep, us"][1], at_most=1.1)]


def main():
    parser = lib.Arguments("shm", __doc__)
    parser.parse_args()
    lib.install("build")
    lib.build("weft", "raw_shm")
    times = lib.runs(15)
    measured = lib.interleave({
        "weft, GB/s": (times, bandwidth),
        "bare ring, pieces of 64 KiB, GB/s": (times, lambda: ring(65536)),
        "bare ring, pieces of 1 MiB, GB/s": (times, lambda: ring(1 << 20)),
        "weft, both busy, us": (times, lambda: round_trip("--shm", "forever")),
        "bare flags, us": (times, lambda: bare("flag", 100000)),
        "weft over UDP, both asleep, us": (times, lambda: asleep_apart(2000)),
        "bare UDP by epoll, us": (times, lambda: bare("epoll", 2000)),
        "weft, both asleep, us": (times, lambda: round_trip("--shm", "0us", 2000)),
        "weft idle, % of a core": (1, lambda: idle("--shm")),
        "weft over UDP idle, % of a core": (1, lambda: idle("--no-shm")),
    })
    turns, quiet = lib.quiet_turns(lambda: round_trip("--no-shm", "forever"), lambda: bare("udp"), times, 4 * times)
    for which, some in ("", turns), (", quiet", quiet):
        if some is turns or len(some) >= QUIET_MIN:
            measured[f"weft over UDP, both busy{which}, us"], measured[f"bare UDP, both busy{which}, us"] = zip(*some)
    spread = {name: lib.spread(values) for name, values in measured.items()}
    median = {name: s["median"] for name, s in spread.items()}
    rings = list(map(max, measured["bare ring, pieces of 64 KiB, GB/s"], measured["bare ring, pieces of 1 MiB, GB/s"]))
    of_the_ring = lib.spread([ours / theirs for ours, theirs in zip(measured["weft, GB/s"], rings)])
    beside = {"weft, GB/s": ("of the better ring", of_the_ring["median"]),
              "weft over UDP, both asleep, us": ("of bare", median["weft over UDP, both asleep, us"] / median["bare UDP by epoll, us"])}
    for which in "", ", quiet":
        if (name := f"weft over UDP, both busy{which}, us") in median:
            beside[name] = ("of bare", median[name] / median[f"bare UDP, both busy{which}, us"])
    lib.table(["8 bytes there and back, or 1 MiB in one direction", "median", "range", "ratio"],
              [[name, f"{s['median']:.3f}", f"{s['min']:.3f}..{s['max']:.3f}",
                f"{beside[name][1]:.2f} {beside[name][0]}" if name in beside else ""] for name, s in spread.items()])
    lib.finish(weft=median["weft, GB/s"], ratio=of_the_ring["median"],
               detail={"round_trip_us": median["weft, both busy, us"],
                       "udp_busy_ratio": beside["weft over UDP, both busy, us"][1],
                       "udp_busy_ratio_quiet": beside.get("weft over UDP, both busy, quiet, us", (None, None))[1],
                       "turns": len(turns), "quiet_turns": len(quiet),
                       "udp_asleep_ratio": beside["weft over UDP, both asleep, us"][1],
                       "idle_cpu_pct": median["weft idle, % of a core"], "of_the_ring": of_the_ring, "spread": spread},
               bars=bars_of(median, of_the_ring["median"], beside),
               **{"bare ring": statistics.median(rings)})
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
