# `make` lists the targets. On a fresh machine `make train` or `make test` is all it takes.
NP ?= 2
LEARNERS ?=
HOSTS ?=
SEED ?= 0
RECIPE ?=
ENV_ID ?= FetchPush-v4
EPOCHS ?=
MINUTES ?=
AGAINST ?= HEAD
RUN ?= $(or $(MUSIC_TF_RUNS),runs)/latest
ARGS ?=

VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs
MUSIC_TF := $(VENV_PYTHON) -m music_tf
TRAIN_MINUTES := 6
# CPU seconds that the fifteen slowest tests may take together, and one that is not marked thorough.
SLOWEST := 1200
EVERYDAY := --everyday-limit 2
PYTEST := $(VENV_PYTHON) -m pytest -n auto --maxprocesses 4 --dist loadfile

# The first interpreter that runs, is 3.11 to 3.13, and can make virtual environments; looked for once.
SUITABLE := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
FIND_PYTHON = for name in python3.11 python3.12 python3.13 python3; do \
    $$name -c '$(SUITABLE)' >/dev/null 2>&1 && { echo $$name; break; }; done
PYTHON ?= $(eval PYTHON := $(shell $(FIND_PYTHON)))$(PYTHON)
# Python 3.13 for `make newest`, from PATH or pyenv.
FIND_NEWEST = for name in python3.13 $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/3.13*/bin/python; do \
    $$name -c '$(SUITABLE)' >/dev/null 2>&1 && { echo $$name; break; }; done
NEWEST ?= $(eval NEWEST := $(shell $(FIND_NEWEST)))$(NEWEST)
NEWEST_TESTS := tests/envs tests/losses tests/cli/test_command_lines.py tests/training/test_hands_and_mazes.py \
    tests/training/test_trainer.py tests/distributed/test_launched_runs.py tests/test_distributions.py

launch = $(MUSIC_TF) launch $(if $(HOSTS),--hosts $(HOSTS),-n $(NP)) train $(1) --env-id $(2) \
    --seed $(SEED) $(if $(LEARNERS),--learners $(LEARNERS)) \
    $(if $(EPOCHS),--epochs $(EPOCHS)) $(if $(3),--max-minutes $(3)) $(ARGS)
fetch = $(call launch,$(or $(RECIPE),ddpg_her_fast),$(1),$(MINUTES))

.DEFAULT_GOAL := help
.PHONY: help install train fetch-reach fetch-push fetch-slide fetch-pick \
    tensorboard play plot report doctor test lint types check newest newest-tests docs release same faults mutants results bench

help:  ## List the targets and their variables
	@awk -F ':.*## ' '/^[a-z -]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  variables: NP=2 ranks, LEARNERS=1 of them learns, HOSTS=a:8,b:8 in place of NP,"
	@echo "             SEED=0, RECIPE, ENV_ID (train), EPOCHS, MINUTES, RUN=runs/latest,"
	@echo "             ARGS='--any.config.field VALUE', PYTHON=python3.11 (install)"

install: $(STAMP)  ## Build .venv from requirements.lock; happens by itself when needed

