# Needs make and Python 3.11 or newer with its venv module; everything else is installed into $(VENV).
# Works with the make of macOS (3.81) and in folders whose names contain spaces.

PYTHON ?= python3
VENV ?= .venv
WORKSPACE ?= playground

CODE := graph_agent tools policy
PY := $(VENV)/bin/python
# The name of the stamp contains the folder: an editable install does not survive a move.
READY := $(VENV)/.ready-$(shell pwd | cksum | cut -d ' ' -f 1)

# Compiled modules are kept, whatever the shell says: each process of the tests loads a thousand of them.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help run demo test test-quick check format docs sweep bench bench-peers server lock clean

help: ## list all targets
	@awk -F ':.*## ' -v width="$$(tput cols 2>/dev/null || echo 80)" '/^[a-z-]+:.*## / { \
		line = sprintf("make %-10s", $$1); count = split($$2, words, " "); \
		for (i = 1; i <= count; i++) { \
			if (length(line) + 1 + length(words[i]) > width) { print line; line = sprintf("%15s", "") } \
			line = line " " words[i] } \
		print line }' Makefile

run: $(READY) ## open the chat in ./playground, a small sample workspace (WORKSPACE=DIR: another folder)
	@if [ "$(WORKSPACE)" = playground ] && [ ! -d playground ]; then cp -R docs/sample playground; fi
	@# Leaving with open questions (3, 4) or by Ctrl-C (130) is not a failure.
	@if [ -t 0 ] && [ -t 1 ]; then "$(PY)" -m graph_agent chat --workspace "$(WORKSPACE)"; \
	else text=$$("$(PY)" -c "$(READ_STDIN)"); \
	if [ -n "$$text" ]; then printf '%s\n' "$$text" | "$(PY)" -m graph_agent run --workspace "$(WORKSPACE)" -; \
	else echo "graph-agent is a coding agent for the terminal."; echo "Run make run in a terminal to open its chat."; \
	echo "To watch it being killed and recover: make demo"; fi; \
	fi || case $$? in 3|4|130) ;; *) exit 1 ;; esac

demo: $(READY) ## show a kill and its recovery in a minute, on temporary files
	@"$(PY)" -m graph_agent demo || case $$? in 130) ;; *) exit 1 ;; esac

test: $(READY) ## run the test suite without the long sweeps (about ten minutes on two cores)
	@echo "Running the test suite: about ten minutes on two cores."
	@echo "make test-quick takes under two minutes."
	@"$(PY)" -m pytest -q -m "not sweep" -n auto --maxprocesses 8 --dist worksteal

test-quick: $(READY) ## run the unit tests only (under two minutes)
	@echo "Running the unit tests: under two minutes."
	@"$(PY)" -m pytest -q -m "not sweep and not slow" -n auto --maxprocesses 8 --dist worksteal tests/graph_agent tests/policy tests/tools

check: $(READY) ## format, lint, types, layers, sizes, vocabulary, generated docs
	@"$(PY)" -m ruff format --check .
	@"$(PY)" -m ruff check .
	@"$(PY)" -m mypy $(CODE) tests docs/_generate
	@"$(PY)" -c "from importlinter.cli import lint_imports_command as check; check(prog_name='layers')"
	@"$(PY)" -m pytest -q tests/architecture

format: $(READY) ## format the code
	@"$(PY)" -m ruff format .
	@"$(PY)" -m ruff check --fix .

docs: $(READY) ## regenerate the generated pages of docs/
	@"$(PY)" -m docs._generate

sweep: $(READY) ## run the long tests (KILLS=N: only the kill sweep, with N kills)
	@if [ -n "$(KILLS)" ]; then "$(PY)" -m tests.crash.sweep --kills "$(KILLS)"; else "$(PY)" -m pytest -q -m sweep; fi

bench: $(READY) ## measure against plain references; writes docs/performance.md, build/bench.json (ROW=NAME: one row)
	@"$(PY)" -m pip install -q --disable-pip-version-check --require-hashes -r requirements-bench.txt
	@"$(PY)" -m tests.bench $(if $(ROW),--only "$(ROW)",--page)

