"""MRC's own form of SRv6, IPv6 in IPv6, through the kernel's uSID routes: checksum offloads are off, as if veth were a NIC.

Skipped where there can be no lab, or no raw sockets."""

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import clean_environment  # the import itself changes the environment
from lab_hosts import BASE, SCENARIO, SECONDS_MAX, SPINES, WEFT, carrier, own_namespaces, reason_to_skip, wait_until, weft
import run_tests

HERE, THERE = 0, 2  # hosts under different leaves
PLANES = 2

# Program for a host: writes frames with IPv6 in IPv6 to a pcap file until stdin ends.
CAPTURE = r"""
import select, socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL: sent frames too
s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
s.bind(("p1", 3))
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
    print("ready", flush=True)
    for _ in range(200000):
        ready = select.select([s, sys.stdin], [], [])[0]
        if sys.stdin in ready:
            break
        frame = s.recv(65535)
        if frame[12:14] == b"\x86\xdd" and frame[20] == 41:
            out.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
"""


def frames_of(path):
    with open(path, "rb") as f:
        data = f.read()[24:]
    while data:
        size = struct.unpack("<IIII", data[:16])[2]
        yield data[16:16 + size]
        data = data[16 + size:]


def ipv6(header):
    word, size, after, hops = struct.unpack("!IHBB", header[:8])
    return {"class": word >> 20 & 0xff, "label": word & 0xfffff, "size": size, "next": after, "hops": hops,
            "source": socket.inet_ntop(socket.AF_INET6, header[8:24]),
            "to": socket.inet_ntop(socket.AF_INET6, header[24:40])}


