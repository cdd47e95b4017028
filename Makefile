# Everything a clone needs, from nothing but Python 3.11+, git and a compiler or Go. `make help` lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

bin := .venv/bin
paths := $(wildcard core operator api agent sdk deploy migrations tests docs)

.PHONY: help setup demo clean-demo test check bench

help:  ## Say what can be made
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

setup:  ## Make .venv with the `muster` command, and find or build the control plane's binaries
	@deploy/setup.sh
	@$(bin)/python -m muster_local.binaries >/dev/null

demo: setup  ## Train the example on a local cluster and see what each epoch cost (leaves the cluster up)
	@$(bin)/python -m muster_cli.demo

clean-demo:  ## Remove the demo's cluster and its checkpoints
	@if [ -x $(bin)/python ]; then $(bin)/python -m muster_cli.demo --clean; fi

test: setup  ## Run all tests but those that need a GPU or measure, and print branch coverage
	@$(bin)/pytest -q -m "not gpu and not bench" --cov --cov-report=term

check: setup  ## Format, lint, types, layers, the chart, and generated files in step with their sources
	@$(bin)/ruff format --check --quiet $(paths)
	@$(bin)/ruff check --quiet $(paths)
	@$(bin)/mypy
	@$(bin)/lint-imports --no-logo
	@$(bin)/python docs/generate.py --check
	@$(bin)/python deploy/examples/generate.py --check
	@if command -v helm >/dev/null; then helm lint --quiet charts/muster; fi

bench: setup  ## Measure scheduling, real traces and throughput into build/bench.json (about an hour)
	@mkdir -p build
	@$(bin)/python -m muster_local.bench.record build/bench.json
	@$(bin)/python -m muster_local.bench.tables build/bench.json README.md docs/benchmarks.md