bench-peers: $(READY) ## install other agents into build/peers and time them on the same work; writes docs/performance.md
	@"$(PY)" -m tests.bench.peers

server: $(READY) ## install LangGraph's development server and test the graph under it
	@"$(PY)" -m pip install -q --disable-pip-version-check --require-hashes -r requirements-server.txt
	@"$(PY)" -m pytest -q tests/graph_agent/app/test_langgraph_server.py

clean: ## remove the virtual environment and all caches; keeps ./playground and your threads
	rm -rf "$(VENV)" .venv-ci .venv-lock "$(VENV).log" .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) tests docs -name __pycache__ -type d -prune -exec rm -rf {} +


# Sets $$python to the first that is new enough: `python3` may be older than another one on the PATH.
FIND_PYTHON = for python in "$(PYTHON)" python3.14 python3.13 python3.12 python3.11 none; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; done; \
	if [ "$$python" = none ]; then \
	echo "Python 3.11 or newer not found as python3 or python3.N. Install it, or name it: make PYTHON=/path/to/python" >&2; \
	exit 1; fi

# Text on stdin, if it begins within three seconds: an inherited pipe may never end.
READ_STDIN = import select, sys; print(sys.stdin.read() if select.select([sys.stdin], [], [], 3)[0] else '')

# $(call STEP,TEXT,COMMAND): runs one step of the set-up and shows its time, on a terminal while it runs, and with pip how many
# packages are there. What the command prints is shown only if it fails.
STEP = began=$$(date +%s); printf '  %-30s' $(1); { $(2); } >"$(VENV).log" 2>&1 </dev/null & step=$$!; trap 'kill $$step; exit 130' INT TERM; \
	while kill -0 $$step 2>/dev/null; do sleep 0.2; [ ! -t 1 ] || printf '\r  %-30s %3d s%s ' $(1) $$(($$(date +%s) - began)) \
	"$$(awk '/^Collecting /{n++} /^Installing /{i=1} END {if (i) print ", installing"; else if (n) print ", package " n}' "$(VENV).log")"; \
	done; wait $$step || { printf '\r%s failed:\n' $(1); cat "$(VENV).log"; exit 1; } >&2; \
	[ ! -t 1 ] || printf '\r%58s\r  %-30s' '' $(1); printf ' %3d s\n' $$(($$(date +%s) - began)); rm -f "$(VENV).log"

$(READY): requirements-dev.txt pyproject.toml
	@echo "Setting up $(VENV) (once; needs the network, a few minutes):"
	@$(FIND_PYTHON); $(call STEP,"1/4 create $(VENV)","$$python" -m venv "$(VENV)" || \
	{ echo "Python's venv module is missing or incomplete; on Debian and Ubuntu: apt install python3-venv"; false; })
	@$(call STEP,"2/4 install the dependencies","$(PY)" -m pip install --disable-pip-version-check --no-color \
	--progress-bar off --require-hashes -r requirements-dev.txt)
	@$(call STEP,"3/4 install graph-agent","$(PY)" -m pip install --disable-pip-version-check --no-deps --no-build-isolation \
	--no-index -e .)
	@$(call STEP,"4/4 compile","$(PY)" -m compileall -q $(CODE))
	@rm -f "$(VENV)"/.ready-*
	@touch "$(READY)"

# Lock on the oldest supported Python: only there does every backport appear.
LOCK_PYTHON ?= python3.11
COMPILE = .venv-lock/bin/python -m piptools compile -q --strip-extras --generate-hashes --no-header \
	--no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host pyproject.toml
LOCKED = { echo "\# Written by \`make lock\` from pyproject.toml."; grep . .venv-lock/locked.txt; }

lock: ## resolve the dependencies and write the lock files (needs python3.11 and the network)
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
	$(COMPILE) --allow-unsafe --extra web -c requirements-dev.txt -o .venv-lock/locked.txt
	$(LOCKED) > requirements-web.txt
	$(COMPILE) --allow-unsafe --extra bench -c requirements-dev.txt -o .venv-lock/locked.txt
	$(LOCKED) > requirements-bench.txt
	rm -rf .venv-lock
