# Everything here needs only Python 3.11+, pip and make; the virtual environment is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OUT ?= out/reproduce
SECONDS_OF_FUZZ ?= 3600
SEED ?= 0
# Exact arithmetic runs on one thread per process; the test runner uses all cores instead.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: help reproduce test lint fuzz bench torch models-test clean

help:
	@echo "make reproduce   recompute the claims of both papers (report in $(OUT))"
	@echo "make test        run the tests"
	@echo "make lint        ruff and mypy"
	@echo "make fuzz        altered files through every reader (SECONDS_OF_FUZZ=3600 SEED=0)"
	@echo "make bench       run every script in benchmarks/ at its quick size"
	@echo "make torch       add the optional torch extra to the environment"
	@echo "make models-test add torch and transformers, and compare live with every model family"

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is required")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,viz3d,cluster]'
	touch $(READY)

reproduce: $(READY)
	$(BIN)/attngeom reproduce --out $(OUT)

test: $(READY)
	$(BIN)/python -m pytest -n auto

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

fuzz: $(READY)
	PYTHONPATH=. $(BIN)/python -m tests.fuzz --seconds $(SECONDS_OF_FUZZ) --seed $(SEED)

bench: $(READY)
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script --quick; done

torch: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[torch]'

models-test: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[models-test]'
	$(BIN)/python tests/models/live_families.py

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
