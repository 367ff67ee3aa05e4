"""One QP on the loopback, plain and with a job secret (AES-256-GCM for each packet), and the AES rate of one core.

`weft` is Gb/s with the secret, 16 MiB messages; `ratio` is that over the smaller of the plain rate and one core's AES
rate (openssl speed, 4 KiB pieces).
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import lib


def weft(secret):
    words = [lib.BUILD / "weft", "bench", "write", "--no-shm", "--size", "16MiB", "--seconds", "1", "--json"]
    return json.loads(lib.run(words + (["--secret-file", secret] if secret else [])).stdout)["rows"][0]["gbps"]


def aes():
    out = subprocess.run(["openssl", "speed", "-elapsed", "-seconds", "1", "-bytes", "4096", "-evp", "aes-256-gcm"],
                         capture_output=True, text=True, check=True)
    kbytes = re.findall(r"^AES-256-GCM\s+([0-9.]+)k", out.stdout, re.M | re.I)
    return float(kbytes[-1]) * 8e-6


def main():
    parser = lib.Arguments("crypt", __doc__)
    parser.parse_args()
    lib.install("build", "network")
    lib.build("weft")
    with tempfile.NamedTemporaryFile() as secret:
        secret.write(os.urandom(48))
        secret.flush()
        os.chmod(secret.name, 0o600)
        found = lib.interleave({"plain": (lib.runs(5), lambda: weft(None)), "secured": (lib.runs(5), lambda: weft(secret.name)),
                                "one core's AES": (lib.runs(5), aes)})
    spreads = {name: lib.spread(values) for name, values in found.items()}
    lib.table(["Gb/s", "median", "range"], [[name, f"{s['median']:.2f}", f"{s['min']:.2f}..{s['max']:.2f}"]
                                            for name, s in spreads.items()])
    bound = min(spreads["plain"]["median"], spreads["one core's AES"]["median"])
    lib.finish(weft=spreads["secured"]["median"], ratio=spreads["secured"]["median"] / bound,
               plain=spreads["plain"]["median"], aes=spreads["one core's AES"]["median"], detail=spreads,
               bars=[lib.Bar("with a secret / the smaller of plain and one core's AES", spreads["secured"]["median"] / bound,
                             at_least=0.6)])
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
