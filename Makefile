# make lab    creates what is missing and opens JupyterLab on the first notebook
# make test   creates what is missing and runs every check
# make help   lists the rest
SHELL := /bin/sh
PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= lab,dev,cuda13
LAB_ARGS ?=
NOTEBOOK ?=
PYTEST_ARGS ?=
JOBS ?= 2
# Notebooks and browsers are idle half of the time. Everything else runs beside them at a lower priority, because their
# pages have time limits.
TOGETHER := types lint test-jupyter test-unit test-torch
BEHIND := $(if $(SIDE_BY_SIDE),nice -n 5)
# What is over long before the unit tests takes what these leave while they wait.
LAST := $(if $(SIDE_BY_SIDE),nice -n 9)
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

RUN := $(VENV)/bin/python
# Once the environment exists, its own Python maintains it; PYTHON only creates it (make clean before another one).
BOOT := $(if $(wildcard $(RUN)),$(RUN),$(PYTHON))
PYTEST := $(RUN) -m pytest $(PYTEST_ARGS)

# Idle OpenMP threads sleep instead of spinning: on a small machine that is a difference of 30 times.
export OMP_WAIT_POLICY := PASSIVE
# Tests never use a system CUDA toolkit; the compiler and the disassembler come from the environment.
unexport CUDA_HOME CUDA_PATH
# The tests start hundreds of processes. Without kept bytecode each one compiles all that it imports: seconds.
unexport PYTHONDONTWRITEBYTECODE

NEED_PYTHON = command -v $(BOOT) >/dev/null || { \
	echo "missing: $(PYTHON) is not on PATH. Install Python 3.11 to 3.14:" >&2; \
	echo "    sudo apt-get install python3 python3-venv" >&2; exit 3; }

ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
.DEFAULT_GOAL := help
.PHONY: help env lab test lint types test-unit test-torch torch collected test-deep test-notebooks test-browser test-jupyter test-gpu hostile format constraints wheel pictures notebooks table latency screenshots gallery site slides student reset clean machine

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-24s %s\n", $$1, $$2 }'

env: ## create or refresh the environment in .venv
	@$(NEED_PYTHON)
	@$(BOOT) tools/environment.py $(VENV) --extras $(EXTRAS)

lab: env ## open JupyterLab on the first notebook (NOTEBOOK=name, LAB_ARGS="--no-browser --port=9000")
	@$(VENV)/bin/subbyte lab $(NOTEBOOK) $(addprefix --jupyter=,$(LAB_ARGS))

reset: env ## restore a notebook as it was shipped, keep yours as a backup (NOTEBOOK=02)
	@$(VENV)/bin/subbyte lab --reset $(NOTEBOOK)

machine:
	@$(NEED_PYTHON)
	@$(BOOT) tools/check_machine.py test

test: machine env ## run every check; one that fails does not keep the others from running
	@$(MAKE) --keep-going --no-print-directory $(SYNC) -j SIDE_BY_SIDE=1 $(TOGETHER)
	@echo "all checks passed"

lint: env ## style and format
	@echo "== ruff"
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(VENV)/bin/lint-imports --no-cache

types: env ## static types
	@echo "== mypy"
	@$(LAST) $(RUN) -m mypy

test-unit: env ## unit and emulator tests, on JOBS processes
	@echo "== unit and emulator tests"
	@$(BEHIND) $(PYTEST) -n $(JOBS) --dist worksteal --durations 20 --ignore tests/browser --ignore tests/toolkit/torch -m "not gpu and not browser and not notebook and not deep"

# Types and style do not wait for PyTorch; no test may begin while it is being installed. Meanwhile one process compiles
# the test files and all that they import, which each of the later ones would do again on a clean checkout.
ifdef SIDE_BY_SIDE
test-unit test-jupyter test-torch: torch collected
endif

collected: env
	@$(PYTEST) --collect-only -qq >/dev/null 2>&1 || true  # the tests themselves say what is wrong

