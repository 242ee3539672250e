# `make demo` and `make test` each set up everything they need: only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo lint test test-slow test-lowest docs format clean

help:  ## lists these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

$(VENV)/ready: setup.py setup.cfg pyproject.toml $(wildcard invclr_jax/native/*.cc invclr_jax/native/*.h)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable ".[test,dev,docs]"
	touch $@

demo: $(VENV)/ready  ## trains small encoders of Spirograph, writes demo/report.html
	$(BIN)/python -m experiments.demo --out=demo

lint: $(VENV)/ready  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## linters and all tests but the slow ones
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(VENV)/ready  ## tests that kill, preempt and starve real processes, and build the wheel
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

test-lowest:  ## all tests but the slow ones, with the lowest versions that setup.cfg declares
	$(PYTHON) .ci/lowest.py > lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet --constraint lowest.txt --editable ".[test,docs]"
	$(VENV)-lowest/bin/python -m pytest -n 2 -m "not slow"

docs: $(VENV)/ready  ## builds the site in build/site; with EXECUTE_TUTORIALS=1 it shows what they print
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

format: $(VENV)/ready  ## formats the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## removes the virtual environments and what was built
	rm -rf $(VENV) $(VENV)-lowest lowest.txt build
