# Everything is run from a virtual environment that this file makes itself, from a pinned lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 3

.PHONY: help demo test check format simulate coverage bench bench-check chaos lock clean
help: ## What this file can do
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "tidemark needs Python 3.11 or later; say which with: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(READY) ## One broker, the CLI, librdkafka and PySpark on real input
	$(BIN)/python -m benchmarks.demo

test: $(READY) ## The test suite, in three processes; WORKERS=8, PYTEST_OPTIONS="-k failover"
	$(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder $(PYTEST_OPTIONS)

check: $(READY) ## Format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Put the format right
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

simulate: $(READY) ## Simulated clusters under faults, from many seeds; small scopes, exhaustively
	$(BIN)/python -m tests.scopes
	TIDEMARK_EXAMPLES=1000 TIDEMARK_PROTOCOL_EXAMPLES=50 $(BIN)/python -m pytest -q --timeout 1800 \
		-n $(WORKERS) tests/partitions tests/protocol
	$(BIN)/tidemark sim --seeds $(or $(SEEDS),2000) --jobs 2 --save build/simulator
	$(BIN)/tidemark sim --layer core --seeds $(or $(SEEDS),2000) --jobs 2 --save build/simulator
	$(BIN)/tidemark sim --layer replicas --seeds $(or $(SEEDS),2000) --jobs 2 --save build/simulator
	$(BIN)/tidemark sim --layer transactions --seeds $(or $(SEEDS),2000) --jobs 2 --save build/simulator
	$(BIN)/python -m tidemark.testing.shell 1 $(or $(SEEDS),300)

coverage: $(READY) ## Which branches of the consensus core no test has taken
	$(BIN)/python -m tests.coverage_of_raft

bench: $(READY) ## The benchmarks, and a page of their results; BENCH_OPTIONS="--quick", "--budget 20", "matrix --only partitions"
	$(BIN)/python -m benchmarks $(BENCH_OPTIONS)
	$(BIN)/python -m benchmarks.report

bench-check: $(READY) ## What the last two results differ by, beyond their noise
	$(BIN)/python -m benchmarks.compare

chaos: $(READY) ## Three real brokers, real faults, and a judge; CHAOS_OPTIONS="--minutes 30"
	$(BIN)/python -m tests.chaos $(CHAOS_OPTIONS)

lock: ## Pin the dependencies anew (needs uv)
	uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header \
		--extra dev pyproject.toml -o requirements/dev.txt

clean: ## Remove what this file made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
