"""Every code that a finding can have is explained, and nothing else is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlperf_pkg
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis
from mlperf_pkg.rulebook.explain import fix, histories, known_code, rulebook_codes
from mlperf_pkg.rulebook.load import FindingCode, codes
from tests.checks.traps import INVENTED, PASSED, REJECTED

PACKAGE = Path(mlperf_pkg.__file__).parent
CODE = re.compile(r"\b[A-Z]{2,6}\d{3}\b")


def literals(tree: ast.AST) -> Iterator[str]:
    """The codes in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and CODE.fullmatch(str(node.value)):
            yield str(node.value)


def emitted() -> set[str]:
    texts = (path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    return {code for text in texts if CODE.search(text) for code in literals(ast.parse(text))}


def test_every_code_in_the_source_is_explained_and_every_explained_one_is_in_the_source() -> None:
    assert emitted() == codes().keys()


def is_explained(entry: FindingCode) -> bool:
    has_title = entry.title[0].islower() and not entry.title.endswith(".")
    ends = entry.explanation.endswith((".", "?"))
    is_longer = len(entry.explanation) > len(entry.title)
    return has_title and ends and is_longer and bool(entry.source)


def test_explanations_say_something() -> None:
    assert [entry.code for entry in codes().values()] == [*codes()]
    assert [code for code in codes() if not CODE.fullmatch(code)] == []
    assert [entry for entry in codes().values() if not is_explained(entry)] == []


def is_fix(text: str, most: int) -> bool:
    """A few sentences of what to do, each with a full stop, which a hint leaves out."""
    ends_well = text.endswith(".")
    sentences = re.split(r"(?<=[a-z)*>'\"])\. ", text)
    return text[0].isupper() and ends_well and len(sentences) <= most


def test_fixes_say_what_to_do() -> None:
    entries = codes().values()
    hints = {entry.code: is_fix(entry.fix, 1) for entry in entries if entry.is_hint}
    assert [code for code, is_good in hints.items() if not is_good] == []
    fixes = {entry.code: is_fix(entry.fix, 2) for entry in entries if not entry.is_hint}
    assert [code for code, is_good in fixes.items() if not is_good] == []


def test_every_code_of_a_rule_has_a_fix() -> None:
    fixes = {code: fix(histories(code)) for code in rulebook_codes()}
    assert [code for code, text in fixes.items() if not is_fix(text, 3)] == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("RUN109", 'mllogger.end(key="run_stop", metadata={"status": "success"})'),
        ("RUN121", "Shorten the initialisation"),
        ("BERT111", "train until an evaluation reaches the target"),
        ("BERT121", "In the configuration of the training, set the point of the first evaluation"),
        ("BERT124", "Set opt_name in the configuration"),
        ("DLRM110", "Evaluate on the whole evaluation data set"),
        ("RN104", 'mllogger.event(key="weights_initialization", metadata={"tensor": name})'),
    ],
)
def test_what_to_do_about_a_rule(code: str, words: str) -> None:
    assert words in fix(histories(code))


@pytest.mark.parametrize("code", ["LOG101", "log101", "BERT111", "bert111"])
def test_codes_are_known_in_any_case(code: str) -> None:
    assert known_code(code) == code.upper()


@pytest.mark.parametrize(
    ("typo", "near"),
    [("BRT111", "BERT111"), ("SEED11", "SEED101"), ("xyz", "looks like SET101")],
)
def test_the_message_for_a_typo_has_what_is_near(typo: str, near: str) -> None:
    with pytest.raises(UserError, match=near):
        known_code(typo)


def test_every_code_is_in_a_test() -> None:
    """Codes of rules on records have their logs in ``rulebook/test_every_rule.py``."""
    tests = Path(__file__).parents[2].rglob("*.py")
    named = {code for path in tests for code in CODE.findall(path.read_text("utf-8"))}
    assert codes().keys() - named == set()


# ---- the basis and severity that are declared are those that findings have -----------------------


def declared(code: FindingCode) -> set[tuple[str, str]]:
    """The severities and bases of a code, with each exception alone or after another."""
    weights = {(code.severity.value, code.basis.value)}
    if code.basis is Basis.BOTH and code.since not in (None, "0.7"):  # until then
        weights.add((code.severity.value, Basis.OFFICIAL.value))
    for item in code.unless:
        weights |= {
            ((item.severity or severity), (item.basis or basis)) for severity, basis in weights
        }
    return weights


def reported() -> Iterator[tuple[str, str, str]]:
    for trap in (*PASSED, *INVENTED, *REJECTED):
        for finding in trap.findings:
            code, severity, basis, *_ = finding.split()
            if code in codes():
                yield code, severity, basis


def test_findings_have_the_declared_weight() -> None:
    weights = sorted(set(reported()))
    assert len(weights) > 50
    assert [row for row in weights if row[1:] not in declared(codes()[row[0]])] == []
