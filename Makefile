# Every target sets up what it needs; `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
DOCS_STAMP := $(VENV)/.set-up-docs
SITE := build/docs
WORKERS ?= 2
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Bytecode is kept even where the environment forbids it: without it every worker rewrites the asserts of 300 files
# and every command compiles the package, anew each time. `make clean` removes it.
export PYTHONDONTWRITEBYTECODE :=

# python3.11 is not called that everywhere; fall back to python3, whose version is checked below.
ifeq ($(shell command -v $(PYTHON) 2>/dev/null),)
PYTHON := python3
endif

.PHONY: help setup demo demo-collection test test-all test-browser test-extras test-machines test-spark quick wheel-test docs lint types bench pins clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

setup: $(STAMP)  ## make .venv with the pinned requirements and this package

define check-python
@command -v $(PYTHON) >/dev/null || { echo "error: no $(PYTHON) found; install Python 3.11 or newer, or run: make setup PYTHON=/path/to/python" >&2; exit 2; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: shuffledp needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1); run: make setup PYTHON=/path/to/newer/python" >&2; exit 2; }
@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "error: $(PYTHON) has no venv module; install it (Debian, Ubuntu: apt install python3-venv) and run make again" >&2; exit 2; }
endef

$(STAMP): requirements/dev.txt pyproject.toml
	$(check-python)
	@echo "setting up $(VENV) (about a minute)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --quiet --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)  ## the main job on bundled real data; writes shuffledp-demo.html
	$(BIN)/shuffledp demo --report shuffledp-demo.html

demo-collection: $(STAMP)  ## a whole collection: 2,000 people answer through the real service on this machine
	$(BIN)/shuffledp demo collection --report shuffledp-collection.html

# Each worker has a core: matrix products on several threads would only wait for the other worker.
test: $(STAMP)  ## the tests, slow ones left out
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not spark" --hypothesis-profile=repeatable

quick: $(STAMP)  ## the tests of what changed, for at most a minute
	$(BIN)/python -m tools.quick_tests

test-all: $(STAMP) docs  ## all tests, with the share of lines that they run, and the documentation
	$(BIN)/python -m pytest -n $(WORKERS) --cov=shuffledp --cov-report=term:skip-covered

# npm holds what only the tests of the survey page need: axe-core and a driver of chromium.
test-browser: $(STAMP)  ## the survey page in node and headless chromium; skipped, with the reason, where they are missing
	@if command -v npm >/dev/null; then cd tests/collection/page && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; else echo "npm is not installed"; fi
	$(BIN)/python -m pytest -rs tests/collection/page

# docs.txt pins what dev.txt pins, at the same versions (a test looks), and Sphinx: one environment serves both.
$(DOCS_STAMP): $(STAMP) requirements/docs.txt
	@echo "adding Sphinx to $(VENV) (half a minute)"
	$(BIN)/python -m pip install --quiet --quiet --require-hashes -r requirements/docs.txt
	@touch $@

docs: $(DOCS_STAMP)  ## the documentation site, in build/docs; a warning is an error
	rm -rf $(SITE)
	$(BIN)/python -m sphinx -q -W --keep-going -j $(WORKERS) -b html docs $(SITE)
	$(BIN)/python -m tools.check_docs_site $(SITE)

wheel-test: $(STAMP)  ## build the wheel, install it into an empty environment, run the demo from there
	$(BIN)/python -m tools.wheel_test --python $(PYTHON)

# Environments of its own, in build/machines; Pythons that are not found by name: MACHINE_PYTHONS="--python PATH ...".
test-machines: $(STAMP)  ## what must be the same everywhere, on other processors, libraries and Pythons
	$(BIN)/python -m tools.test_machines $(MACHINE_PYTHONS)

# Extras live in their own environment: torch is large, and Flower wants an older typer than the pins.
EXTRAS := .venv-extras
EXTRAS_STAMP := $(EXTRAS)/.set-up
$(EXTRAS_STAMP): requirements/extras.in pyproject.toml
	@echo "setting up $(EXTRAS) with torch and Flower (minutes)"
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python -m pip install --quiet -r requirements/extras.in -e .
	@touch $@

test-extras: $(EXTRAS_STAMP)  ## the tests of shuffledp[torch] and shuffledp[flower], then those of shuffledp[spark]
	$(EXTRAS)/bin/python -m pytest -n $(WORKERS) -W "ignore:'click.:DeprecationWarning" \
		tests/learning/test_torch*.py tests/flower src/shuffledp/learning/torch src/shuffledp/flower
	$(MAKE) test-spark

# Spark is 400 MB, and needs Java, which is the user's own.
SPARK := .venv-spark
SPARK_STAMP := $(SPARK)/.set-up
$(SPARK_STAMP): requirements/spark.in requirements/dev.txt pyproject.toml
	$(check-python)
	@echo "setting up $(SPARK) with Spark (minutes)"
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --quiet --require-hashes -r requirements/dev.txt
	$(SPARK)/bin/python -m pip install --quiet -r requirements/spark.in
	$(SPARK)/bin/python -m pip install --quiet --quiet --no-deps --no-build-isolation -e .
	@touch $@

test-spark: $(SPARK_STAMP)  ## the tests of shuffledp[spark], slow ones too; needs Java 17 or newer
	@command -v java >/dev/null || { echo "error: Spark needs Java; install Java 17 or 21 (Debian, Ubuntu: apt install openjdk-17-jre-headless)" >&2; exit 2; }
	$(SPARK)/bin/python -m pytest -rs tests/spark src/shuffledp/spark tests/tables/test_pandas.py tests/tables/test_entries.py

lint: $(STAMP) types  ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## pyright alone
	$(BIN)/pyright

bench: $(STAMP)  ## time and memory of the main jobs
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file; done

# pip-tools lives in a throwaway environment, so that it is nobody's dependency. Extras stay in the pins: without
# `coverage[toml]==` pip tries the newest release for pytest-cov's `coverage[toml]` first, finds no hash, and stops.
PINS := build/pins-venv
COMPILE := $(PINS)/bin/pip-compile --quiet --generate-hashes --allow-unsafe --no-strip-extras --upgrade \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --no-header
pins:  ## pin requirements/*.in again
	rm -rf $(PINS)
	$(PYTHON) -m venv $(PINS)
	$(PINS)/bin/python -m pip install --quiet pip-tools
	cd requirements && ../$(COMPILE) --output-file=runtime.txt runtime.in
	cd requirements && ../$(COMPILE) --output-file=dev.txt dev.in
	cd requirements && ../$(COMPILE) --output-file=docs.txt docs.in
	rm -rf $(PINS)

clean:  ## remove what make made
	rm -rf $(VENV) $(EXTRAS) $(SPARK) build dist out .pytest_cache .ruff_cache .hypothesis shuffledp-demo.html shuffledp-collection.html tests/collection/page/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
