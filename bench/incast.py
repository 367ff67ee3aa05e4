"""Eight hosts send to one through the software switch, 200 Mb/s a port: trims, timers, fairness on real packets.

`weft` is Jain's index of the eight goodputs; no other transport reacts to trims, so `ratio` is null. The nine hosts are
endpoints of two processes, each with sockets in its own network namespace; the switch is a third process. The cores
should be at most half busy (`cores` is the use of all processes in the busiest two seconds), so that the result shows
the protocol and not the scheduler. The bar is at most 1 in 10,000 packets recovered by timer: `by timer` is the number
of packets that a retry timer declared lost, or the number of its expiries, whichever is larger. The retry timer is the
default, 1 ms. The timer of the scenario file is not used: it is for the simulator, where ends do not measure the
response time of their peers.
"""

import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import _netns
import lib


SCENARIO = "scenarios/lab-incast.toml"
BUSY_S, LOOK_S = 2.0, 0.1


class Busy:
    """The cores that the processes named weft and weft-switch (hosts and switch) used in their busiest two seconds. The
    switch is found by name, because it is not a child of this process."""

    def __enter__(self):
        self.samples, self.over = [], threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def _watch(self):
        ticks = {}  # by process; for an ended process the last value seen
        while not self.over.wait(LOOK_S):
            for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
                try:
                    name, fields = stat.read_text().rsplit(")", 1)
                except OSError:
                    continue
                if name.rsplit("(", 1)[-1].startswith("weft"):  # also matches weft-switch
                    ticks[stat.parent.name] = sum(int(t) for t in fields.split()[11:13])
            self.samples.append((time.monotonic(), sum(ticks.values()) / os.sysconf("SC_CLK_TCK")))

    def cores(self):
        window = [(b[1] - a[1]) / (b[0] - a[0]) for a in self.samples for b in self.samples if b[0] - a[0] >= BUSY_S]
        return max(window, default=0.0)


def once():
    tables = lib.read_scenario(lib.ROOT / SCENARIO)
    del tables["transport"]["retry"]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(lib.to_toml(tables))
        file.flush()
        with Busy() as busy:
            ran = lib.run([lib.BUILD / "weft", "lab", "run", file.name, "--processes", "2", "--json"])
    result = json.loads(ran.stdout)
    c = result["counters"]
    packets = c["transport.data_packets"]
    lost_timer, timeouts = c.get("transport.lost_timer", 0), c.get("transport.timeouts", 0)
    by_timer = max(lost_timer, timeouts)
    return {"jain": result["jain"], "trims": result["trims"], "ecn_marks": result["ecn_marks"],
            "goodput_gbps": result["goodput_gbps"], "data_packets": packets,
            "retransmits": c.get("transport.retransmits", 0),
            "lost_timer": lost_timer, "timeouts": timeouts,
            "by_timer": by_timer, "by_timer_share": by_timer / packets,
            "evs_condemned": c.get("transport.evs_condemned", 0),
            "cores": busy.cores()}


def main():
    parser = lib.Arguments("incast", __doc__)
    parser.parse_args()
    lib.install("build", "network")
    why = _netns.why_not()
    if why is not None:
        lib.say(f"incast: {why}")
        lib.finish(weft=None, ratio=None, why=why)
        return 0
    lib.build("weft")
    runs = [once() for _ in range(lib.runs(5))]
    lib.table(["run", "Jain", "Gb/s", "trims", "marks", "data packets", "retransmitted", "by timer", "share", "cores"],
              [[name, f"{r['jain']:.4f}", f"{r['goodput_gbps']:.3f}", r["trims"], r["ecn_marks"], r["data_packets"],
                r["retransmits"], r["by_timer"], f"{r['by_timer_share']:.6f}", f"{r['cores']:.2f}"]
               for name, r in enumerate(runs, 1)])
    by_timer, packets = (sum(r[what] for r in runs) for what in ("by_timer", "data_packets"))
    lib.say(f"of all runs {by_timer} of {packets} packets by timer: {by_timer / packets * 1e4:.2f} in 10,000")
    middle = lib.median_run(runs, lambda r: r["jain"])
    lib.finish(weft=middle["jain"], ratio=None, why="no peer answers trims",
               detail={"runs": runs, "by_timer_share": by_timer / packets},
               bars=[lib.Bar("Jain's index", middle["jain"], at_least=0.95),
                     lib.Bar("packets recovered by timer, of 10,000 in all runs", by_timer / packets * 1e4, at_most=1),
                     lib.Bar("cores busy in the busiest two seconds, median", statistics.median(r["cores"] for r in runs),
                             at_most=os.cpu_count() / 2)])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
