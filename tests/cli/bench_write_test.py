"""`weft bench write`: real bytes between two processes over the loopback."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import bench_write
from bench_write import SECONDS_MAX, WEFT, free_port
import run_tests

BENCH = [WEFT, "bench", "write", "--no-shm"]  # over shared memory: bench_shm_test.py
DEATH_SECONDS_MAX = 8  # until a killed end is detected: 1 on an idle machine, 17 by silence only


def run(*words, env=None):
    return bench_write.run(BENCH, *words, env=env)


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
        self.assertEqual([row["bytes"] for row in self.rows("--size", "64,4KiB", "--iterations", "2")], [64, 4096])
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
        [row] = self.rows("--latency", "--completions", "--size", "8", "--iterations", "100")
        self.assertEqual(row["iterations"], 100)

    def test_single_packets_and_every_mtu_work(self):
        self.rows("--burst", "1", "--size", "100KiB", "--iterations", "20")
        self.rows("--mtu", "1024", "--size", "100KiB", "--iterations", "20")

    def test_a_word_after_the_size_is_the_host(self):
        ran = run("--size", "64", "127.0.0.1", "--port", free_port())
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("127.0.0.1: nobody listens", ran.stderr)

    def test_a_second_size_word_is_refused(self):
        for words in (["--size", "4KiB", "64KiB"], ["--size", "64,", "1MB"], ["--size", "64", "4096", "65536"], ["64KiB"]):
            ran = run(*words)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
            self.assertIn("is a size, and a host was expected; sizes are one word with commas, as --size 4KiB,64KiB",
                          ran.stderr)

    def test_help_shows_sizes_with_commas(self):
        self.assertIn(" --size SIZE[,SIZE]... ", run("--help").stdout)

    def test_misuse_gives_one_line(self):
        for words in (["--size", "0"], ["--size", "2GiB"], ["--size", "abc"], ["--qps", "0"], ["--mtu", "5"],
                      ["--iterations", "0"], ["--listen", "somewhere"], ["--latency", "--bidirectional"],
                      ["--completions"],
                      ["--planes", "300.1.1.1"], ["--planes", "0.0.0.0"], ["--planes", "127.0.1.1,224.0.0.1"],
                      ["--planes", "255.255.255.255"], ["--planes", "::"], ["--planes", "ff02::1"], ["--self", "--shm"], [""],
                      ["--config", ""], ["--secret-file", ""], ["--idle", ""], ["--idle", "0s"], ["--fabric", ""],
                      ["--fabric-host", "1"], ["--listen", "--evs", "65"],
                      ["--listen", "--planes", "127.0.1.1,127.0.1.1"]):
            ran = run(*words)
            self.assertEqual(ran.returncode, 2, words)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)

    def test_a_host_outside_the_fabric_is_refused(self):
        ran = run("--fabric", "scenarios/one-qp.toml", "--fabric-host", "99")
        self.assertEqual((ran.returncode, ran.stderr),
                         (2, "weft: --fabric-host 99: expected a host of scenarios/one-qp.toml, 0 to 15\n"))

    def test_a_listener_refuses_options_of_the_measurement(self):
        for words in (["--size", "64"], ["--latency"], ["--bidirectional"], ["--iterations", "5"], ["--seconds", "1"],
                      ["--qps", "2"], ["--idle", "1s"]):
            ran = run("--listen", *words)
            self.assertEqual(ran.returncode, 2, words)
            self.assertIn(f"{words[0]} is for the end that calls", ran.stderr)


class Settings(unittest.TestCase):
    """A flag wins over the environment, the environment over the file, the file over the default; mistakes are
    reported."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.config = os.path.join(self.folder.name, "weft.toml")

    def run_with(self, text, *words, **environment):
        with open(self.config, "w") as f:
            f.write(text)
        return subprocess.run([*BENCH, "--size", "64KiB", "--iterations", "5", *words], capture_output=True, text=True,
                              timeout=SECONDS_MAX, env={**os.environ, "WEFT_CONFIG": self.config, **environment})

    def test_flag_wins_over_environment_over_file(self):
        file = '[net]\nplanes = ["127.0.7.1"]\nmtu = 2048\n'
        ran = self.run_with(file)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("planes: 127.0.7.1 (lo)\n", ran.stderr)
        self.assertIn("1 plane, 2048 bytes", ran.stderr)
        ran = self.run_with(file, WEFT_PLANES="127.0.7.1,127.0.8.1", WEFT_MTU="1024")
        self.assertIn("planes: 127.0.7.1 (lo), 127.0.8.1 (lo)\n", ran.stderr)
        self.assertIn("2 planes, 1024 bytes", ran.stderr)
        ran = self.run_with(file, "--mtu", "4096", "--ifname", "lo", WEFT_PLANES="127.0.8.1", WEFT_MTU="1024")
        self.assertIn("planes: 127.0.0.1 (lo)\n", ran.stderr)
        self.assertIn("1 plane, 4096 bytes", ran.stderr)

    def test_the_config_flag_wins_over_the_variable(self):
        other = os.path.join(self.folder.name, "other.toml")
        with open(other, "w") as f:
            f.write("[net]\nmtu = 1024\n")
        ran = self.run_with("[net]\nmtu = 2048\n", "--config", other)
        self.assertIn("1024 bytes a packet", ran.stderr)

    def test_the_file_in_the_home_directory_is_used(self):
        os.mkdir(os.path.join(self.folder.name, "weft"))
        with open(os.path.join(self.folder.name, "weft", "config.toml"), "w") as f:
            f.write("[net]\nmtu = 1024\n")
        ran = self.run_with("", WEFT_CONFIG="", XDG_CONFIG_HOME=self.folder.name)
        self.assertIn("1024 bytes a packet", ran.stderr)

    def test_a_dangling_link_is_an_error_and_an_unreadable_folder_a_warning(self):
        os.mkdir(os.path.join(self.folder.name, "weft"))
        os.symlink("/nosuch.toml", os.path.join(self.folder.name, "weft", "config.toml"))
        ran = self.run_with("", WEFT_CONFIG="", XDG_CONFIG_HOME=self.folder.name)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertIn("weft/config.toml: cannot be read: No such file", ran.stderr)
        if os.geteuid() != 0:
            return
        with tempfile.TemporaryDirectory() as theirs:  # another user may have no access to the build folder
            os.chmod(theirs, 0o755)
            program = shutil.copy(WEFT, theirs)
            ran = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", program, *BENCH[1:], "--size", "64",
                                  "--iterations", "5"],
                                 env={**os.environ, "WEFT_CONFIG": "", "XDG_CONFIG_HOME": self.folder.name},
                                 capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("weft/config.toml are not used: Permission denied", ran.stderr)

    def test_mistakes_give_one_line_with_their_position(self):
        for text, environment, words, said in (
                ("[net]\nmtu = 1500\n", {}, [], f"{self.config}:2:7: mtu = 1500: expected 1024, 2048, 4096 or auto"),
                ("[net]\nmut = 1024\n", {}, [], f"{self.config}:2:1: mut is not a setting; did you mean mtu?"),
                ("[net\n", {}, [], f"{self.config}:1:5: not TOML"),
                ("a." * 100_000 + "b = 1\n", {}, [], f"{self.config}:1:2002: a key of more than 1000 parts"),
                ("", {"WEFT_LOG": "loud"}, [], "WEFT_LOG=loud: expected error, warn, info or debug"),
                ("", {}, ["--rate", "fast"], "--rate fast: expected a rate"),
                ("", {}, ["--ifname", "nosuch"], "nosuch: no interface of that name"),
                ("", {}, ["--planes", "127.0.1.1", "--ifname", "lo"], "exclude each other"),
                ("", {}, ["--config", "/nosuch.toml"], "/nosuch.toml: cannot be read: No such file")):
            ran = self.run_with(text, *words, **environment)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
            self.assertIn(said, ran.stderr)

    def test_the_log_names_the_chosen_link_and_buffers(self):
        self.assertNotIn("info:", self.run_with("").stderr)
        said = self.run_with("", WEFT_LOG="info").stderr
        for words in ("weft: info: ", "slot ", "receive buffers of", "no shared memory: it is switched off",
                      "is connected to QP"):
            self.assertIn(words, said)

    def test_the_rate_limit_is_not_exceeded(self):
        ran = self.run_with('[net]\nrate = "40Mbps"\n', "--size", "4MiB", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        # Five messages of 4 MiB: the initial content of the token bucket is 1/2000 of them.
        self.assertLess(json.loads(ran.stdout)["rows"][1]["gbps"], 0.041)


class Interrupted(unittest.TestCase):
    """After Ctrl-C and SIGTERM the measured results are printed, and no process is left."""

    def start(self, *words, **options):
        bench = subprocess.Popen([WEFT, "bench", "write", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, **options)
        self.addCleanup(bench.stdout.close)
        self.addCleanup(bench.stderr.close)
        self.addCleanup(bench.wait)
        self.addCleanup(bench.kill)
        return bench

    def wait_for(self, bench, words):
        for line in bench.stderr:
            if words in line:
                return
        self.fail(f"it never said: {words}")

    def children(self, bench):
        with open(f"/proc/{bench.pid}/task/{bench.pid}/children") as f:
            return [int(word) for word in f.read().split()]

    def is_gone(self, pid):
        for _ in range(100):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return True
            except FileNotFoundError:
                return True
            time.sleep(0.1)
        return False

    def test_an_interrupted_run_prints_its_results_and_ends_its_child(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for words in (["--no-shm"], ["--no-shm", "--bidirectional"], ["--no-shm", "--latency"], ["--bidirectional"]):
                bench = self.start(*words, "--size", "64KiB", "--iterations", "1000000000", "--json")
                self.wait_for(bench, "over ")
                [child] = self.children(bench)
                time.sleep(0.5)
                bench.send_signal(number)
                out, said = bench.communicate(timeout=SECONDS_MAX)
                self.assertEqual(bench.returncode, 128 + number, said)
                self.assertIn("weft: interrupted", said)
                result = json.loads(out)
                self.assertTrue(result["interrupted"])
                self.assertGreater(result["rows"][0]["iterations"], 0, words)
                self.assertTrue(self.is_gone(child))

    def test_a_closed_terminal_ends_the_parent_and_its_child(self):
        # The terminal signals both processes; the child must not report the interruption.
        bench = self.start("--no-shm", "--size", "64KiB", "--iterations", "1000000000", start_new_session=True,
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.wait_for(bench, "over ")
        [child] = self.children(bench)
        time.sleep(0.5)
        os.kill(child, signal.SIGHUP)
        time.sleep(0.5)
        self.assertIsNone(bench.poll())
        os.killpg(bench.pid, signal.SIGHUP)
        _, said = bench.communicate(timeout=SECONDS_MAX)
        self.assertEqual(bench.returncode, 128 + signal.SIGHUP, said)
        self.assertIn("weft: interrupted", said)

    def test_a_killed_child_is_reported(self):
        bench = self.start("--no-shm", "--size", "64KiB", "--iterations", "1000000000")
        self.wait_for(bench, "over ")
        [child] = self.children(bench)
        os.kill(child, signal.SIGKILL)
        self.assertEqual(bench.wait(timeout=SECONDS_MAX), 1)
        self.assertRegex(bench.stderr.read(), "does not answer|the other end")

    def test_a_killed_parent_leaves_no_child(self):
        bench = self.start("--no-shm", "--size", "64KiB", "--iterations", "1000000000")
        self.wait_for(bench, "over ")
        [child] = self.children(bench)
        bench.kill()
        self.assertTrue(self.is_gone(child))

    def test_an_idle_end_can_be_interrupted(self):
        bench = self.start("--no-shm", "--size", "64KiB", "--iterations", "5", "--idle", "60s")
        self.wait_for(bench, "over ")
        time.sleep(0.5)
        bench.send_signal(signal.SIGINT)
        self.assertEqual(bench.wait(timeout=SECONDS_MAX / 3), 130)

    def test_two_signals_at_once_count_as_one(self):
        bench = self.start("--no-shm", "--json", "--size", "64KiB", "--seconds", "60")
        self.wait_for(bench, "over ")
        time.sleep(0.5)
        for _ in range(2):  # as `timeout` does: first the process, then its group
            bench.send_signal(signal.SIGINT)
        out, said = bench.communicate(timeout=SECONDS_MAX)
        self.assertEqual(bench.returncode, 130, said)
        self.assertEqual(len(json.loads(out)["rows"]), 1)

    def test_results_are_printed_when_the_other_end_dies(self):
        port = free_port()
        listener = self.start("--no-shm", "--listen", "--port", port)
        self.wait_for(listener, "waiting for")
        client = self.start("--no-shm", "127.0.0.1", "--json", "--port", port, "--size", "64,64KiB", "--seconds", "4")
        self.wait_for(client, "over ")
        time.sleep(6)  # in the middle of the second message size
        listener.kill()
        out, said = client.communicate(timeout=SECONDS_MAX)
        self.assertEqual(client.returncode, 1, said)
        self.assertEqual([row["bytes"] for row in json.loads(out)["rows"]], [64])
        self.assertTrue(json.loads(out)["error"])

    def test_a_waiting_listener_can_be_interrupted(self):
        bench = self.start("--listen", "--port", free_port())
        self.wait_for(bench, "waiting for")
        bench.send_signal(signal.SIGINT)
        self.assertEqual(bench.wait(timeout=SECONDS_MAX), 130)

    def test_interrupting_one_end_ends_both(self):
        for who in ("listener", "client"):
            for words in ([], ["--bidirectional"]):
                port = free_port()
                ends = {"listener": self.start("--no-shm", "--listen", "--port", port)}
                self.wait_for(ends["listener"], "waiting for")
                ends["client"] = self.start("--no-shm", "127.0.0.1", "--port", port, "--size", "64KiB", "--iterations",
                                            "1000000000", *words)
                self.wait_for(ends["client"], "over ")
                time.sleep(0.5)
                ends[who].send_signal(signal.SIGINT)
                out, said = ends["client"].communicate(timeout=SECONDS_MAX)
                self.assertEqual(ends["client"].returncode, 130 if who == "client" else 1, said)
                self.assertIn("interrupted", said)
                self.assertEqual(len(out.strip().splitlines()), 2, out)  # the measured rows
                self.assertEqual(ends["listener"].wait(timeout=SECONDS_MAX), 130 if who == "listener" else 1)
                self.assertIn("interrupted" if who == "listener" else "the other end was interrupted",
                              ends["listener"].stderr.read())

    def start_clients(self, *iterations):
        """A listener, and one client per number of messages."""
        port = free_port()
        listener = self.start("--no-shm", "--listen", "--clients", str(len(iterations)), "--port", port)
        self.wait_for(listener, "waiting for")
        clients = [self.start("--no-shm", "127.0.0.1", "--port", port, "--size", "64KiB", "--iterations", str(n))
                   for n in iterations]
        return listener, clients

    def test_an_interrupted_listener_tells_every_client(self):
        listener, clients = self.start_clients(1000000000, 1000000000)
        for client in clients:
            self.wait_for(client, "over ")
        time.sleep(0.5)
        listener.send_signal(signal.SIGINT)
        self.assertEqual(listener.wait(timeout=SECONDS_MAX), 130)
        for client in clients:
            out, said = client.communicate(timeout=SECONDS_MAX)
            self.assertEqual(client.returncode, 1)
            self.assertIn("the other end was interrupted", said)
            self.assertEqual(len(out.strip().splitlines()), 2, out)  # the measured rows

    def test_a_client_that_leaves_early_is_replaced(self):
        port = free_port()
        listener = self.start("--no-shm", "--listen", "--clients", "2", "--port", port)
        self.wait_for(listener, "waiting for")
        words = ["--no-shm", "127.0.0.1", "--port", port, "--size", "64KiB", "--iterations", "5"]
        impatient = self.start(*words)
        time.sleep(0.5)
        impatient.send_signal(signal.SIGINT)
        self.assertEqual(impatient.wait(timeout=SECONDS_MAX), 130)
        for client in [self.start(*words) for _ in range(2)]:
            _, said = client.communicate(timeout=SECONDS_MAX)
            self.assertEqual(client.returncode, 0, said)
        self.assertEqual(listener.wait(timeout=SECONDS_MAX), 0)
        said = listener.stderr.read()
        self.assertIn("1 of 2 clients went before all had come; still waiting", said)
        self.assertIn("127.0.0.1 has come: 2 of 2 clients are here\n", said)
        self.assertEqual(said.count("127.0.0.1 is connected, over UDP, "), 2, said)

    def test_a_killed_client_does_not_stop_the_others(self):
        listener, [first, second] = self.start_clients(1000000000, 1000000000)
        for client in (first, second):
            self.wait_for(client, "over ")
        first.kill()
        self.wait_for(listener, "has gone; the others go on")
        time.sleep(0.5)
        self.assertIsNone(second.poll())
        self.assertIsNone(listener.poll())
        second.send_signal(signal.SIGINT)
        out, said = second.communicate(timeout=SECONDS_MAX)
        self.assertEqual(second.returncode, 130, said)
        self.assertEqual(len(out.strip().splitlines()), 2, out)
        self.assertEqual(listener.wait(timeout=SECONDS_MAX), 1)
        self.assertIn("1 of 2 clients went", listener.stderr.read())


class TwoProcesses(unittest.TestCase):
    def setUp(self):
        self.port = free_port()
        self.listener = subprocess.Popen([*BENCH, "--listen", "--port", self.port], stderr=subprocess.PIPE, text=True)
        self.assertIn("planes: 127.0.1.1 (lo), ", self.listener.stderr.readline())  # the listener is ready

    def tearDown(self):
        self.listener.kill()
        self.listener.wait()
        self.listener.stderr.close()

    def test_the_client_chooses_the_measurement(self):
        ran = run("127.0.0.1", "--port", self.port, "--size", "64KiB", "--iterations", "50", "--qps", "2",
                  "--bidirectional", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.listener.wait(timeout=SECONDS_MAX), 0)
        # Both ends say what carries the bytes.
        carrier = "over UDP, 4 planes, 4096 bytes a packet\n"
        self.assertIn(f"\n{carrier}", ran.stderr)
        self.assertEqual(self.listener.stderr.read(), f"127.0.0.1 has come, {carrier}")

    def test_a_killed_end_is_reported(self):
        client = subprocess.Popen([*BENCH, "127.0.0.1", "--port", self.port, "--size", "1MiB", "--iterations", "1000000"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.kill)
        time.sleep(1)
        self.assertIsNone(client.poll())
        self.listener.send_signal(signal.SIGKILL)
        _, said = client.communicate(timeout=DEATH_SECONDS_MAX)
        self.assertEqual(client.returncode, 1, said)
        self.assertIn("does not answer", said)

    def test_a_listener_rejects_strangers_and_continues(self):
        terms = struct.pack(">QIIII", 1 << 40, 1, 0x77656607, 15, 0)  # "wef" and the version; an impossible size
        strangers = {b"": "has gone", b"GET / HTTP/1.0\r\n\r\n" + b"x" * 400: "not weft", b"hm": "says nothing",
                     terms: "cannot be", terms.replace(b"wef\x07", b"wef\xff"): "version 255.*install the same weft"}
        for words, said in strangers.items():
            with socket.create_connection(("127.0.0.1", int(self.port))) as s:
                s.sendall(words)
                if said == "has gone":
                    s.close()
                self.assertRegex(self.listener.stderr.readline(), rf"warn: \S+ 127.0.0.1 on TCP port {self.port} .*{said}")
        ran = run("127.0.0.1", "--port", self.port, "--size", "64", "--iterations", "5")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.listener.wait(timeout=SECONDS_MAX), 0)


class Filtered(unittest.TestCase):
    """A filter drops UDP between the two ends."""

    SETUP = """
        set -e
        ip link set lo up
        nft add table inet filter
        nft add chain inet filter input '{ type filter hook input priority 0; }'
        nft add rule inet filter input meta l4proto udp drop
        exec "$@"
    """

    def test_filtered_udp_is_reported_early_and_at_the_end(self):
        inside = ["unshare", "-Urn", "bash", "-c", self.SETUP, "setup"]
        if subprocess.run([*inside, "true"], capture_output=True, timeout=SECONDS_MAX).returncode != 0:
            self.skipTest("no such namespace can be made here")
        bench = subprocess.Popen([*inside, *BENCH, "--size", "64"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 text=True)
        self.addCleanup(bench.stderr.close)
        self.addCleanup(bench.kill)
        began = time.monotonic()
        while "nothing answers by UDP yet; tried: UDP port " not in (line := bench.stderr.readline()):
            self.assertNotEqual(line, "", "it never said that nothing answers")
        self.assertLess(time.monotonic() - began, 10)
        self.assertIn("127.0.1.1, 127.0.2.1", line)
        said = bench.stderr.read()
        self.assertEqual(bench.wait(timeout=SECONDS_MAX), 1)
        self.assertRegex(said, r"\Aweft: .*no packet came from UDP port .*must pass at both ends.*\n\Z")


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
        listener.stderr.readline()  # the listener is ready
        return port, listener

    def test_both_ends_in_one_command(self):
        ran = run("--secret-file", self.secret, "--bidirectional", "--size", "1", "--size", "1MiB", "--iterations", "40",
                  "--qps", "3", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        self.assertGreater(result["counters"]["net.hellos_sent"], 0)
        self.assertNotIn("net.drop_forged", result["counters"])
        ran = run("--secret-file", self.secret, "--latency", "--size", "8", "--iterations", "50")
        self.assertIn("bytes a packet, encrypted\n", ran.stderr)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_two_processes_with_the_secret_in_the_environment(self):
        port, listener = self.listen("--secret-file", self.secret)
        ran = subprocess.run([*BENCH, "127.0.0.1", "--port", port, "--size", "64KiB", "--iterations", "20"],
                             capture_output=True, text=True, timeout=SECONDS_MAX,
                             env={**os.environ, "WEFT_SECRET_FILE": self.secret})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(listener.wait(timeout=SECONDS_MAX), 0)

    def test_different_secrets_give_one_line_at_each_end(self):
        for here, there in ((self.secret, None), (None, self.secret), (self.secret, self.other)):
            port, listener = self.listen(*(["--secret-file", here] if here else []))
            ran = run("127.0.0.1", "--port", port, "--qps", "4", *(["--secret-file", there] if there else []))
            self.assertEqual(ran.returncode, 2, ran.stderr)
            listener.wait(timeout=SECONDS_MAX)
            planes, *said_here = ran.stderr.strip().splitlines()
            self.assertIn("planes: 127.0.1.1 (lo)", planes)
            for said in (said_here, listener.stderr.read().strip().splitlines()):
                self.assertEqual(len(said), 1, said)
                self.assertIn("--secret-file", said[0])

    def test_unsuitable_secret_files_are_refused(self):
        for path, word in ((self.write("open", bytes(32), 0o644), "chmod 600"),
                           (self.write("group", bytes(32), 0o640), "chmod 600"),
                           (self.write("short", bytes(31)), "found 31"),
                           (self.write("long", bytes(4097)), "more than 4096"),
                           (os.path.join(self.folder.name, "none"), "No such file"),
                           (self.folder.name, "not a file"),
                           *self.of_another()):
            ran = run("--secret-file", path)
            self.assertEqual(ran.returncode, 2, path)
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
            self.assertIn(word, ran.stderr)

    def of_another(self):
        """A file that only another user and root may read."""
        if os.geteuid() != 0:
            return []
        path = self.write("theirs", bytes(32))
        os.chown(path, 65534, 65534)
        return [(path, "belongs to another user")]

    def test_a_killed_end_is_reported_and_another_takes_its_slot(self):
        port, listener = self.listen("--secret-file", self.secret)
        client = subprocess.Popen([*BENCH, "127.0.0.1", "--port", port, "--size", "1MiB", "--iterations", "1000000",
                                   "--secret-file", self.secret],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(client.kill)
        time.sleep(1)
        self.assertIsNone(client.poll())
        listener.send_signal(signal.SIGKILL)
        # Its slot is free at once: the next listener gets it, and receives the packets of the first client.
        port, _ = self.listen("--secret-file", self.secret)
        ran = run("127.0.0.1", "--port", port, "--size", "64KiB", "--iterations", "20", "--secret-file", self.secret)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        _, said = client.communicate(timeout=SECONDS_MAX)
        self.assertEqual(client.returncode, 1, said)
        self.assertIn("does not answer", said)


class NoListener(unittest.TestCase):
    def test_a_client_without_a_listener_gives_one_line(self):
        ran = run("127.0.0.1", "--port", free_port())
        self.assertEqual(ran.returncode, 1)
        self.assertIn("--listen", ran.stderr)


if __name__ == "__main__":
    run_tests.main()
