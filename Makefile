# A newcomer needs two commands: `make demo` and `make test`. Each sets up what it needs by itself,
# once; afterwards nothing here touches the network. The demo needs little: the library and its command
# line. The first other command adds the rest to the same environment.
#
#   PYTHON=python3.13   another interpreter (3.11 or newer); it gets an environment of its own
#   JOBS=4              how many tests run at once

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test large check bench deep docs clean

IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifeq ($(origin PYTHON),undefined)
  PYTHON = $(shell for p in python3 python3.13 python3.12 python3.11; do \
             $$p -c '$(IS_NEW_ENOUGH)' 2>/dev/null && echo $$p && exit; done; echo python3)
  VENV := .venv
else
  VENV := .venv-$(notdir $(PYTHON))
endif

JOBS ?= auto
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo
export PYTHONDONTWRITEBYTECODE := # compile once: the tests start hundreds of programs
BENCHES := bench.engine bench.session bench.heartbeat bench.stores bench.mcp bench.proxy bench.hooks bench.cli bench.lab

help:
	@echo 'make demo    watch a session fill up and a collection run (installs only what that needs)'
	@echo 'make test    all tests but the large runs (under six minutes on two cores)'
	@echo 'make large   the large runs: twenty thousand random conversations and the like'
	@echo 'make check   linter, formatter, strict types, import direction'
	@echo 'make bench   benchmarks: $(BENCHES)'
	@echo 'make deep    all of that with many more examples, and what takes hours'
	@echo 'make docs    write the pages that are made from code'
	@echo 'make clean   remove caches and outputs (the environment stays: rm -r $(VENV))'

setup: $(READY)

# $(1): the extra to install, $(2): what to say about it
define installed
	@$(PYTHON) -c '$(IS_NEW_ENOUGH)' || { \
	  echo 'ctxgc needs Python 3.11 or newer, and $(PYTHON) is not: try make PYTHON=python3.12 …' >&2; exit 1; }
	@if [ ! -x $(RUN) ]; then \
	  echo "[1/3] environment: $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv $(VENV); fi
	@printf '[2/3] $(2), one dot per package: '
	@$(RUN) -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt -e '.[$(1)]' \
	  | awk '/^Collecting|^Requirement already/ { printf "."; fflush() } END { print "" }'
	@touch $@
	@echo '[3/3] ready'
endef

$(DEMO_READY): pyproject.toml constraints.txt
	$(call installed,cli,ctxgc and its command line)

$(READY): pyproject.toml constraints.txt
	$(call installed,dev,all that tests and checks need (about a minute and 800 MB))
	@touch $(DEMO_READY)

demo: $(DEMO_READY)
	@echo 'A scripted agent works in a Session; what leaves its window is told below, and shown on a page.'
	@$(RUN) -m ctxgc.demo --report out/demo

test: $(READY)
	@$(RUN) -m pytest -n $(JOBS)

large: $(READY)
	@$(RUN) -m pytest -n $(JOBS) -m large

check: $(READY)
	@echo 'ruff check';    $(RUN) -m ruff check --quiet .
	@echo 'ruff format';   $(RUN) -m ruff format --check --quiet . || \
	  { echo 'not formatted: run $(RUN) -m ruff format .' >&2; exit 1; }
	@echo 'mypy --strict'; $(RUN) -m mypy
	@echo 'lint-imports';  $(VENV)/bin/lint-imports --no-cache

bench: $(READY)
	@for bench in $(BENCHES); do echo "== $$bench"; $(RUN) -m $$bench; done

deep: $(READY)
	@HYPOTHESIS_PROFILE=deep $(RUN) -m pytest -n $(JOBS) -m '' --timeout 3600
	@$(RUN) -m tools.adapters run

docs: $(READY)
	@$(RUN) -m tools.seeds_page && echo 'docs/development/seeds.md is current'
	@$(RUN) -m tools.map_page && echo 'docs/map.md is current'

clean:
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache out dist build
	@find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
