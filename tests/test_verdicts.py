"""The two verdicts: which findings fail them, and how those of parts are those of the whole."""

from itertools import product
from typing import Any

import pytest

from mlperf_pkg.findings import Basis, Severity, Verdict, Verdicts, Waiver, verdicts_of
from tests.helpers.reports import finding

WAIVER = Waiver("agreed", "Jane", "2026-12-31")
PASS, FAIL, NOT_CHECKED = Verdict.PASS, Verdict.FAIL, Verdict.NOT_CHECKED


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        ([], NOT_CHECKED),
        ([NOT_CHECKED], NOT_CHECKED),
        ([NOT_CHECKED, PASS], PASS),
        ([PASS, NOT_CHECKED, FAIL], FAIL),
    ],
)
def test_the_worst(verdicts: list[Verdict], worst: Verdict) -> None:
    assert Verdict.worst(verdicts) is worst
    assert Verdicts.worst(Verdicts(v, PASS) for v in verdicts).official is worst
    assert Verdicts.worst(Verdicts(PASS, v) for v in verdicts).rules is worst


@pytest.mark.parametrize(
    ("official", "rules", "whole"), list(product(Verdict, Verdict, (PASS, NOT_CHECKED)))
)
def test_a_part_fails_the_whole_but_never_passes_it(
    official: Verdict, rules: Verdict, whole: Verdict
) -> None:
    worst = Verdicts.worst([Verdicts(official, rules).failures, Verdicts(whole, whole)])
    assert worst.official is (FAIL if official is FAIL else whole)
    assert worst.rules is (FAIL if rules is FAIL else whole)


@pytest.mark.parametrize(
    ("changes", "official", "rules"),
    [
        ({}, FAIL, FAIL),
        ({"basis": Basis.OFFICIAL}, FAIL, PASS),
        ({"basis": Basis.RULES}, PASS, FAIL),
        ({"basis": Basis.ADVICE}, PASS, PASS),
        ({"severity": Severity.WARNING}, PASS, PASS),
        ({"waiver": WAIVER}, FAIL, PASS),
        ({"basis": Basis.RULES, "waiver": WAIVER}, PASS, PASS),
    ],
)
def test_what_fails(changes: dict[str, Any], official: Verdict, rules: Verdict) -> None:
    assert verdicts_of([finding(**changes)]) == Verdicts(official, rules)
