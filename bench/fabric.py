"""One QP through the lab's fabric: 4 hosts, 2 planes of 2 leaves and 2 spines, the kernel's SRv6 as switches.

`weft` is Gb/s of payload from host 0 to host 2, over all four paths; `ratio` is that over the raw sprayed ceiling: runs
of packets to the same four carriers without reliability (raw_udp). The table has the packets of each path, counted at
the spines: max over min is at most 1.2 if the spraying is even.
"""

import json
import statistics
import sys
import tempfile

import _netns
import _flows
import lib

SCENARIO = """
[topology]
shape = "two-tier"
hosts = 4
hosts_per_t0 = 2
t1_count = 2
planes = 2
host_rate = "100Gbps"

[workload]
kind = "pairs"
bytes = "1MiB"
"""
CARRIERS = [f"fd00:1:{t0:x}:{t1:x}:{t0 + 1:x}:{host:x}::" for t0, t1s, host in
            [(0x0001, (0x4001, 0x4002), 0x8001), (0x0801, (0x4801, 0x4802), 0x8801)] for t1 in t1s]


class Lab:
    def __init__(self, file):
        self.file, self.name = file, "bench"

    def weft(self, *words):
        return lib.run([lib.BUILD / "weft", "lab", *words, "--name", self.name])

    def __enter__(self):
        lib.run([lib.BUILD / "weft", "lab", "up", self.file, "--name", self.name])
        return self

    def __exit__(self, *_):
        self.weft("down")

    def inside(self, host, *words):
        return ["ip", "netns", "exec", f"weft.{self.name}.h{host}", *[str(w) for w in words]]

    def spines(self):
        """Packets that each spine sent down to T0 1, by (plane, spine)."""
        found = {}
        for link in json.loads(self.weft("status", "--json").stdout)["labs"][0]["links"]:
            if link["text"].startswith("T1 ") and "-> T0 1 " in link["text"]:
                found[link["text"]] = link["bytes"]
        return found


def transfer(lab, seconds):
    program = lib.BUILD / "weft"
    words = ["bench", "write", "--json", "--port", "20731", "--fabric", lab.file, "--evs", "8"]
    listener = _flows.start_listener(lab.inside(2, program, *words, "--listen", "--fabric-host", 2))
    leader = _flows.start(lab.inside(0, program, *words, "fd00:1::3", "--fabric-host", 0, "--size", 1 << 20,
                                     "--seconds", seconds))
    run = _flows.Transfer("weft", leader, listener)
    try:
        return run.result()
    finally:
        run.stop()


def raw(lab, seconds):
    return float(lib.run([lib.BUILD / "bench/raw_udp", ",".join(CARRIERS), seconds, 15, 4096, f"weft.{lab.name}.h0",
                          f"weft.{lab.name}.h2"]).stdout)


def main():
    parser = lib.Arguments("fabric", __doc__)
    parser.parse_args()
    lib.install("build", "network")
    why = _netns.why_not()
    if why is not None:
        lib.say(f"fabric: {why}")
        lib.finish(weft=None, ratio=None, why=why)
        return 0
    lib.build("weft", "raw_udp")
    ours, ceiling, shares = [], [], []
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(SCENARIO)
        file.flush()
        with Lab(file.name) as lab:
            for _ in range(lib.runs(3)):
                ceiling.append(raw(lab, 1.0))
                before = lab.spines()
                ours.append(transfer(lab, 1.0)["rows"][0]["gbps"])
                after = lab.spines()
                shares.append({name: after[name] - before[name] for name in after})
    weft, bare = statistics.median(ours), statistics.median(ceiling)
    uneven = max(max(s.values()) / min(s.values()) for s in shares)
    lib.table(["Gb/s of payload", "median", "range", "/ raw", "max/min of paths"],
              [["weft, 4 paths", f"{weft:.2f}", f"{min(ours):.2f}..{max(ours):.2f}", f"{weft / bare:.2f}", f"{uneven:.3f}"],
               ["bare UDP, the same 4 paths", f"{bare:.2f}", f"{min(ceiling):.2f}..{max(ceiling):.2f}", "1.00", ""]])
    lib.say()
    lib.table(["path by spine", "share of bytes"],
              [[name, f"{value / sum(shares[-1].values()):.3f}"] for name, value in sorted(shares[-1].items())])
    lib.finish(weft=weft, ratio=weft / bare, raw=bare, detail={"max_over_min": uneven, "weft": lib.spread(ours),
                                                               "raw": lib.spread(ceiling)},
               bars=[lib.Bar("bytes of the busiest path over those of the idlest", uneven, at_most=1.2),
                     lib.Bar("weft / bare UDP over the same paths", weft / bare, at_least=0.7)])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
