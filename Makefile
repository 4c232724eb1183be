# Everything here needs only Python 3.11+, pip and make; the virtual environment is made on first use. READY holds what
# users need; DEV adds the test runner, the linters and what optional features import; DOCS what builds the pages.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
DOCS := $(VENV)/.docs
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
OUT ?= out/reproduce
SECONDS_OF_FUZZ ?= 3600
SEED ?= 0
FORGERIES ?= 100000
# Exact arithmetic runs on one thread per process; the test runner uses all cores instead.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
# Compiled modules are kept whatever the environment says: tests start many processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help reproduce test test-thorough test-anywhere test-other-cpu browser-test docs docs-check sites site-test wheel dist notebooks lint coq forge fuzz bench torch models-test doors doors-test clean

help:
	@echo "make reproduce   recompute the claims of both papers (report in $(OUT))"
	@echo "make test        run the tests"
	@echo "make test-thorough run the tests with more repetitions and larger cases"
	@echo "make test-anywhere run the tests as on other CPUs, with oldest and newest packages, with transformers"
	@echo "make docs        build the documentation site (build/site)"
	@echo "make sites       build the sites of all releases side by side (build/sites)"
	@echo "make site-test   look at every page of the site in Chromium"
	@echo "make docs-check  run every command and Python block of README and docs, the slow ones too"
	@echo "make wheel       build the wheel and try it in an empty environment"
	@echo "make dist        build sdist and wheel, and check what is inside (build/dist)"
	@echo "make notebooks   the notebooks for Jupyter, with their outputs (build/notebooks)"
	@echo "make browser-test run the tests of the explorer, and insist on Chromium (Debian package chromium)"
	@echo "make lint        ruff and mypy"
	@echo "make fuzz        altered files through every reader (SECONDS_OF_FUZZ=3600 SEED=0)"
	@echo "make forge       false certificates of every kind through both checkers (FORGERIES=100000 SEED=0)"
	@echo "make coq         one certificate of every kind through the kernel of Coq"
	@echo "make bench       run every benchmark at its quick size; one page with plots (out/bench)"
	@echo "make torch       add the optional torch extra to the environment"
	@echo "make doors-test  test the PyTorch and JAX doors of attngeom net, in an environment of its own"
	@echo "make models-test add torch and transformers, and compare live with every model family"

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is required")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[viz3d,explore]'
	touch $(READY)

$(DEV): $(READY)
	$(PIP) -e '.[viz3d,explore,cluster,notebooks,dev]'
	touch $(DEV)

$(DOCS): $(DEV)
	$(PIP) -e '.[docs]'
	touch $(DOCS)

reproduce: $(READY)
	$(BIN)/attngeom reproduce --out $(OUT)

test: $(DEV)
	$(BIN)/python -m pytest -n auto --dist worksteal

test-thorough: $(DEV)
	ATTNGEOM_TESTS=thorough $(BIN)/python -m pytest -n auto --dist worksteal

# Golden records and pages with the kernels of another CPU than this one's.
test-other-cpu: $(DEV)
	PYTHONPATH=. $(BIN)/python -m tests.anywhere --rows Nehalem tests/golden tests/docs

test-anywhere: $(DEV)
	PYTHONPATH=. $(BIN)/python -m tests.anywhere

browser-test: $(DEV)
	ATTNGEOM_BROWSER=required $(BIN)/python -m pytest tests/explore

lint: $(DEV)
	$(BIN)/ruff check src tests benchmarks examples notebooks docs checker
	$(BIN)/ruff format --check src tests benchmarks examples notebooks docs
	$(BIN)/mypy

# The wheel, installed into an empty environment, answers.
wheel: $(READY)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(BIN)/python -m venv build/wheel/empty
	build/wheel/empty/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/*.whl
	cd build/wheel && empty/bin/attngeom --help >/dev/null
	cd build/wheel && empty/bin/attngeom dim --widths 3,3,3 --attention 2,2 --tokens 3 --prove
	cd build/wheel && empty/bin/attngeom demo demo >/dev/null && empty/bin/attngeom compare demo/a.json demo/b.json
	cd build/wheel && empty/bin/attngeom-check demo/certificate.json
	cd build/wheel && empty/bin/attngeom verify demo/certificate.json --standalone

# What would be published: built from a clean copy, checked by twine and by its contents, and tried.
dist: $(DEV)
	$(PIP) -e '.[release]'
	rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist . >/dev/null
	$(BIN)/python -m twine check --strict build/dist/*
	PYTHONPATH=. $(BIN)/python -m tests.distribution build/dist

# The notebooks for Jupyter, with what their cells show.
notebooks: $(DEV)
	mkdir -p build/notebooks
	for each in notebooks/*.py; do \
	  $(BIN)/marimo export ipynb --force --include-outputs --sort topological $$each \
	    -o build/notebooks/$$(basename $$each .py).ipynb || exit 1; done
	@echo "the notebooks: build/notebooks"

docs: $(DOCS)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "the site: build/site/index.html"

# The sites of all releases and of this checkout, side by side.
sites: $(DOCS)
	$(BIN)/python docs/versions.py build/sites

# Every page of the site in Chromium: wide and narrow, light and dark, by keyboard, searched without a network.
site-test: docs
	PYTHONPATH=. $(BIN)/python -m tests.docs.looks build/site

docs-check: $(DEV)
	PYTHONPATH=. $(BIN)/python -m tests.docs

# One certificate of every kind, and changed ones, through the kernel of Coq (Debian packages coq,
# libcoq-mathcomp-algebra).
coq: $(DEV)
	ATTNGEOM_TESTS=thorough $(BIN)/python -m pytest tests/proofs/test_coq.py

# False certificates of every kind, built by search, through both checkers.
forge: $(DEV)
	PYTHONPATH=. $(BIN)/python -m tests.proofs.forge --count $(FORGERIES) --seed $(SEED) $(if $(FORGED),--out $(FORGED))

fuzz: $(DEV)
	PYTHONPATH=. $(BIN)/python -m tests.fuzz --seconds $(SECONDS_OF_FUZZ) --seed $(SEED)

bench: $(READY)
	$(BIN)/python benchmarks/page.py --out out/bench

torch: $(READY)
	$(PIP) -e '.[torch]'

# PyTorch, transformers and JAX are large and change nothing else: they have an environment of their own.
doors: build/doors/.ready

build/doors/.ready: pyproject.toml
	test -x build/doors/bin/python || $(PYTHON) -m venv build/doors
	build/doors/bin/python -m pip install --quiet --disable-pip-version-check -e '.[models-test,jax,dev]'
	touch build/doors/.ready

doors-test: doors
	build/doors/bin/python -m pytest -n auto --dist worksteal tests/programs/test_torch*.py tests/programs/test_jax*.py \
	  tests/programs/test_doors.py tests/programs/test_bad_networks.py tests/interop/test_checkpoints.py tests/interop/test_learning_suite.py \
	  'tests/docs/test_docs.py::test_page_shows_what_runs[docs/tutorials/pytorch.md]'

models-test: $(DEV)
	$(PIP) -e '.[models-test]'
	$(BIN)/python tests/models/live_families.py
	$(BIN)/python tests/models/live_mutations.py --first-only --per-model 6
	$(BIN)/python tests/models/live_pairs.py
	$(BIN)/python tests/models/live_blocks.py 1 1000

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
