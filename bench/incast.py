"""Eight hosts send to one through the software switch, 200 Mb/s a port: trims, timers, fairness on real packets.

`weft` is Jain's index of the eight goodputs; there is no peer that answers trims, so `ratio` is null. The nine hosts are
endpoints of two processes, each with sockets in its own network namespace, the switch is a third: the cores are at most
half busy, so that what is seen is the protocol and not the scheduler. At most 1 in 10,000 packets is recovered by timer.
"""

import argparse
import json
import resource
import sys
import time

import _netns
import lib


def once():
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = lib.run([lib.BUILD / "weft", "lab", "run", "scenarios/lab-incast.toml", "--processes", "2", "--json"])
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - started
    result = json.loads(ran.stdout)
    c = result["counters"]
    packets = c["transport.data_packets"]
    return {"jain": result["jain"], "trims": result["trims"], "ecn_marks": result["ecn_marks"],
            "goodput_gbps": result["goodput_gbps"], "data_packets": packets,
            "retransmits": c.get("transport.retransmits", 0),
            "by_timer": c.get("transport.lost_timer", 0), "timeouts": c.get("transport.timeouts", 0),
            "by_timer_share": c.get("transport.lost_timer", 0) / packets,
            "evs_condemned": c.get("transport.evs_condemned", 0),
            "hosts_cpu_cores": (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / wall}


def main():
    parser = argparse.ArgumentParser(prog="bench/run incast", description=__doc__.splitlines()[0])
    parser.parse_args()
    lib.install("build", "network")
    why = _netns.why_not()
    if why is not None:
        lib.say(f"incast: {why}")
        lib.finish(weft=None, ratio=None, why=why)
        return 0
    lib.build("weft")
    runs = [once() for _ in range(lib.runs(3))]
    lib.table(["run", "Jain", "Gb/s", "trims", "marks", "data packets", "again", "by timer", "share", "cores"],
              [[i + 1, f"{r['jain']:.4f}", f"{r['goodput_gbps']:.3f}", r["trims"], r["ecn_marks"], r["data_packets"],
                r["retransmits"], r["by_timer"], f"{r['by_timer_share']:.6f}", f"{r['hosts_cpu_cores']:.2f}"]
               for i, r in enumerate(runs)])
    middle = lib.median_run(runs, lambda r: r["jain"])
    lib.finish(weft=middle["jain"], ratio=None, why="no peer answers trims", detail={"runs": runs})
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
