# `make demo` and `make test` each set up everything they need: only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow lint format clean

$(VENV)/ready: setup.py setup.cfg pyproject.toml $(wildcard invclr_jax/native/*.cc invclr_jax/native/*.h)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable ".[test,dev]"
	touch $@

demo: $(VENV)/ready
	$(BIN)/python -m experiments.demo --out=demo

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(VENV)/ready
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV)