torch: env
	@$(RUN) tools/torch_cpu.py

test-torch: torch ## subbyte.torch, on PyTorch's build for the CPU, which is installed if there is one
	@echo "== torch"
	@$(LAST) $(PYTEST) --timeout 900 --durations 5 tests/toolkit/torch -m "not deep"

test-deep: env ## exhaustive and random tests, of which test-unit runs a sample (minutes)
	@echo "== deep tests"
	@SUBBYTE_CHROMIUM="$$($(RUN) tools/check_machine.py browser)" $(PYTEST) -n $(JOBS) --dist worksteal --durations 20 --hypothesis-profile deep -m "(deep or hypothesis) and not gpu and not notebook"

test-notebooks: env ## execute every notebook
	@echo "== notebooks"
	@$(PYTEST) -n $(JOBS) --durations 5 -m notebook tests/test_notebooks.py

test-browser: env ## JupyterLab in a real Chromium
	@echo "== browser tests"
	@SUBBYTE_CHROMIUM="$$($(RUN) tools/check_machine.py browser)" $(PYTEST) --durations 20 -m "browser and not deep" tests/browser

test-jupyter: env ## notebooks and browser tests in one run: each notebook is executed once
	@echo "== notebooks and browser tests"
	@SUBBYTE_CHROMIUM="$$($(RUN) tools/check_machine.py browser)" $(PYTEST) -n 2 --dist loadfile --durations 20 -m "(notebook or browser) and not deep" tests/test_notebooks.py tests/browser

test-gpu: env ## the tests that need an NVIDIA GPU
	@$(PYTEST) -m gpu

hostile: env ## try thousands of hostile inputs and print a table of the outcomes (minutes)
	@$(RUN) tools/hostile

format: env ## rewrite the code in the project's format
	@$(RUN) -m ruff check --fix-only --exit-zero .
	@$(RUN) -m ruff format .

constraints: env ## recompute the pins of constraints.txt
	@$(RUN) tools/pins.py

wheel: env ## build the wheel into dist/
	@$(RUN) -m hatchling build -t wheel -d dist

pictures: env ## draw the README's picture
	@$(RUN) tools/pictures.py

notebooks: env ## execute the notebooks and keep their outputs (NOTEBOOK=02 for one)
	@$(RUN) tools/notebooks.py $(NOTEBOOK)

table: env ## write the tables of the READMEs from the raw results and records
	@$(RUN) benchmarks/baselines table
	@$(RUN) benchmarks/paper table
	@$(RUN) benchmarks/sparse model
	@$(RUN) benchmarks/sparse opponents-table
	@$(RUN) tools/notebook_records.py table

latency: env ## measure how quickly the views react: key press to repaint in a real JupyterLab (minutes; run nothing else)
	@SUBBYTE_CHROMIUM="$$($(RUN) tools/check_machine.py browser)" $(RUN) benchmarks/views

screenshots: env ## take the README's screenshots in a real JupyterLab
	@SUBBYTE_CHROMIUM="$$($(RUN) tools/check_machine.py browser)" $(RUN) tools/screenshots.py

gallery: env ## take pictures of every view on four screens, in build/gallery; list what is unreadable
	@SUBBYTE_CHROMIUM="$$($(RUN) tools/check_machine.py browser)" $(RUN) tools/gallery.py $(VIEWS)

site: env ## write the notebooks as a web site to open from a folder, in build/site (NOTEBOOK=02 for one)
	@$(RUN) tools/site_builder.py $(NOTEBOOK)

slides: env ## write notebooks as slides with live views, in build/slides (NOTEBOOK=02 for one)
	@$(RUN) tools/slides.py $(NOTEBOOK)

student: env ## write the notebooks without their solutions, in build/student (NOTEBOOK=02 for one)
	@$(RUN) tools/student.py $(NOTEBOOK)

clean: ## remove the environment, the caches and what was built
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache
	find . \( -name __pycache__ -o -name .ruff_cache \) -type d -prune -exec rm -rf {} +