class Srv6Form(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.name = f"{BASE}-srv6"
        weft("up", SCENARIO, "--name", cls.name, "--mtu", "9000")
        cls.addClassCleanup(weft, "down", "--name", cls.name)
        for host in (HERE, THERE):
            for plane in range(PLANES):
                ran = subprocess.run(cls.command(host, "ethtool", "-K", f"p{plane + 1}", "tx", "off", "rx", "off"),
                                     capture_output=True, text=True)
                if ran.returncode != 0:
                    raise unittest.SkipTest(f"ethtool cannot switch checksum offload off here: {ran.stderr.strip()}")

    @classmethod
    def command(cls, host, *words):
        return [WEFT, "lab", "exec", "--name", cls.name, "host", str(host), "--", *words]

    def bench(self, host, *words, before=()):
        return self.command(host, *before, WEFT, "bench", "write", "--fabric", SCENARIO, "--fabric-host", str(host),
                            *words)

    def listen(self, *words):
        listener = subprocess.Popen(self.bench(THERE, "--listen", *words), stderr=subprocess.PIPE, text=True)
        self.addCleanup(listener.stderr.close)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.assertIn("waiting", listener.stderr.readline())
        return listener

    def run_both(self, here=(), there=(), iterations=20):
        listener = self.listen(*there)
        ran = subprocess.run(self.bench(HERE, f"fd00:1::{THERE + 1}", "--size", "1MiB", "--iterations", str(iterations),
                                        "--bidirectional", *here),
                             capture_output=True, text=True, timeout=SECONDS_MAX)
        return ran.returncode, ran.stderr, listener.wait(timeout=SECONDS_MAX), listener.stderr.read()

    def test_carries_writes_over_every_path_and_looks_as_it_should(self):
        folder = tempfile.mkdtemp(prefix="weft-srv6-")
        self.addCleanup(shutil.rmtree, folder)
        capture = os.path.join(folder, "capture.pcap")
        catcher = subprocess.Popen(self.command(HERE, sys.executable, "-c", CAPTURE, capture), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(catcher.stdout.close)
        self.addCleanup(catcher.wait)
        self.addCleanup(catcher.kill)
        self.assertEqual(catcher.stdout.readline(), "ready\n")
        words = ["--srv6", "mrc"]
        here, said, there, other = self.run_both(words, words, iterations=4)
        catcher.communicate(timeout=SECONDS_MAX)
        self.assertEqual((here, there), (0, 0), said + other)
        self.assertIn("4096 bytes a packet", said)
        ways, data = set(), 0
        for frame in frames_of(capture):
            outer, inner, udp = ipv6(frame[14:54]), ipv6(frame[54:94]), struct.unpack("!HHHH", frame[94:102])
            if outer["source"] != f"fd00:1::{HERE + 1}":
                continue
            ways.add(outer["to"])
            data += 1
            for name in ("source", "class", "label", "hops"):
                self.assertEqual(outer[name], inner[name], name)
            self.assertEqual((outer["next"], inner["next"]), (41, 17))
            self.assertEqual(inner["to"], f"fd00:1::{THERE + 1}")
            self.assertEqual((outer["size"], inner["size"]), (len(frame) - 54, len(frame) - 94))
            self.assertEqual((udp[1], udp[2], udp[3]), (4791, inner["size"], 0))
        self.assertGreater(data, 300)  # of 512 per direction in this plane; the capture may lose some
        # The kernel may run the first switch before the capture, so that its uSID is already removed.
        self.assertEqual({tuple(way.rstrip(":").split(":")[-3:]) for way in ways},
                         {tuple(carrier(0, HERE, THERE, spine).rstrip(":").split(":")[-3:]) for spine in range(SPINES)})
        if not shutil.which("tshark"):
            print("tshark is not installed: the capture is looked at by this test alone")
            return
        shown = subprocess.run(["tshark", "-X", "lua_script:tools/wireshark/mrc.lua", "-o", "mrc.verify_icrc:TRUE", "-r",
                                capture, "-c", "400", "-T", "fields", "-e", "mrc.opcode", "-e", "mrc.icrc.status"],
                               capture_output=True, text=True, timeout=SECONDS_MAX)
        rows = [tuple(line.split("\t")) for line in shown.stdout.splitlines()]
        self.assertEqual(len(rows), 400, shown.stderr)
        self.assertEqual([row for row in rows if not row[0]], [], "frames that are no MRC to Wireshark")
        self.assertEqual({row[1] for row in rows}, {"1"}, "an ICRC that does not hold, or leaves the payload out")

    def test_by_carrier_nothing_arrives_here(self):
        # MRC's form is needed: over the same links no packet of the carrier form arrives.
        words = ["--srv6", "carrier"]
        listener = self.listen(*words)
        client = subprocess.Popen(self.bench(HERE, f"fd00:1::{THERE + 1}", "--size", "1MiB", "--iterations", "20",
                                             *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)

        def dropped():
            table = subprocess.run(self.command(THERE, "cat", "/proc/net/snmp6"), capture_output=True, text=True)
            return int(table.stdout.split("Udp6InCsumErrors")[1].split()[0])
        wait_until(lambda: dropped() > 0, "carriers are not dropped: are checksums looked at?")
        self.assertIsNone(listener.poll())

    def test_sealed_packets_too(self):
        with tempfile.NamedTemporaryFile() as secret:
            secret.write(os.urandom(32))
            secret.flush()
            words = ["--srv6", "mrc", "--secret-file", secret.name]
            here, said, there, other = self.run_both(words, words)
        self.assertEqual((here, there), (0, 0), said + other)

    def test_both_ends_must_agree(self):
        here, said, there, other = self.run_both(["--srv6", "mrc"], ["--srv6", "carrier"])
        self.assertEqual((here, there), (2, 2), said + other)
        for text in (said, other):
            self.assertIn("give both the same --srv6", text.strip().splitlines()[-1])

    def test_a_killed_end_is_noticed(self):
        words = ["--srv6", "mrc"]
        listener = self.listen(*words)
        client = subprocess.Popen(self.bench(HERE, f"fd00:1::{THERE + 1}", "--size", "1MiB", "--iterations", "1000000",
                                             *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        while "over UDP" not in (line := client.stderr.readline()):
            self.assertNotEqual(line, "")
        time.sleep(0.5)
        # `weft lab exec` is the parent of the program, so every process in the host's namespace is killed.
        name = f"weft.{self.name}.h{THERE}"
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        self.assertTrue(pids)
        for pid in pids:
            os.kill(int(pid), 9)
        listener.wait(timeout=SECONDS_MAX)
        # Without the ICMP refusal this would take 17 s.
        _, said = client.communicate(timeout=12)
        self.assertEqual(client.returncode, 1, said)
        self.assertIn("does not answer", said)

    def test_without_the_privilege_it_says_so_in_a_line(self):
        drop = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
        if subprocess.run(self.command(HERE, *drop, "true"), capture_output=True).returncode != 0:
            self.skipTest("setpriv cannot drop a capability here")
        ran = subprocess.run(self.bench(HERE, f"fd00:1::{THERE + 1}", "--srv6", "mrc", before=drop), capture_output=True,
                             text=True, timeout=SECONDS_MAX)
        # The TCP connection failed first, because nothing listened; so start a listener and retry.
        if "CAP_NET_RAW" not in ran.stderr:
            listener = self.listen("--srv6", "mrc")
            ran = subprocess.run(self.bench(HERE, f"fd00:1::{THERE + 1}", "--srv6", "mrc", before=drop),
                                 capture_output=True, text=True, timeout=SECONDS_MAX)
            listener.kill()
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("needs CAP_NET_RAW", ran.stderr.strip().splitlines()[-1])


if __name__ == "__main__":
    root = os.geteuid() == 0
    if reason := reason_to_skip() if root else "raw sockets and network namespaces need root":
        run_tests.skip_file(reason)
    run_tests.main(verbosity=2, after=lambda: wait_until(lambda: not own_namespaces(), "something is left over"))
