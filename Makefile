# Everything runs in a virtual environment, built from pyproject.toml when missing or out of date.

PYTHON ?= python3
VENV ?= .venv
PIP_OPTIONS ?=
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CONTENDERS := $(VENV)/.contenders
DOCS := $(VENV)/.docs

# Tests share the cores; tests of one group (those of a cluster, of a browser) share one worker.
# There is one more of them than cores, since some tests wait for other processes. WORKERS=8 is fewer
# than that: workers that share a GPU may get in each other's way.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')
TESTS := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup

# Workers, and the many processes that tests start, share compiled modules.
unexport PYTHONDONTWRITEBYTECODE

# Environments do not share compiled loops: when versions of numba differ, one of them may start to
# read a loop that the other has written.
export NUMBA_CACHE_DIR := $(abspath $(VENV))/numba

.PHONY: demo test test-fast fuzz lint format bench bench-quick docs parts clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(PIP_OPTIONS) --editable ".[dev]"
	touch $@

demo: $(READY)
	@mkdir -p out
	$(BIN)/gramian compare digits --output out/digits.report.html --force

test: $(READY)
	$(TESTS)

# The quick answer while you work: no cluster, browser, interpreter or limited address space, and
# no test marked slow.
test-fast: $(READY)
	$(TESTS) -m "not (cluster or browser or interpreter or address_space or slow)"

# Faults on purpose, for some minutes: hostile and faulty files, signals, little memory, no rights.
# SEED=7 is another campaign.
SEED ?= 0
fuzz: $(READY)
	$(BIN)/python -m fuzz --seed $(SEED)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(CONTENDERS): requirements/contenders.txt $(READY)
	$(BIN)/python -m pip install --quiet --requirement requirements/contenders.txt
	touch $@

# gramian against its peers: all of it into benchmarks/RESULTS.md, then at sizes from a thousand rows
# up; or a tenth of it.
bench: $(CONTENDERS)
	$(BIN)/python -m benchmarks peers --write
	$(BIN)/python -m benchmarks.sweep --full --save out/benchmarks/sweep.json

bench-quick: $(CONTENDERS)
	$(BIN)/python -m benchmarks peers --quick

$(DOCS): $(READY)
	$(BIN)/python -m pip install --quiet $(PIP_OPTIONS) --editable ".[docs]"
	touch $@

# The documentation site in out/docs. Every example of the gallery runs; a warning is an error.
docs: $(DOCS)
	rm -rf out/docs docs/gallery docs/generated docs/reference/generated
	$(BIN)/python -m sphinx --jobs 2 --nitpicky --fail-on-warning --quiet docs out/docs
	$(BIN)/python docs/check.py out/docs

# Large parts that tests use when they are installed.
parts: $(READY)
	$(BIN)/python -m pip install --quiet --requirement requirements/parts.txt

clean:
	rm -rf $(VENV) out
