# `make run` and `make test` do all of their own set-up; everything lives in .venv and target/.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := $(shell find rust_core -name '*.rs' -o -name 'Cargo.toml' 2>/dev/null) Cargo.toml Cargo.lock
LOCK   := constraints.txt
STEP   := scripts/step.sh
# How long the first build takes; later ones compile only what has changed.
BUILD_TIME := two to three minutes on two cores
# Where bytecode is not written, each of the hundreds of processes that the tests start compiles the program.
unexport PYTHONDONTWRITEBYTECODE
NETWORK := "Check the network and the free space on the disk, then run make again."

BESIDE := --no-print-directory --jobs=2 # runs the targets of a make beside each other

.PHONY: run setup test quick lint lint-python lint-rust rust-test sanitize loom pytest pytest-one pytest-two pytest-again \
	bench agents-eval fuzz soak gpu clients wheel lock clean help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: setup ## open Pravāha (fetches the demo model on the first start)
	$(BIN)/pravaha

setup: $(VENV)/.installed ## everything `make run` needs, without starting it

# On a fresh machine torch, which `lint-python` needs, is downloaded while the Rust tests are built.
test: $(VENV)/.installed ## every check that decides whether a change lands
	@$(MAKE) $(BESIDE) --output-sync=target lint-python lint-rust rust-test
	@$(MAKE) --no-print-directory pytest

quick: $(VENV)/.installed-dev ## lint of Python, and the tests that import what differs from main (under 90 s)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@tests=$$($(BIN)/python scripts/touched_tests.py $(if $(BASE),--base $(BASE))) && \
		if [ -n "$$tests" ]; then $(PYTEST) --numprocesses=2 --dist=loadfile $$tests; \
		else echo "The change touches no tests."; fi

lint: lint-python lint-rust

lint-python: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lint-rust: $(VENV)/.cargo-checked
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# The same examples of the property tests each time; `make fuzz` draws new ones.
rust-test: $(VENV)/.cargo-checked
	PROPTEST_RNG_SEED=1 cargo test --workspace --exclude pravaha-py --lib --tests --locked --quiet

# Sanitizers are not stable, but their runtimes come with every toolchain. The target is named so that build
# scripts and macros, which run on this machine, are built without them.
sanitize: $(VENV)/.cargo-checked ## the Rust tests under AddressSanitizer: memory errors of the kernels
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test -p pravaha-core -p pravaha-kernels --locked \
		--lib --tests --target $$(rustc -vV | sed -n 's/^host: //p')

loom: $(VENV)/.cargo-checked ## the pool's threads in every interleaving of small jobs: lost wake-ups, races
	RUSTFLAGS="--cfg loom" cargo test -p pravaha-kernels --locked --lib \
		--target-dir target/loom pool::interleavings

# Tests that import torch, so that it is loaded once, and those of a whole terminal, which mostly wait, run in one
# process beside the others, which run in two. Those of the real engine use every core by themselves.
PYTEST := $(BIN)/python -m pytest --durations=15
TORCH := tests/torch_executor tests/onnx_executor tests/embedding tests/benchmarks
TERMINAL := tests/pty
WHOLE_MACHINE := tests/parity

pytest: $(VENV)/.installed-dev
	@rm -rf $(FAILED)
	@$(MAKE) $(BESIDE) pytest-one pytest-two
	$(PYTEST) $(WHOLE_MACHINE)
	@$(MAKE) --no-print-directory pytest-again

# Of its output the last line is shown, and all of it if it fails: that of `pytest-two` is on the screen meanwhile.
pytest-one: $(VENV)/.installed-dev
	@$(SOME_FAILED) $(FAILED)/one $(PYTEST) $(TORCH) $(TERMINAL) >$(VENV)/pytest-one.log 2>&1 || \
		{ cat $(VENV)/pytest-one.log; exit 1; }
	@test ! -f $(FAILED)/one/v/cache/lastfailed || cat $(VENV)/pytest-one.log
	@tail -n 1 $(VENV)/pytest-one.log

pytest-two: $(VENV)/.installed-dev
	$(SOME_FAILED) $(FAILED)/two $(PYTEST) --numprocesses=2 --dist=loadfile \
		$(patsubst %,--ignore=%,$(TORCH) $(TERMINAL) $(WHOLE_MACHINE))

# The tests that failed, once more, alone: one that passes now waits for something for a fixed time. Its name and its
# first failure stay in the output, to be mended; it says nothing of the change.
FAILED := $(VENV)/failed
SOME_FAILED := scripts/some_failed.sh

