"""One packet in a hundred is lost: how much goodput is left? Weft, TCP (cubic, bbr) and MPTCP over the same two links.

`weft` is Weft's goodput at 1 % loss in each direction of one unlimited link over its lossless goodput (0 to 1); `ratio`
is that over the best peer's. Offloads are off at the interfaces, so that loss acts on each packet, and lossless runs pass
the same rule with a share of 0, so that only loss differs. A second table, with a bar of its own, has two links of 1 Gb/s of
which one loses 1 % in each direction.
"""

import statistics
import sys

import _flows
import _netns
import lib

SECONDS = 1.5
# Before it: connecting and growing.
SKIP_S = 0.3


def goodput(start):
    transfer = start()
    try:
        line = _flows.timeline(transfer.result())
    finally:
        transfer.stop()
    begin = line["start_s"] + SKIP_S
    return _flows.rate_gbps(line, begin, line["start_s"] + SECONDS - 0.05)


def contest(hosts, contestants, times, lossy):
    """{name: {"lossless": median, "lossy": median}}, loss and no loss turn by turn."""
    found = {name: {"lossless": [], "lossy": []} for name in contestants}
    for _ in range(times):
        for kind in ("lossless", "lossy"):
            lossy(10 if kind == "lossy" else 0)
            for name, start in contestants.items():
                found[name][kind].append(goodput(start))
            for end in "ab":
                hosts.heal(end)
    return {name: {kind: statistics.median(values) for kind, values in kinds.items()} for name, kinds in found.items()}


def show(title, results):
    rows = [[name, f"{r['lossless']:.3f}", f"{r['lossy']:.3f}", f"{r['lossy'] / r['lossless']:.3f}"]
            for name, r in results.items()]
    lib.table([title, "lossless Gb/s", "1 % lost", "kept"], rows)
    lib.say()
    return {name: {**r, "kept": r["lossy"] / r["lossless"]} for name, r in results.items()}


def bar_of(what, results, at_least):
    peers = {name: r["kept"] for name, r in results.items() if name != "weft"}
    return lib.Bar(what, results["weft"]["kept"], at_least=at_least, peers=peers)


def main():
    parser = lib.Arguments("loss", __doc__)
    parser.parse_args()
    lib.install("build", "network")
    why = _netns.why_not()
    if why is not None:
        lib.say(f"loss: {why}")
        lib.finish(weft=None, ratio=None, why=why)
        return 0
    lib.build("weft", "raw_tcp")
    times = lib.runs(7)
    with _netns.pair(1, offloads=False) as hosts:
        contestants = {"weft": lambda: _flows.weft(hosts, SECONDS, message=1 << 20),
                       "TCP cubic": lambda: _flows.tcp(hosts, SECONDS),
                       "TCP bbr": lambda: _flows.tcp(hosts, SECONDS, congestion="bbr")}

        def lossy(of_1000):
            for end in "ab":
                hosts.lose(end, 1, of_1000)

        one = show("one link, 1 % each way", contest(hosts, contestants, times, lossy))
    with _netns.pair(2, rate="1gbit", offloads=False) as hosts:
        contestants = {"weft": lambda: _flows.weft(hosts, SECONDS, message=1 << 18),
                       "MPTCP": lambda: _flows.tcp(hosts, SECONDS, mptcp=True),
                       "TCP cubic": lambda: _flows.tcp(hosts, SECONDS),
                       "TCP bbr": lambda: _flows.tcp(hosts, SECONDS, congestion="bbr")}

        def half_lossy(of_1000):
            for end in "ab":
                hosts.lose(end, 1, of_1000)

        two = show("two links of 1 Gb/s, 1 % each way on one", contest(hosts, contestants, times, half_lossy))
    peers = {name: r["kept"] for name, r in one.items() if name != "weft"}
    lib.finish(weft=one["weft"]["kept"], ratio=one["weft"]["kept"] / max(peers.values()),
               **{name.lower().replace(" ", "_"): share for name, share in peers.items()},
               detail={"one_link": one, "two_links": two},
               bars=[bar_of("goodput kept, 1 % lost each way on one link", one, 0.90),
                     bar_of("goodput kept, 1 % lost each way on one of two links of 1 Gb/s", two, 0.97)])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
