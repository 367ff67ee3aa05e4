"""What whoever runs the tests has set for himself is not for them: imported before anything is started."""

import atexit
import os
import shutil
import tempfile

KEPT = ("WEFT_BINARY", "WEFT_PEER_")  # what tests are told

for name in [n for n in os.environ if n.startswith("WEFT_") and not n.startswith(KEPT)]:
    del os.environ[name]
_folder = tempfile.mkdtemp(prefix="weft-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
# A file is named, so that no other is looked for: neither at home nor in /etc.
os.environ["XDG_CONFIG_HOME"] = _folder
os.environ["WEFT_CONFIG"] = os.path.join(_folder, "empty.toml")
with open(os.environ["WEFT_CONFIG"], "w"):
    pass
# Nor are devices' states touched that are his.
os.environ["WEFT_STATE_DIR"] = os.path.join(_folder, "state")
os.chmod(_folder, 0o755)  # tests run programs as other users too
