# Everything goes into a virtual environment beside this file; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
# Tests start hundreds of Python processes: each module is compiled once, not by each of them.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-journeys system bytecode test-all check docs lock wheel release clean
demo: .venv/.runtime     ## accounts of known nature, a real model's recorded answers, and a page to open
	@TRADEASSAY_RECORDINGS=recordings/src/tradeassay_recordings $(BIN)/tradeassay demo
system:
	scripts/system-packages
bytecode: | .venv/bin/python
	@$(BIN)/python -m compileall -q packages tests
# The workers share the cores already: threads of linear algebra would only wait for each other.
test test-journeys: export OPENBLAS_NUM_THREADS := 1
# Three workers for two cores: some tests wait for a server or a signal. Each worker collects all tests, and rewriting
# their assertions doubles that: only what failed is run again for its words.
test: .venv/.compiled bytecode system  ## every test that is neither slow nor a journey
	$(BIN)/python -m pytest -n 3 --dist worksteal --assert=plain || { $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; exit 1; }
JOURNEYS := journey and not slow and not network
test-journeys: .venv/.compiled bytecode system  ## whole ways through the product, and its numbers against the frozen ones
	$(BIN)/python -m pytest -n 3 --dist worksteal --assert=plain -m "$(JOURNEYS)" $$(grep -rl --include='test_*.py' journey tests) || \
	  { $(BIN)/python -m pytest -m "$(JOURNEYS)" --last-failed --last-failed-no-failures none; exit 1; }
test-all: system .venv/.test-all .venv/.compiled  ## the same with the slow tests, the live sources, Ray and the factor models
	$(MAKE) check
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -n 2 --dist worksteal -m "not network" -o timeout=3600
check: .venv/.test       ## only style, types and import contracts
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
docs: .venv/.test        ## the manual, into site/
	$(BIN)/mkdocs build --strict
wheel: .venv/.test       ## build the wheel, install it into an empty environment elsewhere, run the demo from it
	scripts/check-wheel
release: .venv/.test     ## build sdist and wheel and check what they say of themselves; uploads nothing
	scripts/release
lock:                    ## renew the pinned dependencies
	scripts/lock
clean:
	rm -rf .venv site dist

.venv/bin/python:
	@echo "installing into .venv ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tradeassay needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@$(PYTHON) -m venv .venv
.venv/.runtime: requirements/runtime.txt $(wildcard packages/*/pyproject.toml) | .venv/bin/python
	@scripts/install $(BIN)/python requirements/runtime.txt && scripts/precompile $(BIN)/python
	@touch $@
.venv/.test: requirements/test.txt pyproject.toml $(wildcard packages/*/pyproject.toml) | .venv/bin/python
	scripts/install $(BIN)/python requirements/test.txt
	touch $@
# What all workers of the tests import when they start. Types are checked meanwhile.
SHARED := polars openpyxl numba mcp sqlalchemy.dialects.postgresql exchange_calendars hypothesis gymnasium fastapi.testclient \
  uvicorn jinja2 nbformat yaml pytest xdist.plugin inspect_ai inspect_ai.model._providers.anthropic
.venv/.compiled: .venv/.test
	scripts/precompile $(BIN)/python $(SHARED)
	touch $@ .venv/.runtime
.venv/.test-all: .venv/.test requirements/test-all.txt requirements/qlib.txt
	scripts/install $(BIN)/python requirements/test-all.txt
	$(BIN)/python -m pip install -q --no-deps -r requirements/qlib.txt
	touch $@
