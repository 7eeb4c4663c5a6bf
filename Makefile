# The commands of this project. Needed: Python 3.11 or newer, make, git; everything else goes into .venv.
# PYTHON=/path/to/python3 chooses the interpreter; ARGS="…" is passed to the command.

BIN := .venv/bin
# The variable silences an advertisement of the theme's authors.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs

# Commands and tests start Python by the hundred: keep the bytecode of modules, even if the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo kernels test test-fast check docs docs-serve format doctor clean
.DEFAULT_GOAL := help

help:
	@echo "make demo     run all parts in one pipeline on Spark, killed and recovered; check the output, draw a picture"
	@echo "make test     run the whole test suite (ARGS=\"-k name\" for a part)"
	@echo "make test-fast  run the tests without Spark, subprocesses and slow ones (under a minute with compiled kernels)"
	@echo "make kernels  compile all kernels now, so that later commands do not wait for them"
	@echo "make check    run ruff, mypy, import-linter, codespell, the check of our prose; build the documentation"
	@echo "make docs     build the documentation site into site/, and run the notebooks"
	@echo "make docs-serve  show the site on port 8000, and build it again when a page changes"
	@echo "make format   let ruff format and fix what it can"
	@echo "make doctor   show what this machine has, what is missing and how to fix it"
	@echo "make setup    only build .venv (the other commands do this first)"
	@echo "make clean    remove .venv and everything that was built or generated"

setup:
	@sh scripts/setup.sh

demo: setup
	@$(BIN)/pathcast demo $(ARGS)

kernels: setup
	@$(BIN)/python -m pathcast.kernels $(ARGS)

test: setup
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder $(ARGS)

test-fast: setup
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup --fast $(ARGS)

# mkdocs counts warnings only if it prints them: no --quiet.
check: setup
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/codespell
	@$(BIN)/python scripts/check_language.py
	@$(MKDOCS) build --strict --site-dir .tmp/site

docs: setup
	@PATHCAST_RUN_NOTEBOOKS=true $(MKDOCS) build --strict

docs-serve: setup
	@$(MKDOCS) serve $(ARGS)

format: setup
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

doctor: setup
	@$(BIN)/pathcast doctor $(ARGS)

clean:
	rm -rf .venv .tmp build dist site pathcast-demo src/*.egg-info lab/src/*.egg-info
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db artifacts
	find src lab tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
