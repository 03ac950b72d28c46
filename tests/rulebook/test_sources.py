"""Sources: every one that a rule or a finding cites is a heading of ``sources.yaml``."""

import ast
from pathlib import Path
from typing import Any

import pytest

import mlperf_pkg
from mlperf_pkg.findings import Basis
from mlperf_pkg.infra.resources import rules_read_from
from mlperf_pkg.rulebook.check import check_rulebook, problem_of_source
from mlperf_pkg.rulebook.explain import all_uses
from mlperf_pkg.rulebook.load import (
    as_written,
    codes,
    finding_of,
    first_round,
    headings,
    load_round,
)
from mlperf_pkg.rulebook.model import LOGGING, OWN, version_of
from tests.helpers.own_rules import FILES, ROUND_FILE, written

PROBLEMS = [
    ("training_rules, Run Results", ""),
    ("mlperf-logging, ruleset 2.0.0", ""),
    ("mlperf-logging, package_checker", ""),
    ("mlperf-pkg: inputs come from strangers", ""),
    (
        "training_rules, Benchmark results",
        "'Benchmark results' is not a heading of training_rules; did you mean 'Benchmark Results'?",
    ),
    (
        "submission_rules, Structure",
        "'Structure' is not a heading of submission_rules; did you mean 'Directory structure'?",
    ),
    ("mlperf-pkg", "'mlperf-pkg' is not a document"),
    ("mlperf-logging", "'' is not a heading of mlperf-logging"),
]
BEGINNINGS = (OWN, *(f"{document}, " for document in headings()))


@pytest.mark.parametrize(("text", "problem"), PROBLEMS)
def test_what_may_be_cited(text: str, problem: str) -> None:
    assert problem_of_source(text).startswith(problem)
    assert bool(problem_of_source(text)) is bool(problem)


def test_the_sources_of_findings_in_the_code() -> None:
    paths = sorted(Path(mlperf_pkg.__file__).parent.rglob("*.py"))
    sources = {
        f"{path}:{node.lineno}": node.value
        for path, text in ((path, path.read_text("utf-8")) for path in paths)
        if any(f'"{beginning}' in text for beginning in BEGINNINGS)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.startswith(BEGINNINGS) and node.value != OWN
    }
    assert len(sources) > 10
    assert {place: text for place, text in sources.items() if problem_of_source(text)} == {}


def test_the_sources_of_codes_and_of_all_rules_of_all_rounds() -> None:
    cited = {code.source for code in codes().values()} | {use.rule.source for use in all_uses()}
    assert [text for text in cited if problem_of_source(text)] == []
    official = {use.rule.source for use in all_uses() if use.rule.basis is Basis.OFFICIAL}
    assert {text.rpartition(" ")[0] for text in official} == {"mlperf-logging, ruleset"}


WRITTEN = (Basis.BOTH, Basis.RULES)


def test_every_written_code_has_the_round_since_which_it_applies() -> None:
    written = [code for code in codes().values() if code.basis in WRITTEN]
    undated = [code for code in written if code.since is None]
    assert len(written) - len(undated) > 60
    assert all(code.source.startswith((OWN, LOGGING)) for code in undated)


def test_what_was_written_later() -> None:
    """Checks of a result set leave these to their rounds; new ones elsewhere must ask for
    themselves.
    """
    later = {code.code for code in codes().values() if version_of(code.since or "0.7") > (0, 7)}
    of_sets = {code for code in later if code.startswith(("SET", "SEED", "RCP", "POW"))}
    assert later - of_sets == {"SYS305"}


ROUNDS_OF_FINDINGS = [
    ("training", "2.0", "SEED102", "both", "official"),
    ("training", "4.1", "SEED102", "both", "both"),
    ("hpc", "3.0", "SEED102", "both", "official"),
    ("training", "4.0", "SEED105", "rules", None),
    ("training", "4.1", "SEED105", "rules", "rules"),
    ("training", "3.0", "POW205", "rules", None),
    ("hpc", "3.0", "POW205", "rules", "rules"),
    ("training", "0.7", "SET101", "official", "official"),
]


@pytest.mark.parametrize(("usage", "name", "code", "basis", "expected"), ROUNDS_OF_FINDINGS)
def test_a_finding_as_the_rules_of_a_round_have_it(
    usage: str, name: str, code: str, basis: str, expected: str | None
) -> None:
    finding = finding_of(code, "text", "path", basis=Basis(basis))
    written = [item.basis for item in as_written([finding], load_round(usage, name))]
    assert written == ([] if expected is None else [expected])


def is_older_than_its_text(use: Any) -> bool:
    """A rule of a benchmark applies from the round of its file on."""
    since = first_round(use.rule.source)
    if since is None:
        return not use.rule.source.startswith((OWN, LOGGING))
    return version_of(since) > load_round(use.usage, use.round).text_version


def test_no_rule_is_older_than_the_text_that_it_cites() -> None:
    """Three thousand rules, which are not a test each: that takes longer than the comparison."""
    uses = [use for use in all_uses() if use.rule.basis in WRITTEN]
    assert len(uses) > 3000
    assert [use for use in uses if is_older_than_its_text(use)] == []


SOURCES = [
    # By its own source, its basis, its key, its file.
    ("training", "5.1", "RUN131", None),
    ("training", "6.0", "RUN131", "training_rules, Numerical formats"),
    ("training", "2.0", "RN104", "mlperf-logging, ruleset 2.0.0"),
    ("training", "6.0", "LLAMAL126", "training_rules, Quality measure"),
    ("training", "6.0", "LLAMAL124", "training_rules, Llama 3.1 405b hyperparameter constraints"),
    ("training", "6.0", "OSS125", "training_rules, Small LLM MoE pretraining"),
    ("training", "4.0", "RUN121", "training_rules, Run Results"),
    ("hpc", "3.0", "RUN121", "hpc_training_rules, Run Results"),
]


@pytest.mark.parametrize(("usage", "name", "code", "source"), SOURCES)
def test_the_source_of_a_rule(usage: str, name: str, code: str, source: str | None) -> None:
    place = (usage, name, code)
    uses = [use for use in all_uses() if (use.usage, use.round, use.rule.code) == place]
    of_closed = [use.rule.source for use in uses if use.layer.division != "open"]
    assert of_closed[:1] == ([source] if source else [])


def test_a_folder_of_rules_adds_headings_of_its_own(tmp_path: Path) -> None:
    own = 'training_rules: {Appendix of ours: "7.0"}\n'
    source = 'source: "training_rules, Appendix of ours"'
    rules = FILES[ROUND_FILE].replace("occurs: at", f"{source}, occurs: at")
    check_rulebook(written(tmp_path, {**FILES, ROUND_FILE: rules, "sources.yaml": own}))
    with rules_read_from(tmp_path):
        assert problem_of_source("training_rules, Appendix of ours") == ""
        assert problem_of_source("training_rules, Run Results") == ""
    assert problem_of_source("training_rules, Appendix of ours")
