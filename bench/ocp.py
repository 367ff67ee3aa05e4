"""OCP's own benchmark, unmodified, over lib_mrc.so with its own defaults: the whole sweep, 1 B to 64 MiB, on the loopback.

WEFT_PEER_OCP names OCP's tree; its benchmark is compiled against its own headers. `weft` is its Gb/s at 64 MiB. 1,100
writes of each size are 148 GB: minutes. A byte that did not arrive as sent is a failure here, although the program
itself only prints it. Without the tree nothing runs; tests/mrc/pattern_test.py checks the same with a program of ours.
There is no peer, because OCP published no library.
"""

import sys
import tempfile

import lib

sys.path.insert(0, str(lib.ROOT / "tests/support"))
import ocp_benchmark

PATIENCE_S = 1800


def main():
    parser = lib.Arguments("ocp", __doc__)
    parser.add_argument("--arguments", default="", help="options of the benchmark, as '-n 100'; default: none, its own")
    arguments = parser.parse_args()
    tree = ocp_benchmark.tree_of_environment()
    if not tree:
        lib.finish(weft=None, ratio=None, why="WEFT_PEER_OCP does not name a tree of OCP-Multipath-Reliable-Connection")
        return 0
    lib.install("build")
    lib.build("mrc")
    with tempfile.TemporaryDirectory() as folder:
        program = ocp_benchmark.build(tree, lib.BUILD / "lib_mrc.so", folder)
        try:
            rows, _ = ocp_benchmark.run(program, arguments.arguments.split(), PATIENCE_S)
        except ocp_benchmark.Failed as failed:
            raise lib.Failure(f"bench/run ocp: {failed}") from None
    lib.table(["bytes", "Gb/s"], [[size, f"{gbps:.3f}"] for size, gbps in rows.items()])
    lib.finish(weft=rows[ocp_benchmark.SIZES[-1]], ratio=None, why="no other library runs this benchmark without a NIC",
               detail={"gbps_by_size": rows})
    return 0


if __name__ == "__main__":
    sys.exit(lib.main(main))
