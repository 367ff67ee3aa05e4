"""The software switch between network namespaces: plain UDP senders, real packets, real time.

Runs itself again in a user, network, mount and process namespace of its own, so that whatever happens nothing is left
and nothing else is touched; exits 77 with the reason where such namespaces cannot be made.
"""

import array
import collections
import ctypes
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests

WEFT = os.environ["WEFT_BINARY"]
INSIDE = "WEFT_TEST_INSIDE"
SECONDS_MAX = 20  # limit of every wait here, for busy machines and sanitizers too
PORT = 4791
# DSCPs (src/world/world.h) and ECN bits.
NO_TRIM, TRIMMABLE, TRIMMED, TRIMMED_LAST_HOP, CONTROL = 0, 4, 12, 16, 46
ECT0, CE = 2, 3
KEPT = 56  # bytes of UDP payload that a trim keeps: enough for sealed packets
SO_TIMESTAMPNS = 35
RATE = 200e6
CLONE_NEWNET = 0x40000000

LIBC = ctypes.CDLL(None, use_errno=True)


def reenter():
    """Runs this file once more in its own namespaces, or returns why it cannot."""
    command = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"]
    try:
        tried = subprocess.run([*command, "sh", "-c", "ip link add name x0 type veth peer name x1"], capture_output=True,
                               text=True, timeout=SECONDS_MAX)
        why = (tried.stderr.strip().splitlines() or ["unshare failed"])[-1] if tried.returncode != 0 else None
    except FileNotFoundError as e:
        why = str(e)
    if why:
        run_tests.skip_file(f"this machine gives no user and network namespaces: {why}")
    sys.exit(subprocess.run([*command, sys.executable, *sys.argv], env={**os.environ, INSIDE: "1"}).returncode)


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def address(host, plane=0):
    return f"fd00:{plane + 1:x}::{host + 1:x}"


class Fabric:
    """Hosts in namespaces of their own, and the switch in our namespace, with the other ends of their links."""

    def __init__(self, hosts, switch, planes=1, topology='shape = "single"', bytes_="1MiB"):
        self.hosts, self.planes = hosts, planes
        self.own = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.folder = tempfile.TemporaryDirectory()
        self.control = os.path.join(self.folder.name, "switch.sock")
        self.scenario = os.path.join(self.folder.name, "fabric.toml")
        with open(self.scenario, "w") as f:
            f.write(f"""[topology]
{topology}
hosts = {hosts}
planes = {planes}
host_rate = "200Mbps"
link_delay = "2us"
[switch]
forwarding = "hashed"
{switch}
[workload]
kind = "incast"
bytes = "{bytes_}"
""")
        self.sockets, self.namespaces, self.sent = [], [], 0
        for host in range(hosts):
            holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
            self.namespaces.append(holder)
            self.wait_for(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
            for plane in range(planes):
                ours, theirs = f"h{host}p{plane + 1}", f"p{plane + 1}"
                mac = f"02:57:00:00:00:{plane * 2 * hosts + host:02x}"  # as the switch expects
                sh("ip", "link", "add", "name", ours, "mtu", "4200", "type", "veth", "peer", "name", theirs, "address", mac,
                   "mtu", "4200", "netns", str(holder.pid))
                sh("ip", "link", "set", ours, "addrgenmode", "none", "up")
                inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
                sh(*inside, "ip", "link", "set", theirs, "arp", "off", "up")
                sh(*inside, "ethtool", "-K", theirs, "tso", "off", "gso", "off", "tx-udp-segmentation", "off")
                sh(*inside, "ip", "address", "add", f"{address(host, plane)}/64", "dev", theirs, "nodad")
        self.process = subprocess.Popen([WEFT, "lab", "switch", self.scenario, "--control", self.control],
                                        stdout=subprocess.PIPE, text=True)
        ready = json.loads(self.process.stdout.readline())
        assert ready["ready"], ready
        self.links = dict(line.split(" ", 1)[::-1] for line in self.ask("links").splitlines())

    @staticmethod
    def wait_for(condition):
        end = time.monotonic() + SECONDS_MAX
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError("it did not happen in time")
            time.sleep(0.002)

    def ask(self, request):
        return sh(WEFT, "lab", "ask", self.control, request)

    def counters(self):
        return json.loads(self.ask("counters"))["fabric"]

    def send(self, sender, data, to, extra=(), packets=1):
        sender.sendmsg([data], extra, 0, to)
        self.sent += packets

    def settled(self):
        """The counters, once everything that was sent has reached the switch and has left it."""
        def is_over():
            self.last = self.counters()
            return self.last["packets_in"] >= self.sent and self.last["under_way"] == 0

        self.wait_for(is_over)
        return self.last

    def collect(self, receiver, count, got):
        """Adds received packets to `got` until it has `count`, because the last ones may arrive late."""
        self.wait_for(lambda: got.extend(take(receiver)) or len(got) >= count)
        return got

    def link(self, words):
        return next(number for name, number in self.links.items() if words in name)

    def socket(self, host):
        """A UDP socket inside a host."""
        with open(f"/proc/{self.namespaces[host].pid}/ns/net") as there:
            assert LIBC.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            out = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        finally:
            assert LIBC.setns(self.own, CLONE_NEWNET) == 0
        self.sockets.append(out)
        return out

    def sender(self, host, dscp, ecn=ECT0, plane=0, port=0):
        out = self.socket(host)
        out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, dscp << 2 | ecn)
        out.bind((address(host, plane), port))
        return out

    def receiver(self, host, plane=0):
        out = self.socket(host)
        out.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
        out.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        out.bind((address(host, plane), PORT))
        out.setblocking(False)
        return out

    def close(self):
        for s in self.sockets:
            s.close()
        self.process.terminate()
        last, _ = self.process.communicate(timeout=SECONDS_MAX)
        for host in range(self.hosts):  # the kernel removes a namespace and its links late
            for plane in range(self.planes):
                sh("ip", "link", "delete", f"h{host}p{plane + 1}")
        for holder in self.namespaces:
            holder.kill()
            holder.wait()
        os.close(self.own)
        self.folder.cleanup()
        return self.process.returncode, json.loads(last.splitlines()[-1])


