"""`weft ctl`: profiles, ports, probes and events of a device, from flags and from files."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import clean_environment  # noqa: E402, F401: removes the user's settings from the environment
import run_tests

WEFT = os.environ["WEFT_BINARY"]
SECONDS_MAX = 60

FILE = """
[[ev_format]]
id = 13
mode = "stev"
widths = [16, 16]

[[ev]]
id = 1
mode = "explicit"
format = 13
evs = ["00010001@1", "00020002@2", "00030003@3", "00020002@2"]
denied = ["00020002@2"]
events = ["good", "assumed-bad"]

[[ev]]
id = 2
mode = "generated"
format = 13
count = 16
fields = [{ width = 16, init = 256, min = 1, max = 15, mask = 15 }, { width = 16, mask = 65535 }]
state = "offline"

[[cc]]
id = 3
gamma = 0.75
max_cwnd = 1000000

[[cc]]
id = 4
algorithm = "none"

[[port]]
port = 2
enabled = false
"""


class Ctl(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="weft-ctl-")
        self.addCleanup(self.directory.cleanup)
        self.environment = dict(os.environ, WEFT_STATE_DIR=self.directory.name + "/state")

    def run_ctl(self, *words, status=0):
        ran = subprocess.run([WEFT, "ctl", *words], capture_output=True, text=True, timeout=SECONDS_MAX,
                             env=self.environment)
        self.assertEqual(ran.returncode, status, f"{words}: {ran.stderr}")
        if status != 0:
            self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
        return ran.stdout

    def refused(self, status, expected, *words):
        ran = subprocess.run([WEFT, "ctl", *words], capture_output=True, text=True, timeout=SECONDS_MAX,
                             env=self.environment)
        self.assertEqual(ran.returncode, status, f"{words}: {ran.stderr}")
        self.assertEqual(len(ran.stderr.strip().splitlines()), 1, ran.stderr)
        self.assertIn(expected, ran.stderr)

    def profile(self, noun, number):
        [profile] = json.loads(self.run_ctl(noun, "show", str(number), "--json"))["profiles"]
        return profile

    def write(self, text):
        path = pathlib.Path(self.directory.name) / "plan.toml"
        path.write_text(text)
        return str(path)

    def test_each_device_has_its_own_ports_and_profiles(self):
        config = pathlib.Path(self.directory.name, "weft.toml")
        config.write_text('[device.weft1]\nplanes = ["127.1.1.1", "127.1.2.1"]\n')
        self.environment["WEFT_CONFIG"] = str(config)
        self.run_ctl("port", "2", "--disable", "--device", "weft1")
        ports = {}
        for device in ("weft0", "weft1"):
            shown = json.loads(self.run_ctl("port", "--json", "--device", device))
            ports[device] = [port["enabled"] for port in shown["ports"]]
        self.assertEqual(ports, {"weft0": [True] * 4, "weft1": [True, False]})
        self.refused(2, "weft2 is no device here; expected one of weft0, weft1", "device", "--device", "weft2")

    def test_device_prints_capabilities_and_state(self):
        device = json.loads(self.run_ctl("device", "--json"))
        self.assertEqual(device["ports"], 4)
        self.assertEqual(device["scope"], "user")
        self.assertTrue(device["may_change"])
        self.assertEqual(device["algorithms"], ["uet-1.0-nscc"])
        self.assertIn("evs_free", self.run_ctl("device"))

    def test_each_set_command_is_one_call_of_the_api(self):
        self.run_ctl("ev-format", "set", "13", "--mode", "stev", "--widths", "16,16", "--state", "offline")
        self.refused(1, "not ONLINE", "ev-format", "set", "13", "--state", "offline", "--cur-state", "online")
        self.run_ctl("ev-format", "set", "13", "--state", "online")
        self.run_ctl("ev", "set", "1", "--mode", "explicit", "--format", "13", "--count", "2", "--min-active", "1",
                     "--events", "assumed-bad", "--state", "offline")
        self.refused(1, "not populated", "ev", "set", "1", "--state", "online")
        # Several EVs in one command: either all change or none.
        self.refused(1, "no port 7 (entries count from 0); nothing was changed", "ev", "replace", "1", "--with", "00010001@1",
                     "--with", "00020002@7")
        self.assertEqual([e["ev"] for e in self.profile("ev", 1)["evs"]], ["-", "-"])
        self.run_ctl("ev", "replace", "1", "--with", "0001:0001@1", "--with", "00020002@2")
        self.refused(1, "no entry is left", "ev", "replace", "1", "--with", "00030003@3")
        self.run_ctl("ev", "set", "1", "--state", "online")
        self.run_ctl("ev", "state", "1", "--ev", "00020002@2", "--ev-state", "denied")
        self.refused(1, "no such EV", "ev", "state", "1", "--ev", "00020002@3", "--ev-state", "denied")
        profile = self.profile("ev", 1)
        self.assertEqual(profile["state"], "online")
        self.assertEqual(profile["events"], "assumed-bad")
        self.assertEqual([(e["ev"], e["state"]) for e in profile["evs"]], [("00010001@1", "good"), ("00020002@2", "denied")])
        self.assertEqual(profile["evs"][1]["expanded"], "00020002".ljust(64, "0"))
        self.refused(1, "EV profile 1 uses this format and is ONLINE", "ev-format", "set", "13", "--state", "offline")
        self.assertIn("00020002@2  denied", self.run_ctl("ev", "show", "1"))
        self.run_ctl("cc", "set", "2", "--algorithm", "uet-1.0-nscc", "--set", "gamma=0.5", "--set", "eta=100", "--state",
                     "offline")
        self.run_ctl("cc", "set", "2", "--set", "gamma=0.25", "--state", "online")
        config = self.profile("cc", 2)["config"]
        self.assertEqual((config["gamma"], config["eta"]), (0.25, 100))
        self.run_ctl("cc", "set", "2", "--state", "offline")
        self.run_ctl("cc", "set", "2", "--set", "default", "--set", "eta=50", "--state", "online")
        config = self.profile("cc", 2)["config"]
        self.assertEqual((config.get("gamma", 0), config["eta"]), (0, 50))

    def test_applying_a_file_replaces_its_profiles(self):
        path = self.write(FILE)
        for _ in range(2):  # applying it again starts from INIT again
            self.run_ctl("apply", "--file", path)
            self.assertEqual(self.profile("ev-format", 13), {"id": 13, "mode": "stev", "state": "online", "widths": [16, 16]})
            profile = self.profile("ev", 1)
            self.assertEqual(profile["state"], "online")
            self.assertEqual([e["state"] for e in profile["evs"]], ["good", "denied", "good", "denied"])
            generated = self.profile("ev", 2)
            self.assertEqual((generated["state"], len(generated["evs"])), ("offline", 16))
            self.assertEqual(self.profile("cc", 3)["config"]["gamma"], 0.75)
            self.assertEqual(self.profile("cc", 4)["algorithm"], "none")
            ports = json.loads(self.run_ctl("port", "--json"))["ports"]
            self.assertEqual([p["enabled"] for p in ports], [True, False, True, True])
            self.run_ctl("port", "2", "--enable")
        self.run_ctl("ev", "set", "1", "--state", "offline")
        self.run_ctl("cc", "apply", "--file", path)  # applies only the CC profiles
        self.assertEqual(self.profile("ev", 1)["state"], "offline")

    def test_mistakes_give_one_line_with_their_position(self):
        self.refused(2, "plan.toml:3:", "apply", "--file", self.write('[[ev]]\nid = 1\nmode = "exp"\n'))
        self.refused(2, "did you mean", "apply", "--file", self.write('[[port]]\nport = 1\nenabled = true\nprot = 1\n'))
        self.refused(2, "00@9", "apply", "--file",
                     self.write('[[ev]]\nid = 1\nmode = "explicit"\nformat = 1\nevs = ["00@9"]\n'))
        self.refused(2, "plan.toml:2:", "apply", "--file", self.write('[[cc]]\nid = 64\nalgorithm = "none"\n'))
        # Either the whole file is applied or nothing.
        path = self.write('[[cc]]\nid = 9\nalgorithm = "none"\n[[port]]\nport = 8\nenabled = false\n')
        self.refused(1, f"{path}: port 8: ", "apply", "--file", path)
        self.refused(1, "; nothing was changed", "apply", "--file", path)
        self.assertEqual(self.profile("cc", 9)["state"], "init")
        # Also if only the last of several EVs is refused.
        self.run_ctl("apply", "--file", self.write(FILE))
        before = self.run_ctl("ev", "show", "--json")
        path = self.write(FILE.replace('denied = ["00020002@2"]', 'denied = ["00010001@1", "00040004@4"]'))
        self.refused(1, "ev 1: ", "apply", "--file", path)
        self.assertEqual(self.run_ctl("ev", "show", "--json"), before)
        self.run_ctl("port", "2", "--enable")
        for kind, number in (("cc", 'id = 9\nalgorithm = "none"'), ("ev", 'id = 1\nmode = "auto"'), ("port", "port = 1\nenabled = true")):
            self.refused(2, f"[[{kind}]] ", "apply", "--file", self.write(f"[[{kind}]]\n{number}\n" * 2))
        self.refused(2, "cannot be read: No such file", "apply", "--file", "/nosuch")
        self.refused(2, "cannot be read: Is a directory", "apply", "--file", "/tmp")
        self.refused(2, "expected one of", "ev", "set", "1", "--state", "on")
        self.refused(2, "gamma", "cc", "set", "1", "--set", "gama=1")
        self.refused(2, "see `weft ctl", "ev", "set")
        self.refused(2, "no such command", "what")
        self.refused(1, "no port", "port", "8", "--disable")
        self.refused(2, "9: expected a whole number from 1 to 8", "port", "9", "--disable")
        self.refused(2, "1 to 8", "port", "two")
        for verb in (("show",), ("set", "--mode", "auto")):
            self.refused(2, "64: expected a whole number from 0 to 63", "ev", *verb, "64")
        self.refused(2, "0: expected", "events", "--count", "0")
        self.refused(1, "COUNT", "ev", "set", "5", "--count", "5000")
        self.assertEqual(self.run_ctl("ev", "show", "--json"), before)

    def test_probes_are_answered_by_this_host(self):
        found = json.loads(self.run_ctl("probe", "--to", "127.0.1.1", "--count", "2", "--timeout", "10s", "--json"))
        self.assertEqual(found["missing"], 0)
        self.assertEqual(sorted(r["port"] for r in found["requests"]), [1, 1, 2, 2, 3, 3, 4, 4])
        self.assertTrue(all(r["rtt_ns"] > 0 for r in found["requests"]))
        self.refused(1, "1 of 1 requests had no answer", "probe", "--to", "127.0.1.77", "--port", "1", "--timeout", "20ms")
        self.refused(2, "--port 9", "probe", "--to", "127.0.1.1", "--port", "9")
        # A disabled port carries no probes.
        self.run_ctl("port", "2", "--disable")
        self.refused(1, "port 2 is disabled; `weft ctl port 2 --enable`", "probe", "--to", "127.0.1.1", "--port", "2")
        found = json.loads(self.run_ctl("probe", "--to", "127.0.1.1", "--timeout", "10s", "--json"))
        self.assertEqual(sorted(r["port"] for r in found["requests"]), [1, 3, 4])
        self.run_ctl("port", "2", "--enable")
        self.refused(1, "only who has QPs with this process", "probe", "--to", "127.0.1.1", "--port-status", "2")
        # The address of any port names the host.
        found = json.loads(self.run_ctl("probe", "--to", "127.0.2.1", "--timeout", "10s", "--json"))
        self.assertEqual((found["missing"], sorted(r["port"] for r in found["requests"])), (0, [1, 2, 3, 4]))

    def test_probes_use_the_evs_of_controllers(self):
        self.run_ctl("apply", "--file", self.write(FILE))
        words = ("probe", "--to", "127.0.1.1", "--timeout", "10s", "--json", "--format", "stev")
        evs = ("00010001@1", "00030003@3", "00010001@1")
        found = json.loads(self.run_ctl(*words, *(word for ev in evs for word in ("--ev", ev))))
        self.assertEqual([(r["port"], r["named"], r["answered"]) for r in found["requests"]],
                         [(1, evs[0], True), (3, evs[1], True), (1, evs[2], True)])
        self.assertEqual(found["requests"][0]["ev"], found["requests"][2]["ev"])
        # As on QPs of the profile, its first EV of port 1 stands for the device's first EV.
        [first] = json.loads(self.run_ctl("probe", "--to", "127.0.1.1", "--timeout", "10s", "--json", "--port", "1"))["requests"]
        self.assertEqual(found["requests"][0]["ev"], first["ev"])
        [udp] = json.loads(self.run_ctl(*words[:-1], "udp", "--ev", evs[0]))["requests"]
        self.assertNotEqual(udp["ev"], first["ev"])
        # EVs that are in no profile use any EV of their port.
        found = json.loads(self.run_ctl(*words, "--ev", "00000004@1", "--ev", "00000005@1"))
        self.assertNotEqual(found["requests"][0]["ev"], found["requests"][1]["ev"])
        self.refused(2, "--ev 00010000@8: port 8: expected 1 to 4", "probe", "--to", "127.0.1.1", "--format", "udp", "--ev", "0001@8")
        self.refused(2, "--format two", "probe", "--to", "127.0.1.1", "--format", "two", "--ev", "0001@1")
        self.refused(2, "--format", "probe", "--to", "127.0.1.1", "--ev", "0001@1")
        self.refused(2, "--ev", "probe", "--to", "127.0.1.1", "--format", "udp")
        self.refused(2, "--ev", "probe", "--to", "127.0.1.1", "--format", "udp", "--ev", "0001@1", "--port", "1")
        secret = pathlib.Path(self.directory.name, "secret")
        secret.write_bytes(bytes(32))
        secret.chmod(0o600)
        self.refused(2, "with a secret only processes that have QPs", "probe", "--to", "127.0.1.1", "--secret-file", secret)

    def test_changes_print_their_generation(self):
        first = json.loads(self.run_ctl("port", "2", "--disable", "--json"))["generation"]
        second = json.loads(self.run_ctl("apply", "--json", "--file", self.write(FILE)))["generation"]
        self.assertEqual(second, first + 1)  # a file is one change

    def test_unreadable_state_is_reported(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become another user")
        self.run_ctl("port", "1", "--disable")
        os.chmod(self.directory.name, 0o755)
        os.chmod(self.directory.name + "/state", 0o700)
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", WEFT, "ctl", "port"]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_MAX, env=self.environment)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertRegex(ran.stderr, r"^weft: \S+/state: Permission denied; set WEFT_STATE_DIR to .*\n$")

    def test_a_fifo_instead_of_a_file_does_not_block(self):
        self.run_ctl("port", "1", "--disable")
        for name in ("weft0.live", "weft0.state"):
            path = pathlib.Path(self.directory.name, "state", name)
            with self.subTest(name):
                path.unlink()
                os.mkfifo(path)
                self.refused(1, name, "port", "1", "--enable")
                path.unlink()

    def test_events_end_at_their_timeout(self):
        self.assertEqual(self.run_ctl("events", "--timeout", "50ms"), "")
        self.refused(1, "0 of 1 events", "events", "--timeout", "50ms", "--count", "1", "--json")
        self.assertEqual(list(pathlib.Path(self.directory.name, "state", "weft0.events").iterdir()), [])

    def test_only_the_owner_may_change_a_device(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become another user")
        os.chmod(self.directory.name, 0o755)
        self.run_ctl("port", "1", "--enable")
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", WEFT, "ctl", "port", "1", "--disable"]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_MAX, env=self.environment)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("may be changed only by", ran.stderr)


if __name__ == "__main__":
    run_tests.main()