pytest-again: $(VENV)/.installed-dev
	@for part in one two; do \
		test ! -f $(FAILED)/$$part/v/cache/lastfailed || \
			$(PYTEST) -o cache_dir=$(FAILED)/$$part --last-failed --last-failed-no-failures=none || exit 1; \
	done

bench: $(VENV)/.installed-dev ## this machine's figures: throughput, latency, roofline
	$(BIN)/pravaha bench
	$(BIN)/python benchmarks/screen_under_load.py

# With a trained model of 1.5B parameters this takes hours on two cores; each part goes on where it was stopped.
agents-eval: $(VENV)/.installed-dev ## agents with a trained model (MODEL=FILE): HumanEval-width, repair, profile
	@test -n "$(MODEL)" || { echo "Name a trained model: make agents-eval MODEL=FILE" >&2; exit 1; }
	@mkdir -p $(VENV)/agents-eval
	$(BIN)/python benchmarks/humaneval_width.py --model $(MODEL) \
		--json $(VENV)/agents-eval/humaneval-$(notdir $(MODEL)).json
	$(BIN)/python benchmarks/agent_repair.py --corpus faults --model $(MODEL) \
		--json $(VENV)/agents-eval/repair-$(notdir $(MODEL)).json
	$(BIN)/pravaha agents profile $(MODEL)

gpu: $(VENV)/.installed-dev ## the torch executor on a GPU: its tests, parity, graphs, throughput
	PRAVAHA_TEST_DEVICE=cuda $(BIN)/python -m pytest tests/torch_executor
	$(BIN)/python benchmarks/gpu.py --json benchmarks/gpu.json

clients: $(VENV)/.installed ## real client programs against the server (MODEL=FILE; minutes, downloads their packages)
	$(BIN)/python clients/run.py $(if $(MODEL),--model $(MODEL))

fuzz: $(VENV)/.installed-dev ## the property tests and the fuzzers with new random examples (FUZZ_TESTS=PATH for some)
	$(PYTEST) --numprocesses=2 --dist=loadfile -m "hypothesis and not soak" --hypothesis-profile=fuzz \
		$(or $(FUZZ_TESTS),tests)
	cargo test --workspace --exclude pravaha-py --lib --tests --locked --quiet

soak: $(VENV)/.installed-dev ## long random traffic against the server; leaks and stalls; the wheel
	$(BIN)/python -m pytest -m soak -o addopts="" tests

wheel: $(VENV)/.tools ## a wheel in dist/ for any Python from 3.11 on; installing it needs no Rust
	$(BIN)/maturin build --release --locked --out dist

lock: ## refresh constraints.txt from a fresh environment
	rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet '.[torch,dev]' maturin
	( echo "# The exact versions every set-up uses; written by \`make lock\`."; \
	  $(VENV)/lock/bin/pip freeze --exclude pravaha ) > $(LOCK)
	rm -rf $(VENV)/lock

clean: ## remove everything that set-up made
	rm -rf $(VENV) target dist

$(VENV)/.cargo-checked:
	@command -v cargo >/dev/null || { echo "Pravāha builds a Rust core and found no cargo: install Rust (1.89 or newer) from https://rustup.rs and run make again." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Pravāha needs Python 3.11 or newer; $(PYTHON) is older: run make PYTHON=/path/to/python3.11." >&2; exit 1; }
	@test -x $(BIN)/python || HINT="Install the venv module of $(PYTHON) (Debian: python3-venv) and run make again." \
		$(STEP) "Create the virtual environment" $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.tools: $(VENV)/.cargo-checked $(LOCK)
	@HINT=$(NETWORK) $(STEP) "Install pip and maturin" \
		$(BIN)/python -m pip install --quiet -c $(LOCK) pip maturin
	@touch $@

# The extension is rebuilt when any Rust source changes; Python sources are used in place. With -v pip passes on what
# cargo says, from which $(STEP) takes the crate.
$(VENV)/.installed: $(VENV)/.tools pyproject.toml $(RUST)
	@HINT="If the Rust build failed, update Rust (rustup update). If a download failed, check the network. Then run make again." \
		$(STEP) "Build Pravāha and its Rust core ($(BUILD_TIME))" \
		$(BIN)/python -m pip install -v -c $(LOCK) --no-build-isolation --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@HINT=$(NETWORK) $(STEP) "Install torch and the development tools (5 GB, about two minutes)" \
		$(BIN)/python -m pip install -v -c $(LOCK) --no-build-isolation --editable '.[torch,dev]'
	@touch $@
