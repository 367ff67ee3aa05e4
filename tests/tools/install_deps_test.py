"""tools/install-deps with fake versions of dpkg-query and apt-get: it installs missing packages, once, and reports it."""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import run_tests

INSTALL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/install-deps"

# A package counts as installed if $STATE has a file of its name; every apt-get call is logged.
DPKG_QUERY = '#!/bin/sh\nfor package; do :; done\n[ -e "$STATE/$package" ] && printf installed\n'
APT_GET = """#!/bin/sh
echo "$*" >> "$STATE/apt.log"
install=no
for word; do
  [ "$install" = yes ] && case $word in -*) ;; *) touch "$STATE/$word" ;; esac
  [ "$word" = install ] && install=yes
done
true
"""


class InstallDeps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = pathlib.Path(self.folder.name)
        bin_folder = self.state / "bin"
        bin_folder.mkdir()
        self.programs = {"dpkg-query": DPKG_QUERY, "apt-get": APT_GET, "id": "#!/bin/sh\necho 0\n"}
        self.write_programs(self.programs)

    def write_programs(self, programs):
        for name, text in programs.items():
            path = self.state / "bin" / name
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_install(self, *groups):
        path = f"{self.state}/bin:{os.environ['PATH']}"
        return subprocess.run([INSTALL, *groups], env={**os.environ, "PATH": path, "STATE": str(self.state)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def apt_calls(self):
        log = self.state / "apt.log"
        return log.read_text().splitlines() if log.exists() else []

    def test_missing_packages_are_installed_once(self):
        (self.state / "cmake").touch()
        first = self.run_install("build")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("installing: g++ ninja-build", first.stdout)
        self.assertNotIn(" cmake", first.stdout)
        calls = self.apt_calls()
        self.assertEqual(len(calls), 2)  # update, install
        second = self.run_install("build")
        self.assertEqual((second.returncode, second.stdout, second.stderr), (0, "", ""))
        self.assertEqual(self.apt_calls(), calls)

    def test_without_root_and_sudo_it_prints_the_command(self):
        self.write_programs({"id": "#!/bin/sh\necho 1000\n", "sudo": "#!/bin/sh\nexit 1\n"})
        result = self.run_install("format")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("apt-get install -y --no-install-recommends clang-format-14", result.stderr)
        self.assertEqual(self.apt_calls(), [])

    def test_refuses_an_unknown_group(self):
        self.assertEqual(self.run_install("nonsense").returncode, 2)
        self.assertEqual(self.run_install().returncode, 2)


if __name__ == "__main__":
    run_tests.main()
