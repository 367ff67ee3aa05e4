"""`weft conformance` finds libraries that are wrong in one thing each.

What a mutant breaks is said in its own file (mutants/*.cc). For each the tests that must fail are named here, and the
run is compared with them exactly: what fails besides would be a test that says something else than it is about.
"""

import pathlib

from conformance_case import LIBRARY, MUTANTS, Conformance
import run_tests


class Mutants(Conformance):
    def test_wrong_errno(self):
        found = self.assert_fails(MUTANTS / "wrong_errno.so", ["api.context.*"],
                                  ["api.context.busy-cq", "api.context.busy-hint"])
        self.assertIn("errno EBUSY", found["api.context.busy-cq"]["expected"])
        self.assertIn("EINVAL", found["api.context.busy-cq"]["got"])

    def test_wrong_convention(self):
        self.assert_fails(MUTANTS / "wrong_convention.so", ["api.qp.rtr*", "api.qp.reset-init"],
                          ["api.qp.rtr.missing-av", "api.qp.rtr.missing-dest", "api.qp.rtr.not-global",
                           "api.qp.rtr.reserved-peer", "api.qp.rtr.mtu"])

    def test_corrupt_byte(self):
        found = self.assert_fails(MUTANTS / "corrupt_byte.so", ["api.write.*"], ["api.write.size-mtu+1"])
        self.assertIn("byte 4096 differs", found["api.write.size-mtu+1"]["got"])

    def test_lost_completion(self):
        self.assert_fails(MUTANTS / "lost_completion.so", ["api.wc.*"],
                          ["api.wc.order", "api.wc.immediate-order", "api.wc.immediate-covers", "api.wc.poll-many",
                           "api.wc.max-wimm"], more=("--timeout", "4s"))

    def test_swapped_completions(self):
        self.assert_fails(MUTANTS / "swapped_completions.so", ["api.wc.*"], ["api.wc.poll-many"])

    def test_first_psn(self):
        found = self.assert_fails(MUTANTS / "first_psn.so", ["wire.bth.*"],
                                  ["wire.bth.psn", "wire.bth.first-copy"])
        self.assertEqual(found["wire.bth.psn"]["expected"], "PSN 0x123456")
        self.assertEqual(found["wire.bth.psn"]["got"], "0x123457")

    def test_crash_is_one_failed_test(self):
        found = self.assert_fails(MUTANTS / "crash.so", ["api.hint.*"],
                                  ["api.hint.query", "api.hint.modify", "api.hint.unknown-mask"])
        self.assertIn("Aborted", found["api.hint.query"]["got"])

    def test_hang_is_one_failed_test(self):
        found = self.assert_fails(MUTANTS / "hang.so", ["api.event.cq", "api.cq.sizes"], ["api.event.cq"],
                                  more=("--timeout", "2s"))
        self.assertEqual(found["api.event.cq"]["got"], "it hangs")

    def test_takes_reads(self):
        self.assert_fails(MUTANTS / "takes_reads.so", ["api.post.*"], ["api.post.op.read"])

    def test_lets_profiles_go(self):
        self.assert_fails(MUTANTS / "lets_profiles_go.so", ["api.ctl.ev.*"], ["api.ctl.ev.busy"])

    def test_wire_bit(self):
        """Not the library is wrong but what leaves the machine: ICRC and count of every SACK."""
        about = ["wire.sack.icrc", "wire.sack.no-holes", "wire.sack.edge"]
        self.assert_fails(LIBRARY, about + ["wire.sack.entropy", "wire.sack.cumulative", "wire.write.*"], about,
                          preload=MUTANTS / "sack_bit.so", more=("--timeout", "4s"))

    def test_missing_function(self):
        """A symbol's name is changed in a copy of the library: nobody finds the function any more."""
        whole = pathlib.Path(LIBRARY).resolve().read_bytes()
        name = b"\0mrc_query_qp_hint\0"
        self.assertIn(name, whole)
        library = pathlib.Path(self.folder.name) / "lib_mrc.so"
        library.write_bytes(whole.replace(name, b"\0mrc_query_xx_hint\0"))
        found = self.assert_fails(library, ["api.library.*", "api.hint.*"],
                                  ["api.library.mrc", "api.hint.query", "api.hint.modify", "api.hint.unknown-mask"])
        self.assertIn("mrc_query_qp_hint", found["api.library.mrc"]["got"])


if __name__ == "__main__":
    run_tests.main(verbosity=2)
