# Everything runs in .venv, which is built from pyproject.toml where it is missing or out of date.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint format bench parts clean

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

bench: $(READY)
	$(BIN)/python -m benchmarks

# Large parts that tests use where they are installed.
parts: $(READY)
	$(BIN)/python -m pip install --quiet --requirement requirements/parts.txt

clean:
	rm -rf .venv out
