# The commands of this repository; each installs what it needs (tools/install-deps) and does nothing twice.

JOBS ?= $(shell nproc)
# What `make demo` runs after the build.
DEMO ?= build/weft sim run scenarios/plane-down.toml
# `make soak`: the scenario, how many seeds of it, and the first.
SOAK_SCENARIO ?= scenarios/fault-mix.toml
SOAK_SEEDS ?= 10000
# `make fuzz`: seconds for each target.
FUZZ_SECONDS ?= 60
# `make install`: where the tree will be, and a folder in whose place it is made, as packagers do.
PREFIX ?= /usr/local
DESTDIR ?=
# `make test`, `make soak`: builds that must have the trace hashes of tests/sim/hashes.txt, as the release build. The asan
# build is not one of them: Determinism.GoldenHashes compares them there.
HASH_PRESETS ?= debug clang

CTEST = ctest --output-on-failure --no-tests=error -j $(JOBS)
# Seconds and test cases of each half, for the last lines of `make test`.
TALLY = python3 tests/support/tally.py
# $(call built,HALF,PRESET,FLAGS): configures and builds. $(call tested,HALF,BUILD,FLAGS): ctest there, then what it skipped,
# and why; fails as ctest does. The next run overwrites the log.
built = $(TALLY) run $(1) built cmake --preset $(2) > /dev/null && \
	$(TALLY) run $(1) built cmake --build --preset $(2) -j $(JOBS) $(3)
tested = $(TALLY) run $(1) ran $(CTEST) --test-dir $(2) $(3); status=$$?; \
	python3 tests/support/skipped.py $(2)/Testing/Temporary/LastTest.log && \
	$(TALLY) count $(1) $(2)/Testing/Temporary/LastTest.log && exit $$status
