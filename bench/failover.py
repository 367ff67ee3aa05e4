"""A plane dies during a transfer: how long does the transfer pause? Weft, TCP and MPTCP over the same two links.

`weft` is the longest pause of all trials in ms, over two kinds of fault: the plane's carrier goes down, or the plane
silently loses every packet in both directions at once. `ratio` is the best peer's longest pause over it. There are two
veth links of 1 Gb/s between two namespaces. The plane dies 1.2 s into the transfer and is repaired a second later;
every pause in that second counts. Pauses that overlap its first 0.2 s, which the fault may have caused, are listed
separately. A trial with a pause above 3 ms in the second before the fault shows the machine, not the transport: it is
repeated, and the repetition is counted. During each transfer a process on each core sleeps and wakes: no transport
could have used the time in which these processes were not woken.
"""

import statistics
import sys
import time

import _flows
import _netns
import lib

BEFORE_S, FAULT_S, AFTER_S = 1.2, 1.0, 1.0
SETTLED_S = 0.2
QUIET_MS = 3.0
REPEATS = 1  # noisy trials per wanted trial; after that the benchmark ends with fewer trials, and without a ratio


def break_and_mend(hosts, kind, trial):
    """Breaks plane 1 and repairs it; returns both times."""
    end = "ab"[trial % 2]
    with hosts.silencer(1) as silence:
        time.sleep(BEFORE_S)
        died = time.monotonic()
        if kind == "down":
            hosts.down(end, 1)
        else:
            silence()
        time.sleep(max(died + FAULT_S - time.monotonic(), 0))
    if kind == "down":
        hosts.up(end, 1)
    else:
        hosts.heal("a")
        hosts.heal("b")
    return died, time.monotonic()


def trial(hosts, start, kind, number):
    seconds = BEFORE_S + FAULT_S + AFTER_S
    transfer = start(hosts, seconds + 0.6)
    witness = _flows.Witness(seconds)
    try:
        died, mended = break_and_mend(hosts, kind, number)
        result = transfer.result()
        asleep = witness.result()
    finally:
        transfer.stop()
        witness.stop()
        hosts.heal("a")
        hosts.heal("b")
    line = _flows.timeline(result)
    before = _flows.rate_gbps(line, died - 0.8, died - 0.01)
    back = _flows.time_to_rate_ms(line, mended, 0.95 * before)
    return {"pause_before_ms": _flows.longest_gap_ms(line, died - 1.0, died - 0.001),
            "pause_ms": _flows.longest_gap_ms(line, died, mended - 0.05),
            "machine_ms": _flows.longest_gap_ms(asleep, died, mended - 0.05),
            "pause_at_fault_ms": _flows.longest_gap_ms(line, died, died + SETTLED_S),
            "before_gbps": before,
            "survivor_share": _flows.rate_gbps(line, died + 0.1, mended - 0.01) / (before / 2 or 1),
            "full_after_ms": back,
            "counters": result.get("counters", {})}


def trials(hosts, start, kind, wanted, repeats_max):
    """The quiet trials, and the noisy ones up to a limit."""
    quiet, noisy = [], []
    while len(quiet) < wanted and len(noisy) < repeats_max:
        one = trial(hosts, start, kind, len(quiet))
        is_noisy = one["pause_before_ms"] > QUIET_MS or one["before_gbps"] == 0
        (noisy if is_noisy else quiet).append(one)
    return quiet, noisy


def machine_gaps_ms():
    """The longest gap of a bare spinning process in each of ten seconds; a transport cannot be better than the
    machine."""
    return [max(float(gap) for gap in lib.run([lib.BUILD / "bench/stands_still", "1"]).stdout.split()) for _ in range(10)]


def or_never(ms):
    return None if ms == float("inf") else ms


def summary(runs):
    pauses = [one["pause_ms"] for one in runs]
    backs = [float("inf") if one["full_after_ms"] is None else one["full_after_ms"] for one in runs]
    worst = max(runs, key=lambda one: one["pause_ms"])
    return {"trials": len(runs), "pause_median_ms": statistics.median(pauses), "pause_max_ms": max(pauses),
            "machine_at_pause_max_ms": worst["machine_ms"], "machine_max_ms": max(one["machine_ms"] for one in runs),
            "at_fault_median_ms": statistics.median(one["pause_at_fault_ms"] for one in runs),
            "at_fault_max_ms": max(one["pause_at_fault_ms"] for one in runs),
            "before_gbps": statistics.median(one["before_gbps"] for one in runs),
            "survivor_share": statistics.median(one["survivor_share"] for one in runs),
            "survivor_share_min": min(one["survivor_share"] for one in runs),
            "pauses_and_machine_ms": [[one["pause_ms"], one["machine_ms"]] for one in runs],
            "full_after_median_ms": or_never(statistics.median(backs)), "full_after_ms": or_never(max(backs))}


