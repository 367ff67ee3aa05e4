"""One QP against one TCP stream (iperf3, cubic) and against bare UDP, over the loopback and a veth pair of MTU 4200.

`weft` is Gb/s of payload over veth (over the loopback where namespaces cannot be made), 16 MiB messages; `ratio` is
that over iperf3's. `raw` is raw_udp: runs of packets without reliability, the ceiling; single packets by sendmmsg. With
bursts of one packet Weft uses another EV for each packet. Packets of one EV that leave together are still one send
(docs/decisions/0029). With 64 EVs per plane each packet is a separate send, as the peer's. All programs run in turn;
figures are medians, and ratios the medians of the turns' ratios. Weft and raw_udp use buffers of 64 MiB; iperf3 always
sends the same buffer of 128 KiB. ICRCs cover headers, the default between ends of Weft on such links, or also the
payload in the row that says so. Over the loopback Weft is measured twice: by UDP, and through shared memory, the
default between two processes of one host.
"""

import json
import statistics
import subprocess
import sys
import time

import _netns
import lib

SIZES = ["1MiB", "16MiB", "64MiB"]
HEADLINE = "16MiB"
SECONDS = 1.5


class Loopback:
    name = "loopback"

    def commands(self):
        return {"server": [], "client": [], "host": "127.0.0.1", "planes": [], "listen_planes": [],
                "raw": ["127.0.0.1"], "raw_spaces": []}


class Veth:
    name = "veth"

    def __init__(self, hosts):
        self.hosts = hosts

    def commands(self):
        h = self.hosts
        return {"server": h.command("b"), "client": h.command("a"), "host": h.address("b", 1),
                "planes": ["--planes", h.addresses("a")], "listen_planes": ["--planes", h.addresses("b")],
                "raw": [h.address("b", 1)], "raw_spaces": [h.names["a"], h.names["b"]]}


def together(server, client, settle_s):
    """Runs a server and a client at the same time; returns the client's stdout."""
    other = subprocess.Popen([str(w) for w in server], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(settle_s)
        return lib.run(client).stdout
    finally:
        try:
            other.wait(timeout=10)
        except subprocess.TimeoutExpired:
            other.kill()
            other.wait()


def iperf(link, seconds):
    c = link.commands()
    out = together([*c["server"], "iperf3", "-s", "-1", "-p", "20710"],
                   [*c["client"], "iperf3", "-c", c["host"], "-p", "20710", "-C", "cubic", "-t", str(seconds), "-J"], 0.4)
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 1e9


def weft(link, size, burst, *more, carrier="--no-shm", icrc="headers"):
    c = link.commands()
    program = ["env", f"WEFT_ICRC={icrc}", lib.BUILD / "weft"]
    words = ["bench", "write", carrier, "--port", "20711", *more]
    out = together([*c["server"], *program, *words, "--listen", *c["listen_planes"]],
                   [*c["client"], *program, *words, c["host"], *c["planes"], "--size", size, "--burst", str(burst), "--seconds",
                    str(SECONDS), "--json"], 0.4)
    return json.loads(out)["rows"][0]["gbps"]


def raw(link, seconds, burst):
    c = link.commands()
    return float(lib.run([lib.BUILD / "bench/raw_udp", *c["raw"], str(seconds), str(burst), "4096", *c["raw_spaces"]]).stdout)


TCP, RUNS, SINGLES = "TCP (iperf3, cubic)", "bare UDP, runs of 15", "bare UDP, single packets"


def measure(link, times):
    """{name: [Gb/s of each turn]}. Compared programs run directly after each other, because the machine's speed
    drifts."""
    contestants = {TCP: lambda: iperf(link, SECONDS)}
    if isinstance(link, Loopback):
        for size in SIZES:
            contestants[f"weft {size}, as by default"] = lambda size=size: weft(link, size, 15, carrier="--shm")
    for size in SIZES:
        contestants[f"weft {size}"] = lambda size=size: weft(link, size, 15)
    contestants[RUNS] = lambda: raw(link, SECONDS, 15)
    contestants["weft 16MiB, ICRC over payload too"] = lambda: weft(link, "16MiB", 15, icrc="full")
    contestants[SINGLES] = lambda: raw(link, SECONDS, 1)
    contestants["weft 16MiB, single packets"] = lambda: weft(link, "16MiB", 1)
    contestants["weft 16MiB, single packets of 64 EVs"] = lambda: weft(link, "16MiB", 1, "--evs", "64")
    return lib.interleave({name: (times, function) for name, function in contestants.items()})


def over(ours, peer):
    """The median of the turns' ratios."""
    return statistics.median(a / b for a, b in zip(ours, peer))


def bars_of(link, results):
    def bar(what, ours, peer, at_least):
        return lib.Bar(f"{link}: {what}", over(results[ours], results[peer]), at_least=at_least)

    by_default = ", as by default" if link == Loopback.name else ""
    return [*(bar(f"weft {size}{by_default} / TCP", f"weft {size}{by_default}", TCP, 1.3) for size in SIZES),
            bar(f"weft {HEADLINE} by UDP / bare UDP, both in runs", f"weft {HEADLINE}", RUNS, 0.7),
            bar("weft / bare UDP, both single packets", "weft 16MiB, single packets of 64 EVs", SINGLES, 0.8)]


def main():
    parser = lib.Arguments("tcp", __doc__)
    parser.add_argument("--loopback", action="store_true", help="leave the namespaces out")
    options = parser.parse_args()
    lib.install("build", "network")
    lib.build("weft", "raw_udp")
    why = "asked for" if options.loopback else _netns.why_not()
    measured = {"loopback": measure(Loopback(), lib.runs(5))}
    if why is None:
        with _netns.pair(1) as hosts:
            measured["veth"] = measure(Veth(hosts), lib.runs(5))
    rows = []
    for link, results in measured.items():
        for name, turns in results.items():
            spread = lib.spread(turns)
            rows.append([f"{link}: {name}", f"{spread['median']:.2f}", f"{spread['min']:.2f}..{spread['max']:.2f}",
                         f"{over(turns, results[TCP]):.2f}",
                         f"{over(turns, results[SINGLES if 'single' in name else RUNS]):.2f}"])
    lib.table(["Gb/s of payload", "median", "range", "/ TCP", "/ bare UDP"], rows)
    if why is not None:
        lib.say(f"veth was left out: {why}")
    best = measured.get("veth", measured["loopback"])
    ours = best[f"weft {HEADLINE}"]
    lib.finish(weft=statistics.median(ours), ratio=over(ours, best[TCP]), iperf3=statistics.median(best[TCP]),
               raw=statistics.median(best[RUNS]), detail=measured,
               bars=[bar for link, results in measured.items() for bar in bars_of(link, results)])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
