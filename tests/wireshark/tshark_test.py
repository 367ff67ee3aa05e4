"""tools/wireshark/mrc.lua in the real tshark: for whole captures it shows the same as weft itself.

The captures are of simulated runs (--pcap, compared with --trace), of real packets on the loopback of a network
namespace (compared with the counters of `weft bench write`), and of random bytes. dissector_test.cc checks the fields
of single packets.
"""

import collections
import json
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests

WEFT = os.environ["WEFT_BINARY"]
SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/wireshark/mrc.lua"
SECONDS_MAX = 120  # limit of every command, also on a busy machine and under sanitizers
WRITES = {"0xc6", "0xc7", "0xc8", "0xc9", "0xca", "0xcb"}

# Eight hosts send to a ninth through a short queue: trims, NACKs and retransmissions.
INCAST = """description = "incast"
[topology]
shape = "single"
hosts = 9
planes = 2
host_rate = "100Gbps"
[switch]
forwarding = "{forwarding}"
queue = 40_000
[workload]
kind = "incast"
senders = 8
message = "64KiB"
repeat_for = "20us"
[run]
time_limit = "1s"
"""


def tshark(capture, fields, *options):
    """Rows of {field: [values]}; fails on any error of the script."""
    command = ["tshark", "-n", "-X", f"lua_script:{SCRIPT}", "-r", str(capture), "-T", "fields", "-E", "occurrence=a",
               "-E", "aggregator=;"]
    for option in options:
        command += ["-o", option]
    fields = [*fields, "_ws.lua.error"]
    for field in fields:
        command += ["-e", field]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    if ran.returncode != 0 or "Lua" in ran.stderr:
        raise AssertionError(f"tshark: exit {ran.returncode}: {ran.stderr}")
    rows = []
    for line in ran.stdout.splitlines():
        values = line.split("\t")
        row = {f: v.split(";") if v else [] for f, v in zip(fields, values)}
        if row.pop("_ws.lua.error"):
            raise AssertionError(f"an error of the script in frame {len(rows) + 1}")
        rows.append(row)
    return rows


