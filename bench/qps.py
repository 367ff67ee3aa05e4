"""Many QPs and many processes through lib_mrc.so: memory and set-up time of a QP, and 64 processes that write to each other.

`weft` is KiB of memory per QP after writes on it: the growth of a process between 100 and 1,000 QPs (PSS, so that
shared pages count once), mean of both ends, over 900. Set-up is mrc_create_qp and mrc_modify_qp to INIT, RTR and RTS,
at 1,000 QPs, without the exchange of QP numbers between the ends. Every message has its own pattern and is verified
byte by byte; a wrong byte fails the run. In the run of 64 processes each process has QPs with its four neighbours in a
ring. Figures are medians. There is no peer, because there is no other software MRC.
"""

import json
import sys

import lib

MANY_QPS = lib.BUILD / "bench/many_qps"
FEW, MANY, ROUNDS = 100, 1000, 4
PROCESSES, NEIGHBOURS, QPS_EACH = 64, 2, 4


def many(processes, neighbours, qps):
    return json.loads(lib.run([MANY_QPS, processes, neighbours, qps, ROUNDS]).stdout)


def growth(few, many_of, key):
    """KiB per QP for each pair of runs."""
    return [(b[key] - a[key]) / (b["qps"] - a["qps"]) for a, b in zip(few, many_of)]


def main():
    parser = lib.Arguments("qps", __doc__)
    parser.parse_args()
    lib.install("build")
    lib.build("many_qps")
    times = lib.runs(5)
    ran = lib.interleave({
        "few": (times, lambda: many(2, 1, FEW)),
        "many": (times, lambda: many(2, 1, MANY)),
        "ring": (times, lambda: many(PROCESSES, NEIGHBOURS, QPS_EACH)),
    })
    rows = {
        "memory of a QP that is connected, KiB": growth(ran["few"], ran["many"], "pss_kib_connected"),
        "memory of a QP that was written over, KiB": growth(ran["few"], ran["many"], "pss_kib_used"),
        "set-up of a QP, us": [r["create_us"] + r["connect_us"] for r in ran["many"]],
        "  of which mrc_create_qp, us": [r["create_us"] for r in ran["many"]],
        f"{MANY} QPs, {ROUNDS} messages in each direction, ms": [r["exchange_ms"] for r in ran["many"]],
        "memory of a process with an open device, MiB": [r["pss_kib_open"] / 1024 for r in ran["many"]],
        f"{PROCESSES} processes: memory of one, MiB": [r["pss_kib_used"] / 1024 for r in ran["ring"]],
        f"{PROCESSES} processes: QPs of one": [r["qps"] for r in ran["ring"]],
        f"{PROCESSES} processes: {ROUNDS} messages a QP, ms": [r["exchange_ms"] for r in ran["ring"]],
        f"{PROCESSES} processes: from start to end, s": [r["seconds"] for r in ran["ring"]],
    }
    spread = {name.strip(): lib.spread(values) for name, values in rows.items()}
    lib.table(["", "median", "range"],
              [[name, f"{lib.spread(values)['median']:.2f}", f"{min(values):.2f}..{max(values):.2f}"]
               for name, values in rows.items()])
    lib.finish(weft=spread["memory of a QP that was written over, KiB"]["median"], ratio=None,
               why="no other software MRC to compare with", detail={"spread": spread},
               bars=[lib.Bar(what, spread[f"{what}, {unit}"]["median"], at_most=most, unit=unit)
                     for what, most, unit in (("memory of a QP that is connected", 64, "KiB"), ("set-up of a QP", 200, "us"))])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
