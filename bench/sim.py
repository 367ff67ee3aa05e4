"""Simulated packet-hops per second: 8,192 hosts, three tiers, 400G, against htsim (WEFT_PEER_HTSIM).

`weft` is packet-hops a second of wall time, set-up included, and `ratio` is that over htsim's. A packet-hop is a
packet, data or control, leaving a port, hosts' included. Both programs get the same flows (drawn here from --seed),
packet size on the wire, link rate and delay, and run in turn; a figure is the median of its runs. The fabric is that of
scenarios/permutation-8192.toml.
"""

import pathlib
import random
import re
import sys
import tempfile

import lib

BASE = lib.ROOT / "scenarios/permutation-8192.toml"
FRAMING_BYTES = 126  # of a Weft data packet without SRv6: from the preamble to the frame check sequence
HTSIM_HEADER_BYTES = 64
HTSIM_PATHS = 256


class FatTree:
    """The full three-tier fat tree of switches with `ports` ports: k^3/4 hosts for k ports."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.ports = round((4 * hosts) ** (1 / 3))
        if self.ports ** 3 != 4 * hosts:
            lib.misuse(f"bench/run sim: --hosts {hosts}: a full fat tree has k^3/4 hosts: 128, 1024, 8192, ...")

    def topology(self):
        half = self.ports // 2
        return {"hosts": self.hosts, "hosts_per_t0": half, "t0_per_pod": half, "t1_per_pod": half, "t2_per_t1": half}

    def hops(self, a, b):
        """Number of links from a to b."""
        per_t0, per_pod = self.ports // 2, self.ports ** 2 // 4
        return 2 if a // per_t0 == b // per_t0 else 4 if a // per_pod == b // per_pod else 6


class Traffic:
    """The input of both programs: the fabric of the scenario file, and a permutation drawn here."""

    def __init__(self, hosts, size, seed):
        self.scenario = lib.read_scenario(BASE)
        topology = self.scenario["topology"]
        self.tree = FatTree(hosts or topology["hosts"])
        if topology["shape"] != "three-tier" or topology.get("planes", 1) != 1:
            lib.misuse(f"{BASE}: expected one plane of three tiers, which is what htsim builds")
        topology |= self.tree.topology()
        self.gbps = lib.gbps(topology["host_rate"])
        self.link_delay_us = lib.seconds(topology.get("link_delay", "500ns")) * 1e6
        self.wire_bytes = lib.size(self.scenario["transport"]["mtu"]) + FRAMING_BYTES
        self.bytes = size or lib.size(self.scenario["workload"]["bytes"])
        self.seed = seed
        order = list(range(self.tree.hosts))
        random.Random(seed).shuffle(order)
        # One cycle over all hosts, so that every host sends to another and receives from another.
        self.flows = [(host, order[i - 1]) for i, host in enumerate(order)]

    def for_weft(self):
        flows = [{"from": a, "to": b, "bytes": self.bytes} for a, b in self.flows]
        return lib.to_toml(self.scenario | {"workload": {"kind": "flows", "flow": flows}})

    def for_htsim(self):
        lines = [f"Nodes {self.tree.hosts}", f"Connections {len(self.flows)}"]
        lines += [f"{a}->{b} id {number} start 0 size {self.bytes}" for number, (a, b) in enumerate(self.flows, 1)]
        return "\n".join(lines) + "\n"


def run_weft(folder, traffic):
    scenario = folder / f"permutation-{traffic.tree.hosts}.toml"
    scenario.write_text(traffic.for_weft())
    result, ran = lib.weft_sim(scenario, "--seed", traffic.seed)
    return {
        "wall_s": ran.wall_s,
        "cpu_s": ran.cpu_s,
        "rss_mb": ran.rss_mb,
        "packet_hops": result["packet_hops"],
        "packet_hops_per_s": result["packet_hops"] / ran.wall_s,
        "slowest_us": result["fct_us"]["max"],
        "ideal_us": result["ideal_us"],
        "retransmits": result["retransmits"],
        "trace_hash": result["trace_hash"],
    }


def run_htsim(program, folder, traffic):
    matrix = folder / "flows.cm"
    matrix.write_text(traffic.for_htsim())
    ran = lib.run([program, "-nodes", traffic.tree.hosts, "-tiers", 3, "-linkspeed", round(traffic.gbps * 1000),
                   "-hop_latency", traffic.link_delay_us, "-mtu", traffic.wire_bytes, "-tm", matrix, "-sender_cc_only",
                   "-load_balancing_algo", "bitmap", "-paths", HTSIM_PATHS, "-seed", traffic.seed, "-end", 100000],
                  cwd=folder)
    finished = [float(text) for text in re.findall(r" finished at ([0-9.e+]+) ", ran.stdout)]
    counts = {name: int(count) for name, count in re.findall(r"(New|Rtx|RTS|ACKs|NACKs|Pulls): (\d+)", ran.stdout)}
    rtt = re.search(r"network_max_unloaded_rtt ([0-9.]+)", ran.stdout)
    if len(finished) != len(traffic.flows) or not counts or not rtt:
        raise lib.Failure(f"{ran.command}: {len(finished)} of {len(traffic.flows)} flows finished")
    # htsim counts packets and not hops. Every flow has the same number of packets, so hops are packets times the mean
    # path length.
    hops_mean = sum(traffic.tree.hops(a, b) for a, b in traffic.flows) / len(traffic.flows)
    packet_hops = round(sum(counts.values()) * hops_mean)
    packets_a_flow = -(-traffic.bytes // (traffic.wire_bytes - HTSIM_HEADER_BYTES))
    return {
        "wall_s": ran.wall_s,
        "cpu_s": ran.cpu_s,
        "rss_mb": ran.rss_mb,
        "packet_hops": packet_hops,
        "packet_hops_per_s": packet_hops / ran.wall_s,
        "slowest_us": max(finished),
        "ideal_us": packets_a_flow * traffic.wire_bytes * 8e-3 / traffic.gbps + float(rtt[1]),
        "retransmits": counts["Rtx"],
    }


def show(name, best):
    return [name, f"{best['packet_hops_per_s'] / 1e6:.3f}", f"{best['packet_hops'] / 1e6:.2f}", f"{best['wall_s']:.1f}",
            f"{best['cpu_s']:.1f}", f"{best['rss_mb']:.0f}", f"{best['slowest_us']:.1f}",
            f"{best['slowest_us'] / best['ideal_us']:.3f}", best["retransmits"]]


def bars_of(detail, ratio, why):
    """Those of the default size, for which they are set."""
    beside = {"htsim": detail["htsim"]["slowest_over_ideal"]} if "htsim" in detail else {}
    return [lib.Bar("packet-hops a second / htsim's", ratio, at_least=20, why=why),
            lib.Bar("wall time of htsim / weft's", detail.get("wall_ratio"), at_least=20, why=why),
            lib.Bar("memory", detail["weft"]["rss_mb"], at_most=500, unit="MB"),
            lib.Bar("slowest flow / ideal", detail["weft"]["slowest_over_ideal"], at_most=1.20, peers=beside)]


def main():
    parser = lib.Arguments("sim", __doc__)
    parser.add_argument("--hosts", type=lib.whole_number, help="k^3/4 of them (default: 8192)")
    parser.add_argument("--bytes", type=lib.whole_number, help="of each flow (default: 2000000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--htsim-runs", type=lib.whole_number, default=1, help="one takes minutes at 8192 hosts (default: 1)")
    options = parser.parse_args()

    traffic = Traffic(options.hosts, options.bytes, options.seed)
    htsim, why = lib.peer_program("WEFT_PEER_HTSIM")
    lib.install("build")
    lib.build("weft", "pointer_chase")
    memory_ns = lib.pointer_chase()

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        contestants = {"weft": (lib.runs(3), lambda: run_weft(folder, traffic))}
        if htsim:
            contestants["htsim"] = (lib.runs(options.htsim_runs), lambda: run_htsim(htsim, folder, traffic))
        results = lib.interleave(contestants)

    medians = {name: lib.median_run(all_runs, lambda r: r["packet_hops_per_s"]) for name, all_runs in results.items()}
    lib.say(f"{traffic.tree.hosts} hosts, three tiers, {traffic.gbps:g} Gb/s, {len(traffic.flows)} flows of "
            f"{traffic.bytes} bytes, packets of {traffic.wire_bytes} bytes on the wire")
    lib.say()
    lib.table(["", "M hop/s", "M hops", "wall s", "CPU s", "MB", "slowest us", "/ ideal", "retransmits"],
              [show(name, best) for name, best in medians.items()])
    lib.say()
    lib.say(lib.memory_line(memory_ns))
    if why:
        lib.say(why)

    detail = {"hosts": traffic.tree.hosts, "bytes": traffic.bytes, "memory_ns": memory_ns}
    for name, best in medians.items():
        spread = lib.spread([r["packet_hops_per_s"] for r in results[name]])
        over_ideal = best["slowest_us"] / best["ideal_us"]
        detail[name] = {**best, "slowest_over_ideal": over_ideal, "packet_hops_per_s_runs": spread}
    peers, ratio = {}, None
    if htsim:
        peers["htsim"] = medians["htsim"]["packet_hops_per_s"]
        ratio = medians["weft"]["packet_hops_per_s"] / peers["htsim"]
        detail["wall_ratio"] = medians["htsim"]["wall_s"] / medians["weft"]["wall_s"]
        detail["cpu_ratio"] = medians["htsim"]["cpu_s"] / medians["weft"]["cpu_s"]
        detail["rss_ratio"] = medians["htsim"]["rss_mb"] / medians["weft"]["rss_mb"]
    bars = [] if options.hosts or options.bytes else bars_of(detail, ratio, why)
    lib.finish(weft=medians["weft"]["packet_hops_per_s"], ratio=ratio, why=why, detail=detail, bars=bars, **peers)
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
