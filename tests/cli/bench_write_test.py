"""`weft bench write`: real bytes between two processes over the loopback."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest

WEFT = os.environ["WEFT_BINARY"]
BENCH = [WEFT, "bench", "write", "--no-shm"]  # over shared memory: bench_shm_test.py
SECONDS_MAX = 90  # of anything here, also on a busy machine and under sanitizers


def run(*words):
    return subprocess.run([*BENCH, *words], capture_output=True, text=True, timeout=SECONDS_MAX)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


class OneHost(unittest.TestCase):
    def rows(self, *words):
        ran = run(*words, "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual(result["counters"].get("transport.unbalanced", 0), 0)
        return result["rows"]

    def test_bandwidth(self):
        rows = self.rows("--size", "1", "--size", "5000", "--size", "1MiB", "--iterations", "50", "--qps", "3")
        self.assertEqual([row["bytes"] for row in rows], [1, 5000, 1 << 20])
        for row in rows:
            self.assertEqual(row["iterations"], 50)
            self.assertGreater(row["gbps"], 0)

    def test_both_directions(self):
        for row in self.rows("--bidirectional", "--size", "64KiB", "--size", "1MiB", "--iterations", "40"):
            self.assertGreater(row["gbps"], 0)

    def test_latency(self):
        [row] = self.rows("--latency", "--size", "8", "--iterations", "100")
        self.assertLessEqual(row["min_us"], row["p50_us"])
        self.assertLessEqual(row["p50_us"], row["max_us"])

    def test_single_packets_and_other_mtus(self):
        self.rows("--burst", "1", "--size", "100KiB", "--iterations", "20")
        self.rows("--mtu", "1024", "--size", "100KiB", "--iterations", "20")

    def test_misuse_is_one_line(self):
        for words in (["--size", "0"], ["--size", "2GiB"], ["--size", "abc"], ["--qps", "0"], ["--mtu", "5"],
                      ["--iterations", "0"], ["--listen", "somewhere"], ["--latency", "--bidirectional"],
                      ["--planes", "300.1.1.1"]):
            ran = run(*words)
            self.assertEqual(ran.returncode, 2, words)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)


class TwoProcesses(unittest.TestCase):
    def setUp(self):
        self.port = free_port()
        self.listener = subprocess.Popen([*BENCH, "--listen", "--port", self.port], stderr=subprocess.PIPE, text=True)
        self.listener.stderr.readline()  # it waits

    def tearDown(self):
        self.listener.kill()
        self.listener.wait()
        self.listener.stderr.close()

    def test_the_one_that_calls_says_what_is_measured(self):
        ran = run("127.0.0.1", "--port", self.port, "--size", "64KiB", "--iterations", "50", "--qps", "2",
                  "--bidirectional", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.listener.wait(timeout=SECONDS_MAX), 0)

    def test_a_killed_end_is_noticed(self):
        client = subprocess.Popen([*BENCH, "127.0.0.1", "--port", self.port, "--size", "1MiB", "--iterations", "1000000"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        self.assertIsNone(client.poll())
        self.listener.send_signal(signal.SIGKILL)
        _, said = client.communicate(timeout=SECONDS_MAX)
        self.assertEqual(client.returncode, 1, said)
        self.assertIn("does not answer", said)

    def test_strangers_on_the_stream_are_sent_away(self):
        with socket.create_connection(("127.0.0.1", int(self.port))) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n" + b"x" * 400)
            self.assertEqual(self.listener.wait(timeout=SECONDS_MAX), 1)


class Secured(unittest.TestCase):
    """With a job secret in a file."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.secret = self.write("secret", os.urandom(32))
        self.other = self.write("other", os.urandom(32))

    def write(self, name, content, mode=0o600):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as f:
            f.write(content)
        os.chmod(path, mode)
        return path

    def listen(self, *words):
        port = free_port()
        listener = subprocess.Popen([*BENCH, "--listen", "--port", port, *words], stderr=subprocess.PIPE, text=True)
        self.addCleanup(listener.stderr.close)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        listener.stderr.readline()  # it waits
        return port, listener

    def test_both_ends_here(self):
        ran = run("--secret-file", self.secret, "--bidirectional", "--size", "1", "--size", "1MiB", "--iterations", "40",
                  "--qps", "3", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        self.assertGreater(result["counters"]["net.hellos_sent"], 0)
        self.assertNotIn("net.drop_forged", result["counters"])
        ran = run("--secret-file", self.secret, "--latency", "--size", "8", "--iterations", "50")
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_two_processes_and_the_environment(self):
        port, listener = self.listen("--secret-file", self.secret)
        ran = subprocess.run([*BENCH, "127.0.0.1", "--port", port, "--size", "64KiB", "--iterations", "20"],
                             capture_output=True, text=True, timeout=SECONDS_MAX,
                             env={**os.environ, "WEFT_SECRET_FILE": self.secret})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(listener.wait(timeout=SECONDS_MAX), 0)

    def test_ends_that_disagree_are_told_in_one_line_each(self):
        for here, there in ((self.secret, None), (None, self.secret), (self.secret, self.other)):
            port, listener = self.listen(*(["--secret-file", here] if here else []))
            ran = run("127.0.0.1", "--port", port, "--qps", "4", *(["--secret-file", there] if there else []))
            self.assertEqual(ran.returncode, 2, ran.stderr)
            listener.wait(timeout=SECONDS_MAX)
            for said in (ran.stderr, listener.stderr.read()):
                self.assertEqual(len(said.strip().splitlines()), 1, said)
                self.assertIn("--secret-file", said)

    def test_files_that_will_not_do(self):
        for path, word in ((self.write("open", bytes(32), 0o644), "chmod 600"),
                           (self.write("group", bytes(32), 0o640), "chmod 600"),
                           (self.write("short", bytes(31)), "found 31"),
                           (self.write("long", bytes(4097)), "more than 4096"),
                           (os.path.join(self.folder.name, "none"), "No such file"),
                           (self.folder.name, "not a file")):
            ran = run("--secret-file", path)
            self.assertEqual(ran.returncode, 2, path)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
            self.assertIn(word, ran.stderr)

    def test_a_killed_end_is_noticed_and_another_takes_its_place(self):
        port, listener = self.listen("--secret-file", self.secret)
        client = subprocess.Popen([*BENCH, "127.0.0.1", "--port", port, "--size", "1MiB", "--iterations", "1000000",
                                   "--secret-file", self.secret],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.kill)
        time.sleep(1)
        self.assertIsNone(client.poll())
        listener.send_signal(signal.SIGKILL)
        # Its slot is free at once: the next listener has it, and the first client's packets come there.
        port, _ = self.listen("--secret-file", self.secret)
        ran = run("127.0.0.1", "--port", port, "--size", "64KiB", "--iterations", "20", "--secret-file", self.secret)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        _, said = client.communicate(timeout=SECONDS_MAX)
        self.assertEqual(client.returncode, 1, said)
        self.assertIn("does not answer", said)


class Nobody(unittest.TestCase):
    def test_nobody_listens(self):
        ran = run("127.0.0.1", "--port", free_port())
        self.assertEqual(ran.returncode, 1)
        self.assertIn("--listen", ran.stderr)


if __name__ == "__main__":
    unittest.main()
