PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
# Without compiled modules every process that a test starts would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-slow mutants check format bench docs clean

setup: $(READY)

# One environment for everything; done again when what it is made from changes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet -c constraints.txt --group dev -e ".[all]"
	$(BIN)/evenmatch models get minilm
	$(BIN)/evenmatch models get smollm2
	$(BIN)/evenmatch models get wordnet
	$(BIN)/evenmatch models get en_core_web_sm
	touch $(READY)

demo: setup
	$(BIN)/python -m evenmatch.cli.demo

test: setup
	$(BIN)/python -m pytest -q -n 2

test-slow: setup
	$(BIN)/python -m pytest -q -n 2 -m slow

SIZE ?= 300
SEED ?= 0
mutants: setup
	$(BIN)/python -m tools.mutants --size $(SIZE) --seed $(SEED)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python -m benchmarks

docs: setup
	$(BIN)/zensical build

clean:
	rm -rf .venv site demo-out mutants
