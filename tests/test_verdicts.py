"""The two verdicts: which findings fail them, and how those of parts are those of the whole."""

from itertools import product
from typing import Any

from mlperf_pkg.findings import Basis, Severity, Verdict, Verdicts, Waiver, verdicts_of
from tests.helpers.reports import finding

WAIVER = Waiver("agreed", "Jane", "2026-12-31")
PASS, FAIL, NOT_CHECKED = Verdict.PASS, Verdict.FAIL, Verdict.NOT_CHECKED


def test_the_worst() -> None:
    for verdicts, worst in [
        ([], NOT_CHECKED),
        ([NOT_CHECKED], NOT_CHECKED),
        ([NOT_CHECKED, PASS], PASS),
        ([PASS, NOT_CHECKED, FAIL], FAIL),
    ]:
        assert Verdict.worst(verdicts) is worst
        assert Verdicts.worst(Verdicts(v, PASS) for v in verdicts).official is worst
        assert Verdicts.worst(Verdicts(PASS, v) for v in verdicts).rules is worst


def test_a_part_fails_the_whole_but_never_passes_it() -> None:
    for official, rules, whole in product(Verdict, Verdict, (PASS, NOT_CHECKED)):
        worst = Verdicts.worst([Verdicts(official, rules).failures, Verdicts(whole, whole)])
        assert worst.official is (FAIL if official is FAIL else whole)
        assert worst.rules is (FAIL if rules is FAIL else whole)


def test_what_fails() -> None:
    rows: list[tuple[dict[str, Any], Verdict, Verdict]] = [
        ({}, FAIL, FAIL),
        ({"basis": Basis.OFFICIAL}, FAIL, PASS),
        ({"basis": Basis.RULES}, PASS, FAIL),
        ({"basis": Basis.ADVICE}, PASS, PASS),
        ({"severity": Severity.WARNING}, PASS, PASS),
        ({"waiver": WAIVER}, FAIL, PASS),
        ({"basis": Basis.RULES, "waiver": WAIVER}, PASS, PASS),
    ]
    for changes, official, rules in rows:
        assert verdicts_of([finding(**changes)]) == Verdicts(official, rules)
