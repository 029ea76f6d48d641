# Needs make and a Python of 3.11 or newer with its venv module; all else is installed into $(VENV).
# Works with the make of macOS (3.81) and in folders whose names hold blanks.

PYTHON ?= python3
VENV ?= .venv
WORKSPACE ?= playground

CODE := graph_agent tools policy
PY := $(VENV)/bin/python
# The name of the stamp holds where the checkout stands: an editable install does not survive a move.
READY := $(VENV)/.ready-$(shell pwd | cksum | cut -d ' ' -f 1)

.DEFAULT_GOAL := help
.PHONY: help run demo test check format docs sweep bench server lock clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' Makefile

run: $(READY) ## open the chat on ./playground, a small sample workspace (WORKSPACE=DIR: on another folder)
	@if [ "$(WORKSPACE)" = playground ] && [ ! -d playground ]; then cp -R docs/sample playground; fi
	@# Leaving with open questions (3, 4) or by Ctrl-C (130) is an ordinary end of a chat.
	@"$(PY)" -m graph_agent chat --workspace "$(WORKSPACE)" || case $$? in 3|4|130) ;; *) exit 1 ;; esac

demo: $(READY) ## show a kill and its recovery in a minute, on throwaway files
	@"$(PY)" -m graph_agent demo || case $$? in 130) ;; *) exit 1 ;; esac

test: $(READY) ## run the test suite; the long sweeps are left out
	@"$(PY)" -m pytest -q -m "not sweep" -n auto --maxprocesses 8 --dist worksteal

check: $(READY) ## format, lint, types, layers, budgets, generated docs
	@"$(PY)" -m ruff format --check .
	@"$(PY)" -m ruff check .
	@"$(PY)" -m mypy $(CODE) tests docs/_generate
	@"$(PY)" -c "from importlinter.cli import lint_imports_command as check; check(prog_name='layers')"
	@"$(PY)" -m pytest -q tests/architecture

format: $(READY) ## put the code into the house format
	@"$(PY)" -m ruff format .
	@"$(PY)" -m ruff check --fix .

docs: $(READY) ## write the generated pages of docs/ again
	@"$(PY)" -m docs._generate

sweep: $(READY) ## run the long forms of the tests (KILLS=N: the kill sweep alone, N kills)
	@if [ -n "$(KILLS)" ]; then "$(PY)" -m tests.crash.sweep --kills "$(KILLS)"; else "$(PY)" -m pytest -q -m sweep; fi

bench: $(READY) ## time the program against plain references; docs/performance.md, build/bench.json (ROW=NAME: one row)
	@"$(PY)" -m pip install -q --disable-pip-version-check --require-hashes -r requirements-bench.txt
	@"$(PY)" -m tests.bench $(if $(ROW),--only "$(ROW)",--page)

server: $(READY) ## install LangGraph's development server and test the graph under it
	@"$(PY)" -m pip install -q --disable-pip-version-check --require-hashes -r requirements-server.txt
	@"$(PY)" -m pytest -q tests/graph_agent/app/test_langgraph_server.py

clean: ## remove the virtual environment and all caches; ./playground and your threads stay
	rm -rf "$(VENV)" .venv-ci .venv-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) tests docs -name __pycache__ -type d -prune -exec rm -rf {} +


# Sets $$python to the first that is new enough: `python3` may be older than what lies beside it.
FIND_PYTHON = for python in "$(PYTHON)" python3.14 python3.13 python3.12 python3.11 none; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; done; \
	if [ "$$python" = none ]; then \
	echo "No Python of 3.11 or newer was found as python3 or python3.N; install one, or name it: make PYTHON=/path/to/python" >&2; \
	exit 1; fi

$(READY): requirements-dev.txt pyproject.toml
	@echo "Setting up $(VENV) (once; needs the network) ..."
	@$(FIND_PYTHON); "$$python" -m venv "$(VENV)" || { \
	echo "Python's venv module is missing or incomplete; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@"$(PY)" -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@"$(PY)" -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@"$(PY)" -m compileall -q $(CODE)
	@rm -f "$(VENV)"/.ready-*
	@touch "$(READY)"

# The oldest Python served is the one to lock on: only there does every backport appear.
LOCK_PYTHON ?= python3.11
COMPILE = .venv-lock/bin/python -m piptools compile -q --strip-extras --generate-hashes --no-header \
	--no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host pyproject.toml
LOCKED = { echo "\# Written by \`make lock\` from pyproject.toml."; grep . .venv-lock/locked.txt; }

lock: ## resolve the dependencies anew and write the lock files (needs python3.11 and the network)
	"$(LOCK_PYTHON)" -m venv --clear .venv-lock
	.venv-lock/bin/python -m pip install -q --disable-pip-version-check "pip-tools>=7.5"
	$(COMPILE) --extra dev -o .venv-lock/locked.txt
	$(LOCKED) > requirements-dev.txt
	rm .venv-lock/locked.txt
	$(COMPILE) -c requirements-dev.txt -o .venv-lock/locked.txt
	$(LOCKED) > requirements.txt
	$(COMPILE) --allow-unsafe --extra server -c requirements-dev.txt -o .venv-lock/locked.txt
	$(LOCKED) > requirements-server.txt
	$(COMPILE) --allow-unsafe --extra local -c requirements-dev.txt -o .venv-lock/locked.txt
	$(LOCKED) > requirements-local.txt
	$(COMPILE) --allow-unsafe --extra bench -c requirements-dev.txt -o .venv-lock/locked.txt
	$(LOCKED) > requirements-bench.txt
	rm -rf .venv-lock
