"""Transfers between the two hosts of a namespace pair, with the bytes received in every millisecond: Weft, TCP, MPTCP."""

import json
import subprocess

import lib

MESSAGE = 65536


class Transfer:
    """A running transfer from host a to host b. `result()` waits for its end."""

    def __init__(self, name, process, other=None):
        self.name, self.process, self.other = name, process, other

    def result(self):
        out, err = self.process.communicate(timeout=120)
        if self.other is not None:
            try:
                self.other_out = self.other.communicate(timeout=30)[0]
            except subprocess.TimeoutExpired:
                self.other.kill()
                self.other_out = self.other.communicate()[0]
        if self.process.returncode != 0:
            raise lib.Failure(f"{self.name}: exit {self.process.returncode}\n{err}")
        return json.loads(out)

    def stop(self):
        for process in (self.process, self.other):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


class Witness:
    """Processes that sleep during a transfer, one on each core. `result()` returns the gaps in which one of them was
    not woken."""

    def __init__(self, seconds):
        self.process = start([lib.BUILD / "bench/stands_still", seconds, "--beside"])

    def result(self):
        lines = self.process.communicate(timeout=120)[0].splitlines()
        return {"gaps": [[float(word) for word in line.split()] for line in lines]}

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def start(words):
    return subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start_listener(words):
    """Starts `weft bench write --listen` with these words; returns when it listens."""
    listener = start(words)
    said = []
    for line in listener.stderr:
        said.append(line)
        if "waiting for" in line:
            return listener
    raise lib.Failure(f"weft bench write --listen: exit {listener.wait()}\n{''.join(said)}")


def weft(hosts, seconds, port=20721, planes=None, message=MESSAGE, options=()):
    """Starts a transfer on one QP from a to b over these planes (default: all)."""
    program = lib.BUILD / "weft"
    planes = list(planes or hosts.planes)
    addresses = {end: ",".join(hosts.address(end, p) for p in planes) for end in "ab"}
    listener = start_listener(hosts.command("b", program, "bench", "write", "--listen", "--json", "--port", port,
                                            "--planes", addresses["b"]))
    leader = start(hosts.command("a", program, "bench", "write", hosts.address("b", planes[0]), "--json", "--port", port,
                                  "--planes", addresses["a"], "--size", message, "--seconds", seconds, *options))
    return Transfer("weft", leader, listener)


def tcp(hosts, seconds, congestion="cubic", mptcp=False, plane=1, port=14701):
    words = [lib.BUILD / "bench/raw_tcp", hosts.address("b", plane), seconds, "--from-netns", hosts.names["a"],
             "--to-netns", hosts.names["b"], f"--{congestion}", "--port", port]
    return Transfer("MPTCP" if mptcp else f"TCP {congestion}", start(words + (["--mptcp"] if mptcp else [])))


def timeline(result):
    """The timeline of a Weft or raw_tcp result."""
    return result["timeline"] if "timeline" in result else result["rows"][0]["timeline"]


def rate_gbps(line, begin_s, end_s):
    """Mean rate between two times of the monotonic clock."""
    first = max(int((begin_s - line["start_s"]) * 1000), 0)
    last = min(int((end_s - line["start_s"]) * 1000), len(line["bytes"]) - 1)
    if last <= first:
        return 0.0
    return sum(line["bytes"][first:last]) * 8e-6 / (last - first)


def longest_gap_ms(line, begin_s, end_s):
    """The longest time without a received byte in the interval; a gap may extend beyond its end."""
    longest = 0.0
    for at, length in line["gaps"]:
        begin, end = max(at, begin_s), at + length / 1e3
        if end > begin_s and at < end_s:
            longest = max(longest, (end - begin) * 1e3)
    return longest


def time_to_rate_ms(line, begin_s, gbps, window_ms=5):
    """The time after which the mean rate of a few milliseconds reaches a value; None: never."""
    first = max(int((begin_s - line["start_s"]) * 1000), 0)
    for i in range(first, len(line["bytes"]) - window_ms):
        if sum(line["bytes"][i:i + window_ms]) * 8e-6 / window_ms >= gbps:
            return i - first + window_ms
    return None
