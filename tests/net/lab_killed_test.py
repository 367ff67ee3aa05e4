"""A killed `weft lab run` leaves namespaces and processes. The next command that makes or takes down a lab removes them, and
nothing else. This file runs itself once more with a /run of its own, so that commands of others do not interfere. Skipped
where no lab can be made."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests
from lab_hosts import BASE, SCENARIO, WEFT, own_processes, reason_to_skip, wait_until, weft

INSIDE = "WEFT_TEST_INSIDE"


def reenter():
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh"]
    tried = subprocess.run([*alone, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        run_tests.skip_file(f"this machine gives no mount namespace: {tried.stderr.strip()}")
    sys.exit(subprocess.run([*alone, sys.executable, *sys.argv], env={**os.environ, INSIDE: "1"}).returncode)


class Killed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start(self, trimming):
        """Starts a long `weft lab run`, with or without the software switch."""
        text = pathlib.Path("scenarios/lab-incast.toml").read_text()
        path = pathlib.Path(self.folder.name, "long.toml")
        path.write_text(text.replace('"3s"', '"100s"').replace('"30s"', '"110s"')
                        .replace("trimming = true", f"trimming = {str(trimming).lower()}"))
        return self.run_of(path)

    def run_of(self, path, *flags):
        process = subprocess.Popen([WEFT, "lab", "run", str(path), *flags], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, f"run-{process.pid}"

    def wait_for_all(self, name):
        def stands():
            status = weft("status", "--name", name, "--json", expect=None)
            self.lab = json.loads(status.stdout)["labs"] if status.returncode == 0 else None
            return self.lab
        wait_until(stands, "it is not built")
        return self.lab[0]

    def kill(self, process):
        process.kill()
        process.wait()

    def left(self, name):
        """The namespaces of the lab, and the files with its name."""
        files = [entry.name for folder in ("/run/weft", "/run/netns") if os.path.isdir(folder)
                 for entry in os.scandir(folder)]
        return [entry for entry in files if entry.startswith((f"{name}.", f"weft.{name}."))]

    def is_there(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def test_while_it_runs(self):
        process, name = self.start(trimming=True)
        lab = self.wait_for_all(name)
        self.assertTrue(self.is_there(lab["software"]["pid"]))
        # A run that is alive must not be swept.
        other = f"{BASE}-beside"
        weft("up", SCENARIO, "--name", other)
        weft("down", "--name", other)
        self.assertIsNone(process.poll())
        self.assertTrue(self.wait_for_all(name)["software"]["alive"])
        self.kill(process)
        wait_until(lambda: not self.is_there(lab["software"]["pid"]), "its switch goes on without it")
        self.assertTrue(self.left(name))
        status = weft("status", "--name", name, expect=1)
        self.assertIn("its `weft lab run` is gone", status.stderr)
        self.assertTrue(self.left(name), "asking removes nothing")
        said = subprocess.run([WEFT, "lab", "run", "scenarios/lab-two-plane.toml"], check=True, capture_output=True,
                              text=True, timeout=180).stderr
        self.assertIn(f"{name} was left by a run that died", said)
        self.assertEqual(self.left(name), [])

    def test_while_it_is_built(self):
        half_built = 0
        for i in range(12):
            process, name = self.start(trimming=True)
            time.sleep(0.012 * (i + 1))
            self.kill(process)
            state = pathlib.Path(f"/run/weft/{name}.lab")
            half_built += state.exists() and "complete 0" in state.read_text()
            other = f"{BASE}-next"
            weft("up", SCENARIO, "--name", other)
            self.assertEqual(self.left(name), [])
            weft("down", "--name", other)
            wait_until(lambda: not own_processes(), "a process is left")
        self.assertGreater(half_built, 0)

    def test_with_a_switch_that_does_not_notice(self):
        process, name = self.start(trimming=True)
        switch = self.wait_for_all(name)["software"]["pid"]
        os.kill(switch, signal.SIGSTOP)
        self.kill(process)
        self.assertTrue(self.is_there(switch))
        weft("down", "--name", name)
        self.assertFalse(self.is_there(switch))
        self.assertEqual(self.left(name), [])
        self.assertIn("there is none called", weft("down", "--name", name, expect=1).stderr)

    def test_what_is_in_use_is_taken_down_by_name_only(self):
        name = f"{BASE}-used"
        weft("up", SCENARIO, "--name", name)
        self.addCleanup(weft, "down", "--name", name, expect=None)
        program = subprocess.Popen([WEFT, "lab", "exec", "--name", name, "host", "1", "--", "sh", "-c", "echo in; exec sleep 60"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "in\n")
        self.assertIn("host 1 still runs", weft("down", expect=1).stderr)  # the only lab there is
        weft("status", "--name", name)
        down = weft("down", "--name", name)
        self.assertIn("it is cut off now", down.stderr)
        self.assertEqual(down.stdout, f"{name}: taken down\n")

    def test_all_its_processes(self):
        path = pathlib.Path(self.folder.name, "several.toml")
        text = pathlib.Path("scenarios/lab-two-plane.toml").read_text()
        path.write_text(text.replace('"4MiB"', '"4GiB"'))
        process, name = self.run_of(path, "--processes", "2")
        self.wait_for_all(name)
        self.kill(process)
        # The second process ends a moment after the first, and holds the lab until then.
        wait_until(lambda: "is gone" in weft("status", "--name", name, expect=None).stderr,
                   "somebody still holds it")
        weft("down")  # the only lab there is
        self.assertEqual(self.left(name), [])


if __name__ == "__main__":
    if os.geteuid() != 0:
        run_tests.skip_file("weft lab run needs root to have sockets in several network namespaces")
    if INSIDE not in os.environ:
        reenter()
    reason = reason_to_skip()
    if reason:
        run_tests.skip_file(reason)
    run_tests.main()
