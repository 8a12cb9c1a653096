# Verbs of the project; `make` alone is what CI runs.
.DEFAULT_GOAL := check
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(CURDIR)/.cache/tools/bin:$(PATH)

.PHONY: check setup demo test e2e lint fmt generate bench clean

check: lint test ## what CI runs

.venv/.installed: requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpugauge needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

.cache/tools/.fetched: scripts/fetch_tools.sh
	scripts/fetch_tools.sh
	touch $@

setup: .venv/.installed .cache/tools/.fetched ## .venv with every pin, Prometheus and Alertmanager in .cache

demo: setup ## the whole product on this machine, without GPU or cluster
	gpugauge demo $(ARGS)

test: setup ## every test, with branch coverage
	coverage erase
	coverage run -m pytest $(ARGS)
	coverage combine -q
	coverage report

e2e: setup ## only the whole stack, headless
	pytest tests/e2e $(ARGS)

lint: setup ## style, types, architecture, image, and that generated files are current
	ruff check .
	ruff format --check .
	mypy
	lint-imports --no-logo
	hadolint Dockerfile
	scripts/generate.sh --check

fmt: setup ## what can be mended by a program
	ruff check --fix --exit-zero .
	ruff format .

generate: setup ## dashboards, rules, metric reference, kubelet stubs
	scripts/generate.sh

bench: setup ## the budgets of the design, measured
	python -m bench

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .coverage .coverage.*
