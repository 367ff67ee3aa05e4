"""How the cost of a simulation grows with the fabric: time and memory from 128 to 131,072 hosts.

Every row is the fabric of scenarios/permutation-131072.toml (two tiers, its planes and rates) cut to fewer hosts, and
its permutation of the same size for each host. `weft` is packet-hops a second in the largest row; there is no peer.
With --write the table goes to docs/scaling.md.
"""

import os
import pathlib
import sys
import tempfile

import lib

BASE = lib.ROOT / "scenarios/permutation-131072.toml"
PAGE = lib.ROOT / "docs/scaling.md"
HOSTS = [128, 1024, 8192, 16384, 65536, 131072]
HEADER = ["hosts", "planes", "M hops", "wall s", "M hop/s", "MB", "KB/host", "slowest / ideal"]


def scaled(base, hosts):
    """The scenario with this many hosts: as many T1s as hosts a T0, so that no tier is narrower than another."""
    per_t0 = 1
    while per_t0 * per_t0 * 2 < hosts:
        per_t0 *= 2
    topology = base["topology"] | {"hosts": hosts, "hosts_per_t0": per_t0, "t1_count": per_t0}
    return base | {"topology": topology}


def measure(folder, base, hosts, times):
    scenario = folder / f"scaling-{hosts}.toml"
    scenario.write_text(lib.to_toml(scaled(base, hosts)))

    def once():
        result, ran = lib.weft_sim(scenario)
        return {
            "hosts": hosts,
            "planes": base["topology"].get("planes", 1),
            "packet_hops": result["packet_hops"],
            "wall_s": ran.wall_s,
            "packet_hops_per_s": result["packet_hops"] / ran.wall_s,
            "rss_mb": result["rss_mb"],
            "kb_per_host": result["rss_mb"] * 1e3 / hosts,
            "slowest_over_ideal": result["fct_us"]["max"] / result["ideal_us"],
        }

    return lib.median_run([once() for _ in range(times)], lambda row: row["wall_s"])


def show(row):
    return [f"{row['hosts']:,}", row["planes"], f"{row['packet_hops'] / 1e6:.2f}", f"{row['wall_s']:.2f}",
            f"{row['packet_hops_per_s'] / 1e6:.2f}", f"{row['rss_mb']:.0f}", f"{row['kb_per_host']:.1f}",
            f"{row['slowest_over_ideal']:.3f}"]


def page_text(base, lines, memory_ns):
    topology, workload = base["topology"], base["workload"]
    return "\n".join([
        "# What a simulation costs",
        "",
        "Made by `bench/run sim-scaling --write`; do not edit. Every row is the fabric of",
        f"`{BASE.relative_to(lib.ROOT)}` with that many hosts: two tiers, {topology.get('planes', 1)} planes of",
        f"{topology['host_rate']}, every host sends {workload['bytes']} to one other. Time is the whole program's,",
        "set-up included, on one core; memory is the most it ever held.",
        "",
        *lines,
        "",
        f"The machine at that time, of {os.cpu_count()} cores: {lib.memory_line(memory_ns)}.",
        "Memory latency is what limits large fabrics: the rate falls as the state outgrows the caches.",
        "",
    ])


def main():
    parser = lib.Arguments("sim-scaling", __doc__)
    parser.add_argument("--hosts", type=lib.whole_number, nargs="+", default=HOSTS, metavar="N", help="rows, powers of two")
    parser.add_argument("--write", action="store_true", help="write docs/scaling.md")
    options = parser.parse_args()
    for hosts in options.hosts:
        if hosts < 2 or hosts & (hosts - 1):
            parser.error(f"--hosts {hosts}: expected powers of two")

    base = lib.read_scenario(BASE)
    lib.install("build")
    lib.build("weft", "pointer_chase")
    memory_ns = lib.pointer_chase()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for hosts in options.hosts:
            print(f"{hosts} hosts ...", file=sys.stderr)
            rows.append(measure(pathlib.Path(name), base, hosts, times=lib.runs(3 if hosts <= 8192 else 1)))
    lines = lib.table(HEADER, [show(row) for row in rows])
    lib.say()
    lib.say(lib.memory_line(memory_ns))
    if options.write:
        PAGE.write_text(page_text(base, lines, memory_ns))
        lib.say(f"written: {PAGE.relative_to(lib.ROOT)}")
    lib.finish(weft=rows[-1]["packet_hops_per_s"], ratio=None, why="no peer simulates these sizes",
               detail={"rows": rows, "memory_ns": memory_ns})
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
