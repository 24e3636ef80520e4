# `make` lists the targets. A fresh machine needs Python 3.11 or newer and pip, nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The first of these that is new enough. Choose another: make test PYTHON=/path/to/python3
CHECK_PYTHON := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c '$(CHECK_PYTHON)' 2>/dev/null && { echo "$$p"; break; }; done)

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.becalm-installed

# A helm of your own for the demo, for example: make demo HELM=/usr/bin/helm
HELM ?=
# More arguments for pytest, for example: make test PYTEST_ARGS="-k seed -x"
PYTEST_ARGS ?=
WORKERS ?= 2
# For make lock: --upgrade moves every pin.
UPGRADE ?=

SCRIPTS := tools $(wildcard demo/demo.py benchmarks)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(STAMP) $(if $(HELM),,tools) ## render demo/shop with stock helm and with becalm and compare (HELM=PATH: your helm)
	$(PY) demo/demo.py $(if $(HELM),--helm "$(HELM)")

.PHONY: test
test: $(STAMP) tools ## run the tests (PYTEST_ARGS="...": more for pytest)
	$(PY) -m pytest -n $(WORKERS) $(PYTEST_ARGS)

.PHONY: lint
lint: $(STAMP) ## check format and style
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check

.PHONY: types
types: $(STAMP) ## check types, strictly
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy $(SCRIPTS)

.PHONY: borders
borders: $(STAMP) ## check which part imports which
	$(VENV)/bin/lint-imports --no-logo

.PHONY: coverage
coverage: $(STAMP) tools ## run the tests and report branch coverage
	$(MAKE) test PYTEST_ARGS="--cov --cov-report=term-missing:skip-covered $(PYTEST_ARGS)"

.PHONY: soak
soak: $(STAMP) tools ## ten minutes of 40 calls at once, through a stand-in for argocd-cmp-server
	$(PY) -m pytest -q -s tests/contract/test_cmp_server.py -k many_calls --soak 600

.PHONY: bench
bench: $(STAMP) tools ## measure becalm beside stock helm
	$(PY) benchmarks/bench.py $(if $(HELM),--helm "$(HELM)")
	$(PY) benchmarks/service.py $(if $(HELM),--helm "$(HELM)")

# A directory of charts.
CHARTS ?=
.PHONY: bench-charts
bench-charts: $(STAMP) tools ## measure becalm beside stock helm on your own charts (CHARTS=DIR)
	$(PY) benchmarks/charts.py $(CHARTS)

.PHONY: fuzz
fuzz: $(STAMP) tools ## run the property tests at length (tens of thousands of examples)
	$(PY) -m pytest -n $(WORKERS) tests/properties --hypothesis-profile=long $(PYTEST_ARGS)

.PHONY: docs
docs: $(STAMP) ## write the pages that are made from the code
	$(PY) tools/pages.py

# Hashes of every file that fits, so that one lock serves amd64 and arm64.
LOCK := $(VENV)/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --python-version 3.11 \
	--custom-compile-command "make lock"

.PHONY: lock
lock: $(STAMP) ## pin what goes into the image, by hash (UPGRADE=--upgrade: newest versions)
	$(LOCK) $(UPGRADE) --extra redis pyproject.toml --output-file requirements.lock
	$(PY) -c 'import tomllib; print("ziglang", *tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		| $(LOCK) $(UPGRADE) - --output-file requirements-build.lock

.PHONY: tools
tools: ## fetch the pinned helm, kubectl and, where apt can, docker-registry into .tools (nothing when they are there)
	@$(if $(wildcard $(PY)),$(PY),$(PYTHON)) tools/get_tools.py
	@$(if $(wildcard $(PY)),$(PY),$(PYTHON)) tools/get_registry.py

.PHONY: kustomize
kustomize: ## build the Kustomize that recorded what tests expect, with Go, so that they compare with its `edit` too
	GOBIN=$(CURDIR)/.tools/kustomize-5.8.1 go install sigs.k8s.io/kustomize/kustomize/v5@v5.8.1

.PHONY: venv
venv: $(STAMP) ## make .venv with becalm and what its development needs

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { \
		echo "becalm needs Python 3.11 or newer and found none;" \
			"install one or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c '$(CHECK_PYTHON)' || { \
		echo "becalm needs Python 3.11 or newer; $(PYTHON) is" \
			"$$("$(PYTHON)" -c 'import platform; print(platform.python_version())')" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

.PHONY: clean
clean: ## remove .venv, .tools and everything that was generated
	rm -rf $(VENV) .tools build dist plugin/becalm.egg-info
	rm -rf .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find plugin tests tools demo -name __pycache__ -type d -prune -exec rm -rf {} +
