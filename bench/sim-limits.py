"""The simulator's bars besides `sim`: one row per bar, with the required and the measured value.

Each row is a scenario file of the repository, run as it stands. `weft` is packet-hops a second at 1,024 hosts. There is
no peer, because htsim runs out of time or memory at these sizes.
"""

import argparse
import re
import sys
from dataclasses import dataclass

import lib


@dataclass
class Bar:
    scenario: str
    what: str  # a key of the measurement
    asked: float
    at_least: bool = False

    def margin(self, measured):
        return measured / self.asked if self.at_least else self.asked / measured


BARS = [
    Bar("permutation-1024-3tier", "packet_hops_per_s", 2.5e6, at_least=True),
    Bar("incast-8191", "wall_s", 60),
    Bar("all-to-all-1024", "wall_s", 120),
    Bar("all-to-all-1024", "rss_mb", 4_000),
    Bar("permutation-131072-64k", "build_s", 5),
    Bar("permutation-131072-64k", "wall_s", 60),
    Bar("permutation-131072-64k", "rss_mb", 12_000),
    Bar("permutation-131072", "packet_hops_per_s", 1e6, at_least=True),
    Bar("permutation-131072", "rss_mb", 16_000),
    Bar("permutation-131072", "kb_per_host", 100),
]


SPEED = BARS[0].scenario


def measure(scenario):
    wants_build = any(bar.scenario == scenario and bar.what == "build_s" for bar in BARS)
    path = lib.ROOT / f"scenarios/{scenario}.toml"
    result, ran = lib.weft_sim(path)
    hosts = lib.read_toml(path)["topology"]["hosts"]
    details = lib.run([lib.BUILD / "weft", "sim", "run", path, "--details"]).stdout if wants_build else "built in 0 s"
    return {"packet_hops": result["packet_hops"], "packet_hops_per_s": result["packet_hops"] / ran.wall_s,
            "wall_s": ran.wall_s, "rss_mb": ran.rss_mb,
            "kb_per_host": ran.rss_mb * 1e3 / hosts, "build_s": float(re.search(r"built in ([\d.]+) s", details)[1])}


def main():
    parser = argparse.ArgumentParser(prog="bench/run sim-limits", description=__doc__.splitlines()[0])
    parser.parse_args()
    lib.install("build")
    lib.build("weft", "pointer_chase")
    memory_ns = lib.pointer_chase()
    measured = {}
    for bar in BARS:
        if bar.scenario in measured:
            continue
        print(f"{bar.scenario} ...", file=sys.stderr)
        # The large scenarios run once, because they take long.
        times = lib.runs(3 if bar.scenario == SPEED else 1)
        measured[bar.scenario] = lib.median_run([measure(bar.scenario) for _ in range(times)],
                                                lambda run: run["wall_s"])
    rows = []
    for bar in BARS:
        value = measured[bar.scenario][bar.what]
        rows.append([bar.scenario, bar.what, ">=" if bar.at_least else "<=", f"{bar.asked:,.0f}", f"{value:,.2f}",
                     "held" if bar.margin(value) >= 1 else "MISSED"])
    lib.table(["scenario", "what", "", "asked", "measured", ""], rows)
    lib.say()
    lib.say(lib.memory_line(memory_ns))
    worst = min(bar.margin(measured[bar.scenario][bar.what]) for bar in BARS)
    lib.finish(weft=measured[SPEED]["packet_hops_per_s"], ratio=None,
               why="no peer simulates these sizes",
               detail={"smallest_margin": worst, "measured": measured, "memory_ns": memory_ns})
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
