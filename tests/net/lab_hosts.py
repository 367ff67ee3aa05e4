"""Shared by the tests of labs: the program, the address plan, datagrams between hosts, processes and namespaces that a test
left behind."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import time

WEFT = os.environ["WEFT_BINARY"]
SCENARIO = "scenarios/lab-two-plane.toml"
HOSTS, PLANES, LEAVES, SPINES = 4, 2, 2, 2  # the topology of SCENARIO
SECONDS_MAX = 120
BASE = f"t{os.getpid()}"  # prefix of the lab names of this run, because tests may run in parallel
os.environ["WEFT_LAB_TEST"] = BASE  # marks every process that this test starts

# Program for a host: counts datagrams by text and source until stdin ends and no more arrive, then prints the counts.
RECEIVE = """
import collections, json, select, socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
s.bind(("::", 7000))
print("ready", flush=True)
seen, open_ = collections.Counter(), True
while True:
    ready = select.select([s] + [sys.stdin] * open_, [], [], None if open_ else 0.3)[0]
    if not ready and not open_:
        break
    if s in ready:
        data, peer = s.recvfrom(9000)
        seen[data.rstrip(b"x").decode() + " from " + peer[0]] += 1
    elif sys.stdin in ready and not sys.stdin.readline():
        open_ = False
print(json.dumps(seen))
"""

# Program for a host: sends the datagrams that stdin lists, and prints which addresses sent ICMP errors about them.
SEND = """
import collections, json, socket, sys, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(41, 25, 1)  # IPV6_RECVERR; the socket is not connected, so it sees errors about shifted addresses
job = json.load(sys.stdin)
errors = collections.Counter()
def look():
    while True:
        try:
            _, extra, _, _ = s.recvmsg(1, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        for level, kind, data in extra:
            if (level, kind) == (41, 25):
                errors[socket.inet_ntop(socket.AF_INET6, data[24:40])] += 1
if job["segments"]:
    s.setsockopt(17, 103, 200)  # UDP_SEGMENT
for to, text in job["to"]:
    for _ in range(job["count"]):
        try:
            s.sendto(text.encode().ljust(200 * max(1, job["segments"]), b"x"), (to, 7000))
        except OSError:
            pass  # the error of an earlier send
        look()
        time.sleep(0.0002)
time.sleep(0.05)
look()
print(json.dumps(errors))
"""


def weft(*words, expect=0):
    ran = subprocess.run([WEFT, "lab", *words], capture_output=True, text=True, timeout=SECONDS_MAX)
    if expect is not None and ran.returncode != expect:
        raise AssertionError(f"weft lab {' '.join(words)}: exit {ran.returncode}\n{ran.stderr}")
    return ran


def reason_to_skip():
    """Why labs are not possible on this machine; None if they are."""
    ran = weft("up", SCENARIO, "--name", f"{BASE}-probe", expect=None)
    if ran.returncode == 0:
        weft("down", "--name", f"{BASE}-probe")
        return None
    # Only a missing privilege or tool is a reason to skip; any other error is a failure.
    lacks = ("needs root, or a user namespace", "is not installed", "seg6_enabled")
    if not any(lack in ran.stderr for lack in lacks):
        sys.exit(f"weft lab up: {ran.stderr}")
    return ran.stderr.strip()


def usid(role, plane, index):
    return (role << 14) | (plane << 11) | (index + 1)


def carrier(plane, source, to, spine):
    """The destination address whose uSIDs lead from one host to another. Computed here from the address plan, not by the
    program under test."""
    leaf = lambda host: host // 2
    usids = [usid(0, plane, leaf(source))]
    if leaf(source) != leaf(to):
        usids += [usid(1, plane, spine), usid(0, plane, leaf(to))]
    usids.append(usid(2, plane, to % 2))
    return "fd00:1:" + ":".join(f"{u:x}" for u in usids) + "::"


def inside(name, host, *command):
    return subprocess.Popen([WEFT, "lab", "exec", "--name", name, "host", str(host), "--", *command],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


Send = collections.namedtuple("Send", "source to address text")


def exchange(name, sends, count, segments=0):
    """Sends datagrams; returns the counts of those that arrived, {"text from address": count}, and of ICMP errors,
    {address: count}."""
    receivers = {to: inside(name, to, sys.executable, "-c", RECEIVE) for to in {send.to for send in sends}}
    seen, complaints = {}, collections.Counter()
    try:
        for process in receivers.values():
            if process.stdout.readline() != "ready\n":
                raise AssertionError("a receiver does not start")
        for source in sorted({send.source for send in sends}):
            to = [(send.address, send.text) for send in sends if send.source == source]
            sender = inside(name, source, sys.executable, "-c", SEND)
            out, _ = sender.communicate(json.dumps({"to": to, "count": count, "segments": segments}), SECONDS_MAX)
            complaints.update(json.loads(out))
        for process in receivers.values():
            out, _ = process.communicate(timeout=SECONDS_MAX)
            seen.update(json.loads(out))
    finally:
        for process in receivers.values():
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
    return seen, complaints


def own_processes():
    """The processes that this run has started, mostly keepers, without this process."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if f"WEFT_LAB_TEST={BASE}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(folder.name)
        except OSError:
            pass  # has ended, or belongs to another user
    return found


def own_namespaces():
    try:
        return [n for n in os.listdir("/run/netns") if n.startswith(f"weft.{BASE}")]
    except FileNotFoundError:
        return []


def wait_until(is_so, what, seconds_between=0.05):
    end = time.monotonic() + 10
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(what)
        time.sleep(seconds_between)