# Tests of real processes and networks share the machine with whoever else is on it: one that fails is run again, twice at
# most, and ctest says so. Everything else has one try, what strangers' packets can do too (ONCE). Nobody whom a sanitizer
# or an assertion caught is forgiven by a second try (tests/support/skipped.py).
REAL_TIME = ^(net|cli|mrc|ctl|wireshark|conformance)$$
ONCE = ^net\.(Hostile|Plain|Secured|ShmRing|Replay|SecureWorld|lab_run_test)
AGAIN = --repeat until-pass:3
# They wait for most of their time: twice as many at a time as there are cores. Not under sanitizers, where they compute.
WAITING = -j $(shell expr 2 '*' $(JOBS))
CLANG_FORMAT ?= clang-format-14
FORMATTED = $(or $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h' ':!tests/layers/bad' 2> /dev/null),/dev/null)

.DEFAULT_GOAL := help
.PHONY: help build demo test test-release test-hash test-asan test-tsan hashes soak fuzz bench format format-check layers clean \
	install install-build

help:
	@echo 'make demo          install what is missing, build, and run the main job on this machine'
	@echo 'make build         the program, at build/weft'
	@echo 'make install       the program, lib_mrc.so and its headers, under $(PREFIX) (PREFIX=DIR, DESTDIR=DIR)'
	@echo 'make test          all tests: release, the same hashes from other builds, then under ASan and UBSan'
	@echo 'make test-release  only the release half'
	@echo 'make test-tsan     under ThreadSanitizer: lib_mrc.so, every function from every thread, and the shared rings'
	@echo 'make soak          $(SOAK_SEEDS) seeds of $(SOAK_SCENARIO) (SOAK_SEEDS=N)'
	@echo 'make fuzz          every fuzz target for $(FUZZ_SECONDS) s (FUZZ_SECONDS=N)'
	@echo 'make bench         every benchmark; bench/run alone lists them'
	@echo 'make format        clang-format in place; make format-check says what would change'
	@echo 'make layers        who includes whom, against cmake/layers.txt'
	@echo 'make clean         remove the build folders'

install-build:
	@tools/install-deps build

# Only the program: no test needs to compile for a demo.
build: install-build
	@cmake --preset release > /dev/null
	@cmake --build --preset release -j $(JOBS) --target weft

# Writes below DESTDIR and in build/, nowhere else; the packages that are missing aside.
install: install-build
	$(if $(filter /%,$(PREFIX)),,$(error PREFIX=$(PREFIX): expected an absolute path, such as PREFIX=/usr/local))
	@cmake --preset release -DCMAKE_INSTALL_PREFIX='$(PREFIX)' > /dev/null
	@cmake --build --preset release -j $(JOBS) --target weft mrc
	@DESTDIR='$(abspath $(DESTDIR))' cmake --install build --strip

demo: build
	$(DEMO)

test: format-check test-release test-hash test-asan
	@$(TALLY) show

test-release:
	@tools/install-deps build test
	@tools/install-deps network || echo 'network tests that need these packages are skipped'
	@$(TALLY) forget release
	@$(call built,release,release)
	$(call tested,release,build,-LE '$(REAL_TIME)')
	$(call tested,release,build,-L '$(REAL_TIME)' -R '$(ONCE)')
	$(call tested,release,build,-L '$(REAL_TIME)' -E '$(ONCE)' $(AGAIN) $(WAITING))

test-hash: test-release hashes

# The release build by the program that we ship, the others by one that has only the simulator.
hashes: build
	@tools/install-deps build test
	@$(TALLY) forget hashes
	@for preset in $(HASH_PRESETS); do $(call built,hashes,$$preset,--target weft-sim) || exit 1; done
	@$(TALLY) run hashes ran tools/same-hash build $(HASH_PRESETS:%=build-%/weft-sim)

test-asan: test-hash
	@$(TALLY) forget asan
	@$(call built,asan,asan)
	@echo 'left out under sanitizers (it ran in release above):'
	@sed 's/^/  /' build-asan/tests-left-out.txt
	$(call tested,asan,build-asan,-LE '$(REAL_TIME)')
	$(call tested,asan,build-asan,-L '$(REAL_TIME)' -R '$(ONCE)')
	$(call tested,asan,build-asan,-L '$(REAL_TIME)' -E '$(ONCE)' $(AGAIN))

# Beside `make test`, which runs the same tests without TSan: compiling for it takes minutes. No suppressions: a race
# is a failure. Not those whose reader hears from the other process that bytes have come (SharedMemory, Secret, TSAN_NOT): what
# goes through another process is an order that TSan does not see.
TSAN_NOT ?= ^mrc\.Write\.ProgressWithoutCalls
TSAN_TESTS ?= ^(mrc\.(Threads|Many\.ThreadsAsVerbsPromise|Events|Write|Errors)|net\.ShmRing\.RecordsCrossBetweenTwoThreads)
test-tsan:
	@tools/install-deps build test
	@$(TALLY) forget tsan
	@$(call built,tsan,tsan,--target mrc test_tests_mrc test_tests_net)
	TSAN_OPTIONS='halt_on_error=1 exitcode=66' $(call tested,tsan,build-tsan,-R '$(TSAN_TESTS)' \
	  -E '$(TSAN_NOT)')

# The hashes of every build, the scenarios that are too large for `make test`, then many seeds.
soak: hashes
	@for name in $$(sed -n 's/^soak //p' tests/sim/scenario-cost.txt); do \
	  build/weft sim run scenarios/$$name.toml || exit 1; \
	done
	build/weft sim seeds $(SOAK_SCENARIO) --count $(SOAK_SEEDS)

fuzz:
	@tools/install-deps build fuzz
	@cmake --preset fuzz > /dev/null
	@cmake --build --preset fuzz -j $(JOBS)
	@tools/fuzz $(FUZZ_SECONDS)

bench:
	@bench/run --all

format:
	@tools/install-deps format
	@$(CLANG_FORMAT) -i $(FORMATTED)

format-check:
	@tools/install-deps format
	@$(CLANG_FORMAT) --dry-run --Werror $(FORMATTED)

layers:
	@tools/layer-check

clean:
	rm -rf build build-debug build-asan build-tsan build-clang build-fuzz
