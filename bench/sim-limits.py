"""The simulator's bars besides `sim`: time and memory of large scenarios.

Each is a scenario file of the repository, run unchanged. `weft` is packet-hops a second at 1,024 hosts. There is no
peer, because htsim runs out of time or memory at these sizes.
"""

import re
import sys
from dataclasses import dataclass

import lib


@dataclass
class Limit:
    scenario: str
    what: str  # a key of the measurement
    asked: float
    at_least: bool = False

    def margin(self, measured):
        return measured / self.asked if self.at_least else self.asked / measured

    def bar(self, measured):
        return lib.Bar(f"{self.scenario}, {self.what}", measured, **{"at_least" if self.at_least else "at_most": self.asked})


LIMITS = [
    Limit("permutation-1024-3tier", "packet_hops_per_s", 2.5e6, at_least=True),
    Limit("incast-8191", "wall_s", 60),
    Limit("all-to-all-1024", "wall_s", 120),
    Limit("all-to-all-1024", "rss_mb", 4_000),
    Limit("permutation-131072-64k", "build_s", 5),
    Limit("permutation-131072-64k", "wall_s", 60),
    Limit("permutation-131072-64k", "rss_mb", 12_000),
    Limit("permutation-131072", "packet_hops_per_s", 1e6, at_least=True),
    Limit("permutation-131072", "rss_mb", 16_000),
    Limit("permutation-131072", "kb_per_host", 100),
]


SPEED = LIMITS[0].scenario


def measure(scenario):
    wants_build = any(limit.scenario == scenario and limit.what == "build_s" for limit in LIMITS)
    path = lib.ROOT / f"scenarios/{scenario}.toml"
    result, ran = lib.weft_sim(path)
    hosts = lib.read_toml(path)["topology"]["hosts"]
    details = lib.run([lib.BUILD / "weft", "sim", "run", path, "--details"]).stdout if wants_build else "built in 0 s"
    return {"packet_hops": result["packet_hops"], "packet_hops_per_s": result["packet_hops"] / ran.wall_s,
            "wall_s": ran.wall_s, "rss_mb": ran.rss_mb,
            "kb_per_host": ran.rss_mb * 1e3 / hosts, "build_s": float(re.search(r"built in ([\d.]+) s", details)[1])}


def main():
    parser = lib.Arguments("sim-limits", __doc__)
    parser.parse_args()
    lib.install("build")
    lib.build("weft", "pointer_chase")
    memory_ns = lib.pointer_chase()
    measured = {}
    for limit in LIMITS:
        if limit.scenario in measured:
            continue
        print(f"{limit.scenario} ...", file=sys.stderr)
        # The large scenarios run once, because they take long.
        times = lib.runs(3 if limit.scenario == SPEED else 1)
        measured[limit.scenario] = lib.median_run([measure(limit.scenario) for _ in range(times)],
                                                  lambda run: run["wall_s"])
    lib.table(["scenario", "M hop/s", "wall s", "built in s", "MB", "KB/host"],
              [[name, f"{m['packet_hops_per_s'] / 1e6:.2f}", f"{m['wall_s']:.1f}", f"{m['build_s']:.1f}" if m["build_s"] else "",
                f"{m['rss_mb']:,.0f}", f"{m['kb_per_host']:.1f}"] for name, m in measured.items()])
    lib.say()
    lib.say(lib.memory_line(memory_ns))
    worst = min(limit.margin(measured[limit.scenario][limit.what]) for limit in LIMITS)
    lib.finish(weft=measured[SPEED]["packet_hops_per_s"], ratio=None,
               why="no peer simulates these sizes",
               detail={"smallest_margin": worst, "measured": measured, "memory_ns": memory_ns},
               bars=[limit.bar(measured[limit.scenario][limit.what]) for limit in LIMITS])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
