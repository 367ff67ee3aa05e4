"""Eight senders to one receiver on the loopback with Debian's default socket buffers: do the buffers overflow?

`weft` is the goodput of all eight over one sender's, the median of two runs before and two after (bar: 0.7). Every
process requests at most Debian's default limit (212,992 bytes), even if the system permits more. Host drops must stay
below 0.1 %, and no EV may be condemned.
"""

import json
import statistics
import sys

import _flows
import lib

RECEIVE_BUFFER = 212_992
BURST = 15  # packets in a run


def sender(port, seconds):
    """All senders share one `--listen` process, because one receiver process per sender would hide the overflow."""
    return _flows.start([lib.BUILD / "weft", "bench", "write", "127.0.0.1", "--no-shm", "--json", "--port", port,
                         "--receive-buffer", RECEIVE_BUFFER, "--size", 1 << 20, "--seconds", seconds])


def run(count, seconds):
    listener = _flows.start_listener([lib.BUILD / "weft", "bench", "write", "--listen", "--no-shm", "--json",
                                      "--port", 20741, "--receive-buffer", RECEIVE_BUFFER, "--clients", count])
    senders = [sender(20741, seconds) for _ in range(count)]
    results = []
    try:
        for s in senders:
            out, err = s.communicate(timeout=seconds + 60)
            if s.returncode != 0:
                raise lib.Failure(f"weft bench write: exit {s.returncode}\n{err}")
            results.append(json.loads(out))
        received = json.loads(listener.communicate(timeout=30)[0])["counters"]
    finally:
        for p in [listener, *senders]:
            if p.poll() is None:
                p.kill()
                p.wait()
    sent = sum(r["counters"]["net.packets_sent"] for r in results)
    return {"gbps": sum(r["rows"][0]["gbps"] for r in results),
            "each_gbps": [r["rows"][0]["gbps"] for r in results],
            "drops_host": received.get("net.drops_host", 0),
            # The kernel counts dropped runs; a run has at most BURST packets.
            "drops_host_share": BURST * received.get("net.drops_host", 0) / sent,
            "evs_condemned": sum(r["counters"].get(f"transport.{what}_condemned", 0)
                                 for r in results for what in ("evs", "planes"))}


def main():
    parser = lib.Arguments("budget", __doc__)
    parser.add_argument("--seconds", type=lib.positive, default=60, help="of the eight")
    options = parser.parse_args()
    lib.install("build", "network")
    lib.build("weft")
    # Single senders run before and after the eight, because the machine's speed drifts.
    alone = [run(1, 5) for _ in range(2)]
    eight = run(8, options.seconds)
    alone += [run(1, 5) for _ in range(2)]
    one = statistics.median(r["gbps"] for r in alone)
    lib.table(["senders", "Gb/s", "runs dropped", "share at most", "EVs condemned"],
              [["1", f"{one:.2f}", alone[0]["drops_host"], f"{alone[0]['drops_host_share']:.5f}", alone[0]["evs_condemned"]],
               ["8", f"{eight['gbps']:.2f}", eight["drops_host"], f"{eight['drops_host_share']:.5f}", eight["evs_condemned"]]])
    lib.finish(weft=eight["gbps"] / one, ratio=None, why="a bar of Weft's own", detail={"one": alone, "eight": eight},
               bars=[lib.Bar("goodput of eight senders / one sender's", eight["gbps"] / one, at_least=0.7),
                     lib.Bar("packets dropped at the receiving host, with eight senders", 100 * eight["drops_host_share"],
                             at_most=0.1, unit="%"),
                     lib.Bar("EVs condemned, with eight senders", eight["evs_condemned"], at_most=0)])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
