# Everything runs in .venv, made on first use. Only pip and PyPI are needed.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# One thread in each of two workers is faster than two threads in one.
PYTEST := HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2 --dist worksteal

.PHONY: quickstart test test-all torture fuzz audit bench docs release lint types format clean

quickstart: $(VENV)/quickstart
	$(RUN) examples/quickstart.py

test: $(VENV)/test $(VENV)/transformers-tests
	$(PYTEST) -m "not slow"

test-all: $(VENV)/test $(VENV)/transformers-tests
	$(PYTEST)

# 60 kills of a short run, and each damage of its last checkpoint; a few of both are in `make test`.
torture: $(VENV)/test
	$(RUN) tests/training/torture.py

# Thousands of generated command lines, model folders, tables and calls, in two processes; their number is printed in the end.
FUZZ ?= 24
fuzz: $(VENV)/test
	HF_VAT_FUZZ=$(FUZZ) $(PYTEST) tests/fuzz --timeout 3600

# Known vulnerabilities of what constraints.txt names; skipped with a reason where the service cannot be reached.
audit: $(VENV)/bin/python
	$(RUN) tests/release/audit.py

# All promised ratios in one table, and how costs grow: benchmarks/results and docs/benchmarks.md. Explained is the quickstart's model.
bench: $(VENV)/bench runs/quickstart/VAT/model.safetensors
	HF_HUB_OFFLINE=1 $(RUN) benchmarks/suite.py --check

runs/quickstart/VAT/model.safetensors: | $(VENV)/quickstart
	$(RUN) examples/quickstart.py

# The site in site/; a warning, such as of a link that leads nowhere, is an error.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

# Wheel and source distribution in dist/; the wheel, installed in an empty environment, has to work outside the tree.
release: $(VENV)/test
	rm -rf dist
	$(RUN) -m build --no-isolation
	$(RUN) -m twine check --strict dist/*
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PYTHON) -m venv "$$folder/venv" && \
	"$$folder/venv/bin/python" -m pip install --disable-pip-version-check -q -c constraints.txt dist/*.whl && \
	cp tests/release/smoke.py "$$folder" && cd "$$folder" && HF_HUB_OFFLINE=1 venv/bin/python smoke.py

lint: $(VENV)/lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

# What the annotations say, and what a user's script is told by them; torch and transformers have to be there.
types: $(VENV)/types
	$(RUN) -m mypy

format: $(VENV)/lint
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) runs site

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# An extra is installed again when what it depends on changes.
$(VENV)/quickstart: $(VENV)/bin/python pyproject.toml constraints.txt
	$(RUN) -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[quickstart]"
	@touch $@

$(VENV)/bench: $(VENV)/bin/python pyproject.toml constraints.txt
	$(RUN) -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[bench]"
	@touch $@

$(VENV)/test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(RUN) -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[test]"
	@touch $@

$(VENV)/docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(RUN) -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[docs]"
	@touch $@

$(VENV)/types: $(VENV)/test
	$(RUN) -m pip install --disable-pip-version-check -q "mypy>=2.4,<2.5"
	@touch $@

# Transformers' tests of models come with its source distribution (10 MB, of which 1 MB is kept), not with the package.
$(VENV)/transformers-tests: $(VENV)/test
	version=$$($(RUN) -c "from importlib.metadata import version; print(version('transformers'))") && \
	$(RUN) -m pip download --disable-pip-version-check -q --no-deps --no-binary transformers -d $(VENV) \
		"transformers==$$version" && \
	tar -xzf "$(VENV)/transformers-$$version.tar.gz" -C $(VENV) "transformers-$$version/tests" && \
	rm "$(VENV)/transformers-$$version.tar.gz"
	@touch $@

$(VENV)/lint: $(VENV)/bin/python pyproject.toml
	$(RUN) -m pip install --disable-pip-version-check -q "ruff>=0.17,<0.18"
	@touch $@
