# Everything runs in .venv, which is built from pyproject.toml where it is missing or out of date.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
CONTENDERS := .venv/.contenders

.PHONY: demo test lint format bench bench-quick parts clean

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

demo: $(READY)
	@mkdir -p out
	$(BIN)/gramian compare digits --output out/digits.report.html --force

test: $(READY)
	$(BIN)/python -m pytest

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

# gramian against its peers: all of it into benchmarks/RESULTS.md, or a tenth of it.
bench: $(CONTENDERS)
	$(BIN)/python -m benchmarks peers --write

bench-quick: $(CONTENDERS)
	$(BIN)/python -m benchmarks peers --quick

# Large parts that tests use where they are installed.
parts: $(READY)
	$(BIN)/python -m pip install --quiet --requirement requirements/parts.txt

clean:
	rm -rf .venv out
