# Two commands on a fresh machine with Python >= 3.11 and make:
#
#     make demo     draw the sample photos with the real service, in a throw-away folder
#     make test     run the whole test suite                    (make test ARGS="-k lock")
#
# and for those who work on it:
#
#     make crash    the real service under writers and faults of every kind  (make crash MINUTES=5 SEED=1; best as root)
#     make lint     the checks
#     make clean    remove what was made
#
# The environment is .venv; it is made once, and brought up to date when pyproject.toml changes.
# Another Python: make demo PYTHON=/path/to/python3.12

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
MINUTES ?= 5
SEED ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The first one that is new enough and can make environments (Debian keeps ensurepip in python3-venv).
SUITABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
PYTHON ?= $(shell for each in $(CANDIDATES); do \
	if $$each -c '$(SUITABLE)' >/dev/null 2>&1; then echo $$each; break; fi; done)

.PHONY: demo test lint crash clean help
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#     //p' Makefile

demo: $(VENV)/.ready
	$(BIN)/animed demo

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

crash: $(VENV)/.ready-dev
	$(BIN)/python -m tests.crash --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

$(VENV)/.ready: pyproject.toml
	$(make_venv)
	$(BIN)/python -m pip install --editable .
	@touch $@

# The environment for the tests is one for the demo as well.
$(VENV)/.ready-dev: pyproject.toml
	$(make_venv)
	$(BIN)/python -m pip install --editable '.[dev]'
	@touch $(VENV)/.ready $@

define make_venv
@if ! "$(PYTHON)" -c '$(SUITABLE)' >/dev/null 2>&1; then \
	echo 'animed needs Python 3.11 or newer with its venv module, and "$(PYTHON)" is not that.' >&2; \
	echo 'Install it (Debian and Ubuntu: apt install python3 python3-venv), or name one: make PYTHON=/path/to/python3' >&2; \
	exit 1; \
fi
"$(PYTHON)" -m venv $(VENV)
endef

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find animed tests -name __pycache__ -type d -prune -exec rm -rf {} +