def bars_of(detail, wanted):
    bars = []
    for kind, dies in ("down", "with its carrier"), ("silent", "silently"):
        ours, mptcp = detail[f"weft, {kind}"], detail[f"MPTCP, {kind}"]
        where = f"a plane dies {dies}"
        trials = f"{ours['trials']} of {wanted} trials"

        def bar(what, key, **limits):
            never = float("inf")  # only of full_after_*
            values = [never if s[key] is None else s[key] for s in (ours, mptcp)]
            bars.append(lib.Bar(f"{where}: {what}", values[0], peers={"MPTCP": values[1]}, **limits))

        bar(f"longest pause of {trials}", "pause_max_ms", at_most=10, unit="ms")
        bar(f"median pause of {trials}", "pause_median_ms", at_most=3, unit="ms")
        bar("rate afterwards / the survivor's", "survivor_share", at_least=0.95)
        bar("until full rate after the repair, median", "full_after_median_ms", at_most=20, unit="ms")
    return bars


def main():
    parser = lib.Arguments("failover", __doc__)
    parser.add_argument("--trials", type=lib.whole_number, default=20, help="for Weft, of each kind")
    parser.add_argument("--peer-trials", type=lib.whole_number, default=3)
    options = parser.parse_args()
    lib.install("build", "network")
    why = _netns.why_not()
    if why is not None:
        lib.say(f"failover: {why}")
        lib.finish(weft=None, ratio=None, why=why)
        return 0
    lib.build("weft", "raw_tcp", "stands_still")
    still = machine_gaps_ms()
    contestants = {
        "weft": (options.trials, _flows.weft),
        "MPTCP": (options.peer_trials, lambda hosts, s: _flows.tcp(hosts, s, mptcp=True)),
        "TCP cubic": (options.peer_trials, lambda hosts, s: _flows.tcp(hosts, s)),
    }
    rows, detail = [], {}
    with _netns.pair(2, rate="1gbit") as hosts:
        for name, (count, start) in contestants.items():
            for kind in ("down", "silent"):
                if name == "weft":
                    quiet, noisy = trials(hosts, start, kind, count, REPEATS * count)
                else:  # TCP pauses even without a fault, so all its trials count
                    quiet, noisy = [trial(hosts, start, kind, i) for i in range(count)], []
                s = summary(quiet or noisy)
                s["repeated"] = repeated = len(noisy)
                if noisy:
                    s["noisy"] = summary(noisy)
                detail[f"{name}, {kind}"] = s
                full = ["never" if s[key] is None else f"{s[key]:.0f}" for key in ("full_after_median_ms", "full_after_ms")]
                rows.append([f"{name}, {kind}", s["trials"], repeated, f"{s['at_fault_median_ms']:.2f}",
                             f"{s['at_fault_max_ms']:.2f}", f"{s['pause_median_ms']:.2f}", f"{s['pause_max_ms']:.2f}",
                             f"{s['machine_at_pause_max_ms']:.2f}", f"{s['survivor_share']:.2f}",
                             f"{s['survivor_share_min']:.2f}", *full, f"{s['before_gbps']:.2f}"])
    lib.table(["plane dies", "trials", "repeated", "pause ms at the fault", "longest", "in the second", "longest",
               "machine in it", "/ survivor's rate", "least", "full rate after ms", "longest", "Gb/s before"], rows)
    lib.say(f"A process that only reads the clock was paused for {statistics.median(still):.1f} ms (median of ten seconds, "
            f"at most {max(still):.1f}).")
    ours = max(detail["weft, down"]["pause_max_ms"], detail["weft, silent"]["pause_max_ms"])
    peers = {name: max(detail[f"{name}, {kind}"]["pause_max_ms"] for kind in ("down", "silent"))
             for name in ("MPTCP", "TCP cubic")}
    few = any(detail[f"weft, {kind}"]["trials"] < options.trials for kind in ("down", "silent"))
    lib.finish(weft=ours, ratio=None if few else min(peers.values()) / ours,
               why="the machine was too noisy for as many trials as were wanted" if few else None,
               **{n.lower().replace(" ", "_"): v for n, v in peers.items()},
               detail={**detail, "machine_gaps_ms": still}, bars=bars_of(detail, options.trials))
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
