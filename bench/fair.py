"""Two flows on a 1 Gb/s link with a queue of 100 KB and no ECN: Weft beside Weft, Weft beside TCP cubic.

`weft` is Weft's goodput over TCP's on the shared link (1 is equal, 0.3 to 3 is fair enough); `ratio` is the
same, because there is no other peer. The table also has two Weft flows, and two TCP flows.
"""

import statistics
import sys

import _flows
import _netns
import lib

SECONDS = 4.0


def together(first, second):
    """Runs both transfers at once; returns their goodputs while both ran."""
    transfers = [first(), second()]
    try:
        lines = [_flows.timeline(t.result()) for t in transfers]
    finally:
        for t in transfers:
            t.stop()
    begin = max(line["start_s"] for line in lines) + 0.5
    end = min(line["start_s"] for line in lines) + SECONDS - 0.1
    return [_flows.rate_gbps(line, begin, end) for line in lines]


def main():
    parser = lib.Arguments("fair", __doc__)
    parser.parse_args()
    lib.install("build", "network")
    why = _netns.why_not()
    if why is not None:
        lib.say(f"fair: {why}")
        lib.finish(weft=None, ratio=None, why=why)
        return 0
    lib.build("weft", "raw_tcp")
    rows, detail = [], {}
    with _netns.pair(1, rate="1gbit", burst="16kb", limit="100kb", offloads=False) as hosts:
        weft = [lambda port=port: _flows.weft(hosts, SECONDS, port=port) for port in (20721, 20722)]
        tcp = [lambda port=port: _flows.tcp(hosts, SECONDS, port=port) for port in (14701, 14702)]
        for name, pair in {"weft, TCP cubic": (weft[0], tcp[0]), "weft, weft": weft, "TCP cubic, TCP cubic": tcp}.items():
            both = [together(*pair) for _ in range(lib.runs(3))]
            shares = [a / b if b > 0 else float("inf") for a, b in both]
            share = statistics.median(shares)
            detail[name] = {"first_over_second": share, "goodputs_gbps": both}
            median = sorted(both, key=lambda ab: ab[0] / ab[1] if ab[1] else 1e9)[len(both) // 2]
            rows.append([name, f"{median[0]:.3f}", f"{median[1]:.3f}", f"{share:.2f}", f"{min(shares):.2f}..{max(shares):.2f}"])
    lib.table(["on 1 Gb/s", "first Gb/s", "second Gb/s", "first / second", "range"], rows)
    share = detail["weft, TCP cubic"]["first_over_second"]
    lib.finish(weft=share, ratio=share, detail=detail,
               bars=[lib.Bar(f"goodput, {name}: first / second", detail[name]["first_over_second"], at_least=0.3, at_most=3)
                     for name in ("weft, TCP cubic", "weft, weft")])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
