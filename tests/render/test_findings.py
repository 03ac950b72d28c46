"""Findings in words: which are shown, where they are, and how many."""

from collections.abc import Sequence
from typing import Any

import pytest

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, Waiver, folded
from mlperf_pkg.render import findings
from mlperf_pkg.render.findings import system_titles, verdict_line
from mlperf_pkg.results.report import DriftRow, ResultSetRow
from tests.helpers.reports import (
    NOT_CHECKED,
    PASS,
    finding,
    on_raw_set,
    raw_sets,
    report,
    result_set,
    run,
    system,
)
from tests.helpers.reports import SET as SET_ID

SET = "results/dgx/bert"
RUNS = [f"{SET}/result_{number}.txt" for number in range(12)]


def in_runs(*numbers: int) -> list[Finding]:
    """Return equal findings, one per run, on successive lines."""
    return [finding(RUNS[number], 10 + number) for number in numbers]


def on_lines(*lines: int) -> list[Finding]:
    return [finding("a.log", line) for line in lines]


def in_files(*paths: str) -> list[Finding]:
    return [finding(path) for path in paths]


PLACES: list[tuple[str, Sequence[Finding], str | None, str]] = [
    # name, findings, what they are about, how they are shown
    ("a file", in_files("a.log"), None, "a.log: wrong"),
    ("another line", on_lines(3, 9), None, "a.log:3: wrong (the same on line 9)"),
    ("other lines", on_lines(3, 9, 10, 12), None, "a.log:3: wrong (the same on lines 9, 10, 12)"),
    ("many lines", on_lines(*range(1, 6)), None, "a.log:1: wrong (the same on 4 other lines)"),
    ("a run", in_runs(2), SET, f"{RUNS[2]}:12: wrong (1 of 12 runs)"),
    (
        "a run twice",
        [*in_runs(2), finding(RUNS[2], 15)],
        SET,
        f"{RUNS[2]}:12: wrong (1 of 12 runs, the same on line 15)",
    ),
    (
        "two runs",
        in_runs(10, 2),
        SET,
        f"{SET}: wrong (2 of 12 runs: result_10.txt:20, result_2.txt:12)",
    ),
    ("four runs", in_runs(1, 2, 3, 4), SET, f"{SET}: wrong (4 of 12 runs; first result_1.txt:11)"),
    (
        "five files",
        in_files(*(f"A/{n}" for n in range(5))),
        "A",
        "A: wrong (5 places: 0, 1, 2 and 2 more)",
    ),
    ("here", in_files("x", "y/z"), ".", "x: wrong (the same for y/z)"),
    (
        "runs here",
        in_runs(2, 3),
        ".",
        f"the submission: wrong (2 of 12 runs: {RUNS[2]}:12, {RUNS[3]}:13)",
    ),
]


@pytest.mark.parametrize(
    ("made", "subject", "shown"), [pytest.param(*row, id=name) for name, *row in PLACES]
)
def test_places(made: Sequence[Finding], subject: str | None, shown: str) -> None:
    (one,) = folded(made, subject, RUNS)
    assert f"{findings.location(one)}: {findings.sentence(one)}" == shown


WAIVER = Waiver("agreed", "Jane", "2026-12-31")


WARNING = Severity.WARNING
BOTH_FAIL = Verdicts(Verdict.FAIL, Verdict.FAIL)
ACCEPTS = "pass (mlperf-logging 9.9.9)"
REJECTS = "FAIL (mlperf-logging 9.9.9)"
SKIPS = "not checked, as mlperf-logging 9.9.9 does not check benchmarks that are not in round 2.0"