# A half-built or moved environment is begun anew; a sound one is brought up to date.
$(STAMP): requirements.lock setup.py
	@test -n "$(PYTHON)" || { echo "no Python 3.11 to 3.13 with venv found;" \
	  "install one (Debian: apt-get install python3.11 python3.11-venv) or set PYTHON=" >&2; exit 3; }
	@$(VENV_PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	  --require-hashes -r requirements.lock
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
	  --no-build-isolation --config-settings editable_mode=compat --editable .
	@touch $@

train: $(STAMP)  ## Learn to control the block without a task reward (RECIPE=ddpg_music)
	$(call launch,$(or $(RECIPE),ddpg_music),$(ENV_ID),$(or $(MINUTES),$(TRAIN_MINUTES)))

fetch-reach: $(STAMP)  ## Train on FetchReach-v4 (RECIPE=ddpg_her_fast)
	$(call fetch,FetchReach-v4)

fetch-push: $(STAMP)  ## Train on FetchPush-v4 (RECIPE=ddpg_her_fast)
	$(call fetch,FetchPush-v4)

fetch-slide: $(STAMP)  ## Train on FetchSlide-v4 (RECIPE=ddpg_her_fast)
	$(call fetch,FetchSlide-v4)

fetch-pick: $(STAMP)  ## Train on FetchPickAndPlace-v4 (RECIPE=ddpg_her_fast)
	$(call fetch,FetchPickAndPlace-v4)

tensorboard: $(STAMP)  ## Show all runs on http://localhost:6006, each once: latest is a link
	@where="--logdir $(or $(MUSIC_TF_RUNS),runs)"; spec=; \
	for folder in $(or $(MUSIC_TF_RUNS),runs)/*/; do \
	    folder=$${folder%/}; [ -L "$$folder" ] || [ ! -d "$$folder" ] || spec="$$spec,$${folder##*/}:$$folder"; \
	done; \
	[ -z "$$spec" ] || where="--logdir_spec $${spec#,}"; \
	exec $(VENV_PYTHON) -m tensorboard.main --host localhost --port 6006 $$where

play: $(STAMP)  ## Film what RUN has learned
	$(MUSIC_TF) play "$(RUN)" $(ARGS)

plot: $(STAMP)  ## Draw the learning curves of RUN (one or several)
	$(MUSIC_TF) plot $(RUN) $(ARGS)

report: $(STAMP)  ## Write a page about RUN (one or several)
	$(MUSIC_TF) report $(RUN) $(ARGS)

doctor: $(STAMP)  ## Check this installation
	$(MUSIC_TF) doctor

test: $(STAMP)  ## The tests of every day: three minutes on two cores
	$(PYTEST) -m "not slow and not thorough" $(EVERYDAY) $(ARGS)

lint: $(STAMP)  ## Fail on any finding in style or format
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(STAMP)  ## Check the types
	$(VENV)/bin/mypy

check: EVERYDAY += --everyday-fails
check: test lint types  ## What CI runs: make test, style, format, types, then all other tests
	$(PYTEST) -m "thorough and not slow" --slowest slowest.csv --slowest-limit $(SLOWEST)

newest:  ## Quick tests on Python 3.13 and today's MuJoCo; skipped where that Python is missing
	@test -n "$(NEWEST)" || { echo "there is no Python 3.13: its tests, with today's MuJoCo, are skipped"; exit 0; }; \
	  $(MAKE) --no-print-directory newest-tests VENV=$(VENV)/newest PYTHON=$(NEWEST)

newest-tests: $(STAMP)
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps \
	  --require-hashes -r tests/mujoco.lock
	$(PYTEST) -m "not slow and not thorough" $(NEWEST_TESTS)

docs: $(DOCS_STAMP)  ## Build the pages as a site in site/; a dead link or an unknown reference fails
	NO_MKDOCS_2_WARNING=1 $(VENV_PYTHON) -m mkdocs build --quiet --strict
	@echo "look at it, search included: $(VENV_PYTHON) -m http.server --directory site 8000"
	@echo "then http://localhost:8000"

$(DOCS_STAMP): docs.lock $(STAMP)
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps \
	  --require-hashes -r docs.lock
	@touch $@

# The tests build and try wheel and sdist; those that they have tried are kept.
release: $(STAMP)  ## Build wheel and sdist of the last commit in dist/, and try them; nothing is uploaded
	@test -z "$$(git status --porcelain)" || { echo "release: expected a clean tree; commit or stash these:" >&2; \
	  git status --short >&2; exit 2; }
	@rm -rf build dist && mkdir build dist
	$(VENV_PYTHON) -m pytest -q tests/test_packaging.py --basetemp build/release
	@mv build/release/built/*.whl build/release/built/*.tar.gz dist && cd dist && sha256sum *

same: $(STAMP)  ## Compare all numbers with those of a commit, bit by bit (AGAINST=COMMIT, ARGS='--only sac')
	$(VENV_PYTHON) tests/same/same.py $(AGAINST) $(ARGS)

faults: $(STAMP)  ## Break jobs in every way, for long; writes faults.csv (ARGS='--faults F1 --count 100')
	$(VENV_PYTHON) tests/faults/campaign.py $(ARGS)

mutants: $(STAMP)  ## Break the code in many places and see that tests notice; writes mutants.csv
	$(VENV_PYTHON) tests/mutants/mutants.py $(ARGS)

results: $(STAMP)  ## Rebuild tables and pictures from experiments/results
	$(VENV_PYTHON) -m experiments.tables

bench: $(STAMP)  ## Measure the throughput on this machine
	$(VENV_PYTHON) experiments/benchmark.py $(ARGS)
