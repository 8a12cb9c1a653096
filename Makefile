# Verbs of the project; `make` alone is what CI runs.
.DEFAULT_GOAL := check
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(CURDIR)/.cache/tools/bin:$(PATH)

# How tests are started; `make cover` measures coverage with it.
RUN ?= python -m
WORKERS ?= auto
# The fast tests wait more than they compute, so one more than there are cores ends sooner.
FAST_WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
FAST := not (prometheus or mutation or e2e or bench or browser or slow)

.PHONY: check setup setup-helm demo test rest cover e2e lint fmt generate bench bench-fleet mutants screenshots clean

check: lint cover ## lint and every test, with coverage

.venv/.installed: requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpugauge needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

.cache/tools/.fetched: scripts/fetch_tools.sh
	scripts/fetch_tools.sh
	touch $@

setup-helm: ## Helm in .cache, built from its Go module, for the tests of the chart: two to three minutes once
	scripts/build_helm.sh

setup: .venv/.installed .cache/tools/.fetched ## .venv with every pin, Prometheus and Alertmanager in .cache

demo: setup ## the whole product on this machine, without GPU or cluster
	exec python -m demo $(ARGS)

test: setup ## the fast tests: not those marked prometheus, mutation, e2e, bench, browser or slow
	$(RUN) pytest -n $(FAST_WORKERS) -m "$(FAST)" $(ARGS)

rest: setup ## the tests that `make test` leaves out
	$(RUN) pytest -n $(WORKERS) -m "not ($(FAST))" $(ARGS)

cover: setup ## every test, with branch coverage
	coverage erase
	$(MAKE) test RUN="coverage run -m"
	$(MAKE) rest RUN="coverage run -m"
	coverage combine -q
	coverage report

e2e: setup ## only the whole stack, headless, and the watcher on a real control plane where there is one
	pytest tests/e2e $(ARGS)

lint: setup ## style, types, architecture, image, and that generated files are current
	ruff check .
	ruff format --check .
	mypy
	lint-imports --no-logo
	hadolint Dockerfile
	scripts/generate.sh --check

fmt: setup ## correct what a program can correct
	ruff check --fix --exit-zero .
	ruff format .

generate: setup ## dashboards, rules, roles, permissions, metric reference, troubleshooting, flags, faults, kubelet stubs
	scripts/generate.sh

bench: setup ## the budgets of the design, measured
	python -m bench

bench-fleet: setup ## what the rules cost in a Prometheus with 1,250 nodes: a release gate
	python -m bench.fleet

screenshots: setup ## docs/images: the demo, a /metrics response, a status page, every dashboard, a report
	python -m scripts.screenshots
	python -m tests.dashboards.images
	python -m tests.exporter.commands.report.images

mutants: setup ## every alert without each of its clauses: what no test notices
	python -m tests.alerts.mutants $(ARGS)

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .coverage .coverage.*
