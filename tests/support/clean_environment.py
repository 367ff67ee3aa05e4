"""Importing this module removes the user's own settings of Weft from the environment of the tests."""

import atexit
import os
import shutil
import tempfile

KEPT = ("WEFT_BINARY", "WEFT_PEER_")  # settings for the tests themselves

for name in [n for n in os.environ if n.startswith("WEFT_") and not n.startswith(KEPT)]:
    del os.environ[name]
_folder = tempfile.mkdtemp(prefix="weft-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
# An explicit configuration file, so that the tests read none from the home directory or /etc.
os.environ["XDG_CONFIG_HOME"] = _folder
os.environ["WEFT_CONFIG"] = os.path.join(_folder, "empty.toml")
with open(os.environ["WEFT_CONFIG"], "w"):
    pass
# Tests do not touch the state of the user's own devices.
os.environ["WEFT_STATE_DIR"] = os.path.join(_folder, "state")
os.chmod(_folder, 0o755)  # tests run programs as other users too