PATTERN = bytes(range(256)) * 36

Packet = collections.namedtuple("Packet", "data dscp ecn at source")


def take(receiver):
    """All packets in the receive buffer."""
    out = []
    while True:
        try:
            data, extra, _, source = receiver.recvmsg(9200, 256)
        except BlockingIOError:
            return out
        traffic_class, at = 0, 0.0
        for level, kind, value in extra:
            if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_TCLASS:
                traffic_class = array.array("i", value)[0]
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("qq", value)
                at = seconds + nanoseconds * 1e-9
        out.append(Packet(data, traffic_class >> 2, traffic_class & 3, at, source))


def payload(host, number, size):
    """A payload that depends on host and number, so that a trimmed packet can be checked too."""
    return struct.pack(">HI", host, number) + PATTERN[number & 255:][:size - 6]


class Switch(unittest.TestCase):
    def fabric(self, *arguments, **more):
        fabric = Fabric(*arguments, **more)
        self.addCleanup(lambda: fabric.process.returncode is None and fabric.close())
        return fabric

    def test_incast_is_trimmed_and_marked(self):
        """Eight senders, one receiver: the senders' links spread their bursts over 40 ms at 200 Mb/s each, so eight times the
        rate of the receiver's port arrives."""
        fabric = self.fabric(9, 'queue = "150kB"\necn_min = "30kB"\necn_max = "100kB"\nlast_hop_ecn = true')
        receiver = fabric.receiver(0)
        senders = [fabric.sender(host, TRIMMABLE) for host in range(1, 9)]
        count, size = 200, 4096
        to, got = (address(0), PORT), []
        for number in range(count):
            for host, sender in enumerate(senders, 1):
                fabric.send(sender, payload(host, number, size), to)
        fabric.collect(receiver, 8 * count, got)
        counters = fabric.settled()
        whole = [p for p in got if p.dscp == TRIMMABLE]
        trimmed = [p for p in got if p.dscp == TRIMMED_LAST_HOP]
        marked = [p for p in whole if p.ecn == CE]
        self.assertEqual(counters["drops_queue"] + counters["drops_memory"], 0, counters)
        self.assertEqual(len(whole) + len(trimmed), 8 * count)
        self.assertEqual(len(trimmed), counters["trims"])
        self.assertEqual(len(marked), counters["ecn_marks"])
        # An eighth of the packets pass untrimmed, and also those in the queue at the end.
        self.assertGreater(len(trimmed), 8 * count // 2)
        self.assertGreater(len(marked), len(whole) // 2)
        seen = set()
        for p in got:
            host, number = struct.unpack(">HI", p.data[:6])
            self.assertEqual(p.source[0], address(host))
            seen.add((host, number))
            expected = payload(host, number, size)
            self.assertEqual(p.data, expected if p.dscp == TRIMMABLE else expected[:KEPT])
        self.assertEqual(len(seen), 8 * count, "nothing was lost without a trace")
        status, last = fabric.close()
        self.assertEqual(status, 0)
        self.assertEqual(last["fabric"]["trims"], len(trimmed))
        self.assertEqual(last["drops_send"] + last["drops_receive"] + last["too_large"], 0, last)

    def test_the_port_keeps_its_rate(self):
        """Twice the port's rate arrives for half a second; 200 Mb/s leave, framing included."""
        fabric = self.fabric(5, 'queue = "1MB"\ntrimming = false')
        receiver = fabric.receiver(0)
        senders = [fabric.sender(host, TRIMMABLE) for host in range(1, 5)]
        size, start, sent, got = 4096, time.monotonic(), 0, []
        on_the_wire = size + 48 + 38
        data = payload(1, 0, size)
        while (elapsed := time.monotonic() - start) < 0.6:
            while sent * on_the_wire * 8 < 2 * RATE * elapsed:
                fabric.send(senders[sent % 4], data, (address(0), PORT))
                sent += 1
            got.extend(take(receiver))
            time.sleep(0.0005)
        counters = fabric.settled()
        fabric.collect(receiver, counters["packets_out"], got)
        self.assertGreater(counters["drops_queue"], 0)
        self.assertEqual(counters["trims"], 0)
        self.assertEqual(len(got), counters["packets_out"])
        # A queue of 40 ms covers pauses of this program. The times in which the queue fills and drains do not count.
        begin, end = got[0].at + 0.05, got[0].at + 0.5
        inside = [p for p in got if begin <= p.at < end]
        rate = len(inside) * on_the_wire * 8 / (end - begin)
        self.assertAlmostEqual(rate / RATE, 1, delta=0.05)

    def test_loss_and_links_that_die(self):
        fabric = self.fabric(2, 'queue = "1MB"', planes=2)
        receivers = [fabric.receiver(1, plane) for plane in range(2)]
        senders = [fabric.sender(0, NO_TRIM, plane=plane) for plane in range(2)]

        def send(count, plane=0):
            before = fabric.counters()["packets_out"]
            for number in range(count):
                fabric.send(senders[plane], payload(0, number, 200), (address(1, plane), PORT))
            return len(fabric.collect(receivers[plane], fabric.settled()["packets_out"] - before, []))

        self.assertEqual(send(100), 100)
        up, down = fabric.link("host 0 -> T0 0 (plane 0)"), fabric.link("T0 0 -> host 1 (plane 0)")
        fabric.ask(f"fault impair id=1 link={up} kind=loss share={1 << 30}")
        arrived = send(1000)
        self.assertTrue(650 < arrived < 850, f"{arrived} of 1000 with a loss of 25 %")
        self.assertEqual(fabric.counters()["drops_fault"], 1000 - arrived)
        fabric.ask("fault heal id=1")
        self.assertEqual(send(200), 200)

        fabric.ask(f"fault link-down link={down} carrier=0")
        self.assertEqual(send(50), 0, "silently lost")
        self.assertEqual(fabric.counters()["drops_down"], 50)
        self.assertEqual(send(50, plane=1), 50, "the other plane knows nothing of it")
        fabric.ask(f"fault link-up link={down} carrier=0")
        self.assertEqual(send(50), 50)

        def carrier():
            inside = ["nsenter", f"--net=/proc/{fabric.namespaces[1].pid}/ns/net"]
            return "NO-CARRIER" not in sh(*inside, "ip", "link", "show", "p1")

        self.assertTrue(carrier())
        fabric.ask(f"fault link-down link={down}")
        self.assertFalse(carrier())
        fabric.ask(f"fault link-up link={down}")
        fabric.wait_for(carrier)
        self.assertEqual(send(50), 50)

        wrong = subprocess.run([WEFT, "lab", "ask", fabric.control, "fault link-down link=99"], capture_output=True,
                               text=True, timeout=SECONDS_MAX)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("no such link", wrong.stderr)

    def test_delay_and_segments_of_the_host(self):
        """A run that the host sends in one piece (UDP_SEGMENT) crosses as single packets. An added delay takes effect."""
        fabric = self.fabric(2, 'queue = "1MB"')
        receiver, sender = fabric.receiver(1), fabric.sender(0, TRIMMABLE)
        udp_segment = 103
        data = b"".join(payload(0, i, 1024) for i in range(16))
        fabric.send(sender, data, (address(1), PORT), [(17, udp_segment, struct.pack("H", 1024))], packets=16)
        counters = fabric.settled()
        self.assertEqual(counters["packets_out"], 16)
        got = fabric.collect(receiver, 16, [])
        self.assertEqual([p.data for p in got], [payload(0, i, 1024) for i in range(16)])

        fabric.ask(f"delay link={fabric.link('T0 0 -> host 1')} us=300000")
        begin = time.time()
        fabric.send(sender, payload(0, 0, 100), (address(1), PORT))
        self.assertGreater(fabric.collect(receiver, 1, [])[0].at - begin, 0.3)

    def test_between_sockets(self):
        """Without namespaces: hosts are loopback addresses, and the switch owns their proxy addresses."""
        sh("ip", "link", "set", "lo", "up")
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('''[topology]
shape = "single"
hosts = 3
host_rate = "200Mbps"
[switch]
queue = "60kB"
[workload]
kind = "incast"
bytes = "1MiB"
''')
            file.flush()
            switch = subprocess.Popen([WEFT, "lab", "switch", file.name, "--sockets"], stdout=subprocess.PIPE, text=True)
            self.addCleanup(switch.communicate)
            self.addCleanup(switch.kill)
            self.assertTrue(json.loads(switch.stdout.readline())["ready"])
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(receiver.close)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        receiver.bind(("127.100.1.1", PORT))
        receiver.settimeout(SECONDS_MAX)
        senders = []
        for host in (1, 2):
            senders.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            self.addCleanup(senders[-1].close)
            senders[-1].setsockopt(socket.IPPROTO_IP, socket.IP_TOS, TRIMMABLE << 2 | ECT0)
            senders[-1].bind((f"127.100.{host + 1}.1", 15104 + host))
        for number in range(60):
            for host, sender in enumerate(senders, 1):
                sender.sendto(payload(host, number, 4000), ("127.100.1.2", PORT))
        whole = trimmed = 0
        for _ in range(120):
            data, extra, _, source = receiver.recvmsg(9200, 64)
            host, number = struct.unpack(">HI", data[:6])
            self.assertEqual(source, (f"127.100.{host + 1}.2", 15104 + host))
            if extra[0][2][0] >> 2 == TRIMMED_LAST_HOP:
                trimmed += 1
                self.assertEqual(data, payload(host, number, 4000)[:KEPT])
            else:
                whole += 1
                self.assertEqual(data[:3996], payload(host, number, 3996))  # the last 4 bytes are in place of the ICRC
        self.assertGreater(trimmed, 10)
        self.assertGreater(whole, 60)
        switch.terminate()
        self.assertEqual(json.loads(switch.communicate(timeout=SECONDS_MAX)[0])["fabric"]["trims"], trimmed)

    def test_idle_costs_nothing(self):
        fabric = self.fabric(2, "")

        def ticks():
            with open(f"/proc/{fabric.process.pid}/stat") as f:
                return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))

        before = ticks()
        time.sleep(1)
        self.assertLessEqual(ticks() - before, 5, "hundredths of a second in one second")

    def test_misuse(self):
        missing = subprocess.run([WEFT, "lab", "switch", "scenarios/incast-64.toml"], capture_output=True, text=True,
                                 timeout=SECONDS_MAX)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("h0p1", missing.stderr)
        self.assertEqual(missing.stderr.count("\n"), 1)
        nobody = subprocess.run([WEFT, "lab", "ask", "/nowhere/at.all", "counters"], capture_output=True, text=True,
                                timeout=SECONDS_MAX)
        self.assertEqual(nobody.returncode, 1)
        self.assertIn("nobody answers", nobody.stderr)


if __name__ == "__main__":
    if INSIDE not in os.environ:
        reenter()
    # Mounts the /proc of this process namespace, so that it shows the processes that are started here.
    sh("mount", "-t", "proc", "proc", "/proc")
    run_tests.main()