def write_pcap(path, frames):
    """Ethernet frames, as (bytes, length on the wire)."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for at, (frame, length) in enumerate(frames):
            file.write(struct.pack("<IIII", at, 0, len(frame), length) + frame)


class Captures(unittest.TestCase):
    def setUp(self):
        if shutil.which("tshark") is None:
            self.skipTest("tshark is not installed (tools/install-deps test)")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Simulated(Captures):
    def run_incast(self, forwarding):
        scenario, pcap, trace = (self.folder / name for name in ("incast.toml", "run.pcap", "run.json"))
        scenario.write_text(INCAST.format(forwarding=forwarding))
        ran = subprocess.run([WEFT, "sim", "run", scenario, "--json", "--pcap", pcap, "--trace", trace],
                             capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        records = [json.loads(line) for line in trace.read_text().splitlines()]
        return json.loads(ran.stdout), [r for r in records if r["kind"] == "send"], pcap

    def check(self, forwarding):
        result, sent, pcap = self.run_incast(forwarding)
        self.assertGreater(result["trims"], 50)
        rows = tshark(pcap, ["_ws.col.Info", "_ws.col.Protocol", "mrc.ev", "mrc.opcode", "mrc.nack.reason", "mrc.rtx",
                             "mrc.payload.size", "mrc.icrc.status", "mrc.drop", "mrc.srv6.usid"],
                      "mrc.verify_icrc:TRUE", "udp.try_heuristic_first:TRUE")
        self.assertEqual(len(rows), result["packets_sent"])
        # The same packets in the same order, each with the text that weft prints for it.
        self.assertEqual([row["_ws.col.Info"] for row in rows], [[r["packet"]] for r in sent])
        self.assertEqual([int(row["mrc.ev"][0], 16) for row in rows], [r.get("ev", 0) for r in sent])
        self.assertEqual([int(row["mrc.payload.size"][0]) for row in rows], [r.get("size", 0) for r in sent])
        for row in rows:
            self.assertEqual((row["_ws.col.Protocol"], row["mrc.icrc.status"], row["mrc.drop"]), (["MRC"], ["1"], []))
        opcodes = collections.Counter(row["mrc.opcode"][0] for row in rows)
        reasons = collections.Counter(row["mrc.nack.reason"][0] for row in rows if row["mrc.nack.reason"])
        self.assertGreater(opcodes["0xdd"], 50)
        self.assertEqual(sum(reasons.values()), opcodes["0xdd"])
        self.assertLessEqual(set(reasons), {"0x01", "0x02"})
        again = sum(row["mrc.opcode"][0] in WRITES and row["mrc.rtx"] in (["1"], ["True"]) for row in rows)
        self.assertEqual(again, result["retransmits"])
        return rows

    def test_hashed_forwarding(self):
        for row in self.check("hashed"):
            self.assertEqual(row["mrc.srv6.usid"], [])

    def test_stev_forwarding(self):
        self.check("stev")

    def test_srv6_forwarding(self):
        for row in self.check("srv6"):
            self.assertEqual(len(row["mrc.srv6.usid"]), 2)  # the switch, the host

    def test_each_filter_finds_its_packets(self):
        _, sent, pcap = self.run_incast("srv6")
        for text, wanted in (("mrc.sack.cack == {}", "SACK"), ("mrc.nack.psn == {}", "NACK")):
            line = next(r["packet"] for r in sent if r["packet"].startswith(wanted + " "))
            psn = line.split(" psn=")[1].split()[0]
            ran = subprocess.run(["tshark", "-n", "-X", f"lua_script:{SCRIPT}", "-r", pcap, "-Y", text.format(psn)],
                                 capture_output=True, text=True, timeout=SECONDS_MAX)
            expected = sum(r["packet"].startswith(wanted + " ") and f" psn={psn} " in r["packet"] for r in sent)
            self.assertEqual(len(ran.stdout.splitlines()), expected, ran.stderr)
            self.assertGreater(expected, 0)


def ethernet(payload, port=4791, source=0xabcd, version=6, dscp=4):
    """An Ethernet frame with these bytes behind UDP."""
    udp = struct.pack(">HHHH", source, port, 8 + len(payload), 0) + payload
    if version == 6:
        return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28 | dscp << 22, len(udp), 17, 64) \
            + socket.inet_pton(socket.AF_INET6, "fd00::1") + socket.inet_pton(socket.AF_INET6, "fd00::2") + udp
    return bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, dscp << 2, 20 + len(udp), 0, 0, 64, 17, 0) \
        + bytes([127, 0, 1, 1, 127, 0, 2, 1]) + udp


class RandomBytes(Captures):
    FIELDS = ["frame.protocols", "mrc.drop", "mrc.expert.cut", "_ws.col.Info"]

    def test_random_bytes_give_no_script_error(self):
        draw = random.Random(7)
        opcodes = [0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xd1, 0xd8, 0xd9, 0xdc, 0xdd, 0xde, 0x57, 0x04, 0xff]
        frames = []
        for _ in range(4000):
            payload = bytearray(draw.randbytes(draw.choice([1, 2, 11, 12, 13, 16, 27, 28, 48, 52, 84, 200, 5000])))
            if draw.random() < 0.8:
                payload[0] = draw.choice(opcodes)
            if payload[0] == 0x57 and draw.random() < 0.5:
                payload[:4] = b"WEFT"
            frame = ethernet(bytes(payload), port=draw.choice([4791, 4971, 14792, 15046]),
                             version=draw.choice([4, 6]), dscp=draw.choice([0, 4, 12, 16, 46]))
            frames.append((frame, len(frame)))
        capture = self.folder / "random.pcap"
        write_pcap(capture, frames)
        for secured in ("TRUE", "FALSE"):
            rows = tshark(capture, self.FIELDS, "mrc.verify_icrc:TRUE", f"mrc.secured:{secured}")
            self.assertEqual(len(rows), len(frames))
            shown = sum(row["frame.protocols"][0].endswith(":mrc") for row in rows)
            self.assertGreater(shown, len(rows) * 0.7)
            self.assertGreater(sum(bool(row["mrc.drop"]) for row in rows), 500)

    def test_captures_with_a_snap_length(self):
        """A capture with a snap length holds only the beginning of each packet, and must not report it as too short."""
        draw = random.Random(8)
        frames = []
        for cut in range(55, 160):
            frame = ethernet(bytes([draw.choice([0xc7, 0xcb, 0xdc, 0xd9])]) + b"\x00\xff\xff" + draw.randbytes(300))
            frames.append((frame[:cut], len(frame)))
        capture = self.folder / "cut.pcap"
        write_pcap(capture, frames)
        rows = tshark(capture, self.FIELDS, "mrc.verify_icrc:TRUE")
        self.assertEqual(len(rows), len(frames))
        for row in rows[8:]:  # the UDP header is captured
            self.assertEqual(row["mrc.drop"], [], row)
            self.assertEqual(len(row["mrc.expert.cut"]), 1, row)

    def test_roce_packets_are_left_to_its_dissector(self):
        send_only = b"\x04\x00\xff\xff" + bytes([0, 0, 0, 17]) + bytes([0x80, 0, 0, 1]) + bytes(68)
        frame = ethernet(send_only)
        capture = self.folder / "roce.pcap"
        write_pcap(capture, [(frame, len(frame))])
        [row] = tshark(capture, ["frame.protocols"])
        self.assertIn("infiniband", row["frame.protocols"][0])
        [row] = tshark(capture, ["frame.protocols", "mrc.drop"], "mrc.roce:FALSE")
        self.assertEqual((row["frame.protocols"][0].split(":")[-1], row["mrc.drop"]), ("mrc", ["bad_opcode"]))


def capture_bench(capture, words):
    """Runs `weft bench write` on the loopback of a network namespace; returns the captured packets and weft's
    report."""
    # Packets of one path that leave together are one send; the kernel must cut it before the capture sees it.
    singly = ["gso_max_segs", "1"] if "--burst" in words else []
    subprocess.run(["ip", "link", "set", "lo", "up", *singly], check=True)
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS, PACKET_HOST = 33, 263, 6, 0
    try:
        tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    except PermissionError:  # in a user namespace
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    tap.bind(("lo", 0))
    tap.settimeout(0.2)
    frames, done = [], threading.Event()

    def listen():
        while True:
            try:
                frame, address = tap.recvfrom(70000)
            except TimeoutError:
                if done.is_set():
                    return
                continue
            if address[2] == PACKET_HOST:  # not the outgoing copy of the same packet
                frames.append((frame, len(frame)))

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        ran = subprocess.run([WEFT, "bench", "write", "--no-shm", "--json", *words], capture_output=True, text=True,
                             timeout=SECONDS_MAX)
    finally:
        done.set()
        listener.join()
    missed = struct.unpack("II", tap.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
    write_pcap(capture, frames)
    print(json.dumps({"missed": missed, "exit": ran.returncode, "stderr": ran.stderr, "result": ran.stdout}))


class RealPackets(Captures):
    """IPv4, ports of several processes, ICRCs over headers only, and runs of packets that GSO keeps together."""

    def bench(self, *words):
        enter = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
        if subprocess.run([*enter, "true"], capture_output=True).returncode != 0:
            self.skipTest("no network namespace can be made here")
        capture = self.folder / "bench.pcap"
        ran = subprocess.run([*enter, sys.executable, __file__, "capture", str(capture), *words], capture_output=True,
                             text=True, timeout=2 * SECONDS_MAX)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        said = json.loads(ran.stdout)
        self.assertEqual(said["exit"], 0, said["stderr"])
        if said["missed"]:
            self.skipTest(f"{said['missed']} packets found no room in the capture's buffer (raise net.core.rmem_max)")
        return capture, json.loads(said["result"])["counters"]

    FIELDS = ["mrc.opcode", "mrc.icrc.status", "mrc.psn", "mrc.dqp", "mrc.drop", "mrc.sealed", "mrc.sealed.counter",
              "mrc.hello.from_qpn", "udp.dstport"]

    def plain(self, *words):
        capture, counters = self.bench("--size", "100KiB", "--size", "100", "--iterations", "20", *words)
        rows = [row for row in tshark(capture, self.FIELDS, "mrc.verify_icrc:TRUE") if row["mrc.opcode"]]
        writes = [row for row in rows if row["mrc.opcode"][0] in WRITES]
        self.assertEqual(sum(len(row["mrc.opcode"]) for row in writes), counters["transport.data_packets"])
        to = {row["udp.dstport"][0] for row in writes}
        self.assertEqual(len(to), 1)
        outward = sum(len(row["mrc.opcode"]) for row in rows if row["udp.dstport"][0] in to)
        self.assertGreaterEqual(outward, counters["net.packets_sent"])  # plus a last acknowledgement
        psns = sorted({int(psn) for row in writes for psn in row["mrc.psn"]})
        self.assertEqual(psns, list(range(psns[0], psns[0] + len(psns))))
        for row in rows:
            self.assertEqual(row["mrc.drop"], [])
            # A control packet consists only of headers, so status 2 covers it completely.
            good = "2" if row["mrc.opcode"][0] in WRITES else "1"
            self.assertEqual(set(row["mrc.icrc.status"]), {good}, row)
        return writes

    def test_single_packets(self):
        for row in self.plain("--burst", "1"):
            self.assertEqual(len(row["mrc.opcode"]), 1)

    def test_runs_are_split(self):
        self.assertGreater(max(len(row["mrc.opcode"]) for row in self.plain()), 2)

    def test_secured_packets(self):
        secret = self.folder / "secret"
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        capture, counters = self.bench("--size", "10KiB", "--iterations", "20", "--burst", "1", "--secret-file",
                                       str(secret))
        rows = tshark(capture, self.FIELDS, "mrc.secured:TRUE")
        self.assertGreaterEqual(sum(bool(row["mrc.hello.from_qpn"]) for row in rows), 2)
        writes = [row for row in rows if row["mrc.opcode"] and row["mrc.opcode"][0] in WRITES]
        # 20 messages of three packets. Packets before the keys exist are not sent.
        self.assertLessEqual(len(writes), counters["transport.data_packets"])
        psns = sorted({int(row["mrc.psn"][0]) for row in writes})
        self.assertEqual(psns, list(range(psns[0], psns[0] + 60)))
        numbers = [int(row["mrc.sealed.counter"][0]) for row in writes]
        self.assertEqual(len(set(numbers)), len(numbers))
        self.assertLess(max(numbers), counters["net.packets_sent"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["capture"]:
        capture_bench(sys.argv[2], sys.argv[3:])
    else:
        run_tests.main()