@pytest.fixture(autouse=True)
def a_round_without_ruleset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let mlperf-logging have the rules of every round but 7.0."""
    monkeypatch.setattr(findings, "has_ruleset", lambda _, name: name != "7.0")


def path_of(index: int) -> str:
    return f"results/dgx{index}/bert"


def sets(number: int, unchecked: int = 0) -> dict[str, Any]:
    """Return that many result sets, the last of which were not checked."""
    verdicts = [*[PASS] * (number - unchecked), *[NOT_CHECKED] * unchecked]
    rows = (
        result_set(path=path_of(index), system=f"dgx{index}", verdict=verdict)
        for index, verdict in enumerate(verdicts)
    )
    return {"result_sets": tuple(rows)}


def on_sets(number: int, times: int = 1, **changes: Any) -> list[Finding]:
    """Return findings on the first sets."""
    return [
        finding(path_of(index), code=f"X{time}", set=f"ACME/dgx{index}/bert/closed", **changes)
        for index in range(number)
        for time in range(times)
    ]


RULES = Basis.RULES
ROWS: list[tuple[str, Verdicts, dict[str, Any], Sequence[Finding], str, str]] = [
    # what is reported, the verdicts, rows, findings, the official verdict, the verdict by the rules
    ("nothing", PASS, sets(2), [], ACCEPTS, "pass"),
    (
        "warnings",
        PASS,
        sets(184),
        on_sets(4, 3, severity=WARNING, basis=RULES),
        ACCEPTS,
        "pass, 12 warnings in 4 of 184 result sets",
    ),
    (
        "elsewhere",
        BOTH_FAIL,
        {**sets(9), "systems": (system(path="systems/x.json"),)},
        [finding("systems/x.json"), finding("y.gz", severity=WARNING)],
        f"{REJECTS}, 1 error in 1 system description; 1 warning in 1 file",
        "FAIL, 1 error in 1 system description; 1 warning in 1 file",
    ),
    (
        "in one of two sets in one folder",
        BOTH_FAIL,
        raw_sets(),
        [*on_raw_set("beta"), *on_raw_set("beta", finding("beta_1.log", 7))],
        f"{REJECTS}, 2 errors in 1 of 2 result sets",
        "FAIL, 2 errors in 1 of 2 result sets",
    ),
    (
        "only logs judged",
        PASS,
        {"result_sets": (result_set(judged=False),)},
        [],
        "pass (mlperf-logging 9.9.9, logs only)",
        "pass",
    ),
    (
        "notes, waived",
        PASS,
        sets(9),
        [*on_sets(1, severity=Severity.NOTE), *on_sets(1, waiver=WAIVER)],
        ACCEPTS,
        "pass",
    ),
    (
        "some unchecked",
        PASS,
        sets(9, 2),
        [],
        f"{ACCEPTS}, 2 of 9 result sets not checked",
        "pass, 2 of 9 result sets not checked",
    ),
    (
        "all unchecked",
        NOT_CHECKED,
        sets(2, 2),
        on_sets(1),
        SKIPS,
        "not checked, as mlperf-pkg has no rules for the benchmark",
    ),
    (
        "a round without rules",
        Verdicts(Verdict.NOT_CHECKED, Verdict.PASS),
        {**sets(1), "round": "7.0"},
        [],
        "not checked, as mlperf-logging 9.9.9 has no rules for round 7.0",
        "pass",
    ),
    (
        "rounds without rules",
        Verdicts(Verdict.NOT_CHECKED, Verdict.PASS),
        {**sets(1), "round": None},
        [],
        (
            "not checked, as mlperf-logging 9.9.9 has no rules for these rounds, or does not check"
            " these benchmarks"
        ),
        "pass",
    ),
    (
        "loose logs",
        PASS,
        {"runs": (run(), run(verdict=NOT_CHECKED))},
        [],
        f"{ACCEPTS}, 1 of 2 logs not checked",
        "pass, 1 of 2 logs not checked",
    ),
    (
        "unchecked descriptions",
        NOT_CHECKED,
        {"systems": (system(verdict=NOT_CHECKED),), "round": "7.0"},
        [],
        "not checked, as mlperf-logging 9.9.9 has no rules for round 7.0",
        "not checked, as mlperf-pkg has no rules for the benchmark",
    ),
    (
        "only descriptions",
        NOT_CHECKED,
        {"systems": (system(),)},
        [],
        "not checked, as there is no result set",
        "not checked, as there is no result set",
    ),
    (
        "no round",
        NOT_CHECKED,
        {"round": None, "round_reason": "nothing gives the round"},
        [],
        "not checked, as nothing gives the round",
        "not checked, as nothing gives the round",
    ),
    (
        "not as packed",
        NOT_CHECKED,
        sets(2, 2),
        [finding("a.tar.gz", code="PACK102")],
        "not checked, as it is not known whether these files are the ones that were packed",
        "not checked, as it is not known whether these files are the ones that were packed",
    ),
]


@pytest.mark.parametrize(
    ("verdict", "rows", "made", "official", "rules"),
    [pytest.param(*row, id=name) for name, *row in ROWS],
)
def test_verdicts(
    verdict: Verdicts, rows: dict[str, Any], made: Sequence[Finding], official: str, rules: str
) -> None:
    checked = report(verdict=verdict, findings=made, **rows)
    assert verdict_line(checked, Basis.OFFICIAL) == f"official: {official}"
    assert verdict_line(checked, Basis.RULES) == f"rules: {rules}"


DRIFT = DriftRow("mlperf-logging 9.9.8", "mlperf-logging 9.9.9", ("bert of 2.0",), Verdict.FAIL)
OF_TWO_ROUNDS = DriftRow("mlperf-logging 9.9.8", "mlperf-logging 9.9.9", ("a", "b"), Verdict.PASS)
TAKEN_BACK = Verdicts(Verdict.NOT_CHECKED, Verdict.PASS)


@pytest.mark.parametrize(
    ("drift", "verdict", "official"),
    [
        pytest.param(
            DRIFT,
            TAKEN_BACK,
            "official by mlperf-logging 9.9.8: FAIL; the installed version 9.9.9 differs in bert"
            " of 2.0",
            id="all is concerned",
        ),
        pytest.param(
            OF_TWO_ROUNDS,
            TAKEN_BACK,
            "official by mlperf-logging 9.9.8: pass; the installed version 9.9.9 differs in a; b",
            id="two rounds",
        ),
        pytest.param(
            DRIFT,
            PASS,
            f"official: {ACCEPTS}; the installed version 9.9.9 differs in bert of 2.0",
            id="accepted, by other points",
        ),
        pytest.param(
            DRIFT,
            BOTH_FAIL,
            f"official: {REJECTS}; the installed version 9.9.9 differs in bert of 2.0",
            id="what is not concerned fails",
        ),
    ],
)
def test_the_official_verdict_where_mlperf_logging_differs(
    drift: DriftRow, verdict: Verdicts, official: str
) -> None:
    checked = report(verdict=verdict, drift=drift, **sets(1))
    assert verdict_line(checked, Basis.OFFICIAL) == official


def test_the_verdict_by_the_rules_is_not_concerned() -> None:
    checked = report(verdict=TAKEN_BACK, drift=DRIFT, **sets(1))
    assert verdict_line(checked, Basis.RULES) == "rules: pass"


def raw(**changes: Any) -> ResultSetRow:
    return result_set(**{"path": ".", "submitter": None, **changes})


OTHER = "Other/dgx/bert/closed"


@pytest.mark.parametrize(
    ("rows", "titles"),
    [
        ([raw(), raw(path="logs", system="b")], ["dgx (closed)", "b (closed, in logs)"]),
        ([raw(id=SET_ID), raw(id=OTHER)], [SET_ID, OTHER]),
        ([raw(scaling="strong"), raw(scaling="weak")], ["dgx (closed)", "dgx (closed)"]),
        ([result_set(), result_set(submitter="B")], ["ACME: dgx (closed)", "B: dgx (closed)"]),
    ],
)
def test_titles_tell_sets_of_a_benchmark_apart(rows: list[ResultSetRow], titles: list[str]) -> None:
    made = report(result_sets=tuple(rows))
    assert [system_titles(made)(row) for row in rows] == titles
