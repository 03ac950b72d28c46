"""Findings as values: their words, and how findings of one code become one."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.findings import (
    MAX_LINES,
    MAX_MESSAGES,
    MAX_VALUES,
    Basis,
    Finding,
    Occurrence,
    Pending,
    Severity,
    Waiver,
    bounded,
    folded,
    in_order,
    verdicts_of,
)
from tests.helpers.reports import finding

SET = "results/dgx/bert"
RUNS = [f"{SET}/result_{number}.txt" for number in range(5)]
WAIVER = Waiver("agreed", "Jane", "2026-12-31")


def with_values(*values: Any, message: str = "x is {found}", path: str = "a.log") -> list[Finding]:
    """Return a finding for every value, on successive lines of a file."""
    return [
        finding(path, line, message=message, found=value)
        for line, value in enumerate(values, start=1)
    ]


def only(made: Sequence[Finding], subject: str | None = SET) -> Finding:
    (one,) = folded(made, subject, RUNS)
    return one


# ---- words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "value", "expected", "text"),
    [
        ("no value", 7, 8, "no value"),
        ("x is {found}; expected {expected}", 7, 8, "x is 7; expected 8"),
        ("x is {found}; expected {expected}", "sgd", "lamb", 'x is "sgd"; expected lamb'),
        ("x is {found}", None, None, "x is null"),
        ("x is {found}", float("nan"), None, "x is NaN"),
        ("x is {found}", ["a", 1], None, 'x is ["a", 1]'),
        ("x is {found}", "y" * 99, None, f'x is "{"y" * 76}...'),
        ("x is {found}", {1, 2}, None, "x is a set"),
        ("{found:s} are missing", ["a", "b"], None, "a, b are missing"),
        ("{found:q} are missing", ["a", "b"], None, '"a", "b" are missing'),
        ("{found:,} samples", 12_288, None, "12,288 samples"),
        ("{found:.1f} minutes", 31, None, "31.0 minutes"),
        ("{found:.3g} minutes", 31.456, None, "31.5 minutes"),
        ("{found:.1f} minutes", "long", None, '"long" minutes'),
        ("{found:,} samples", float("inf"), None, "Infinity samples"),
        ("every {expected:,}", None, 150_000, "every 150,000"),
        ("one of {expected}", None, ["a", "b"], "one of a, b"),
        ("evaluated every {found:,} epochs", 1, None, "evaluated every epoch"),
        ("{found:,} epochs", 1, None, "1 epoch"),
        ("{found:,} epochs", 1.1, None, "1.1 epochs"),
    ],
)
def test_the_words_of_one_finding(message: str, value: Any, expected: Any, text: str) -> None:
    assert finding(message=message, found=value, expected=expected).text == text


@pytest.mark.parametrize(
    ("message", "values", "text"),
    [
        ("x is {found}", [7, 7], "x is 7"),
        ("x is {found}", [7, 9, 8], "x is 7 to 9"),
        ("x is {found:.1f}", [30.25, 31], "x is 30.2 to 31.0"),
        ("x is {found}", ["b", "a", "b"], 'x is "b"; 2 more like this'),
        ("x is {found}", ["c", "b", "a"], 'x is "c"; 2 more like this'),
        ("x is {found}", [True, False], "x is true or false"),
        ("x is {found}", [None, 7], "x is 7"),
        ("x is {found}", [None, None], "x is null"),
        ("no {found:s}", [["a", "b"], ["b", "c"]], "no a, b; 1 more like this"),
        ("x is {found:s}", list("abcdefgh"), "x is a; 7 more like this"),
        ("x is {found:s}", list("aaa"), "x is a"),
        ("no {found:q}", [["a", "b"], ["b", "c"]], 'no "a", "b"; 1 more like this'),
        (
            "evaluated at {found:,} samples",
            [2000, 1000],
            "evaluated at 2,000 samples; 1 more like this",
        ),
        ("evaluated every {found:,} epochs", [1, 2], "evaluated every 1 to 2 epochs"),
        ("seed {found:d} is logged", [5, 5, 7], "seed 5 is logged; 2 more like this"),
        ("x is {found}", list("abcdefgh"), 'x is "a"; 7 more like this'),
        ("x is {found}", [f"v{n}" for n in range(99)], 'x is "v0"; 98 more like this'),
    ],
)
def test_the_words_of_a_folded_finding(message: str, values: list[Any], text: str) -> None:
    made = with_values(*values, message=message)
    assert only(made).text == text
    of_runs = [replace(one, path=f"{SET}/{index}.txt") for index, one in enumerate(made)]
    assert only(of_runs).text == text


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([(1, "2"), (3, "2")], "x is 1 to 3; expected 2"),
        ([(5, "6"), (3, "4"), (4, "4")], "x is 5; expected 6; 2 more like this"),
        ([(3, "4"), (3, "5")], "x is 3; expected 4; 1 more like this"),
    ],
    ids=["one is expected", "pairs", "two are expected"],
)
@pytest.mark.parametrize("paths", [["a.log"] * 3, RUNS[:3]], ids=["lines", "runs"])
def test_what_belongs_together_stays_together(
    pairs: list[tuple[int, str]], text: str, paths: list[str]
) -> None:
    message = "x is {found}; expected {expected}"
    made = [
        finding(path, line, message=message, found=value, expected=expected)
        for line, (path, (value, expected)) in enumerate(zip(paths, pairs, strict=False), start=1)
    ]
    whole = only(made)
    assert whole.text == text
    assert whole.at(whole.places[0]).text.startswith(text[: len("x is 1")])


HOSTILE = [
    "{0} {} {found!r} {found.__class__} {found[0]} {expected:>999999999}",
    "{found:999} {found:c} {found:,d} {expected:%} {nothing} {",
    "}{",
]


@pytest.mark.parametrize("message", HOSTILE)
def test_other_braces_are_text(message: str) -> None:
    assert finding(message=message, found=7, expected=8).text == message


def test_values_are_never_templates() -> None:
    one = finding(message="{found}, {expected}", found="{expected}", expected="{found:s}")
    assert one.text == '"{expected}", {found:s}'


@given(st.text(), st.text() | st.integers() | st.floats() | st.none())
def test_any_message_has_words(message: str, value: Any) -> None:
    assert isinstance(finding(message=message, found=value).text, str)


# ---- places -------------------------------------------------------------------------------


def place(path: str, *lines: int, count: int = 1) -> Occurrence:
    return Occurrence(path, lines, count)


@pytest.mark.parametrize(
    ("made", "places", "runs"),
    [
        ([finding(RUNS[0])], [place(RUNS[0])], 1),
        ([finding(RUNS[0], 3), finding(RUNS[0], 5)], [place(RUNS[0], 3, 5, count=2)], 1),
        ([finding(RUNS[0], 3), finding(RUNS[0], 3)], [place(RUNS[0], 3, count=2)], 1),
        ([finding(RUNS[0], 3), finding(RUNS[1], 3)], [place(RUNS[0], 3), place(RUNS[1], 3)], 2),
        ([finding(SET)], [place(SET)], None),
        ([finding(SET), finding(RUNS[0])], [place(SET), place(RUNS[0])], 1),
    ],
)
def test_places(made: list[Finding], places: list[Occurrence], runs: int | None) -> None:
    one = only(made)
    assert list(one.places) == list(one.occurrences) == places
    assert (one.path, one.line, one.subject) == (made[0].path, made[0].line, SET)
    assert (one.runs, one.of_runs) == (runs, runs and len(RUNS))
    assert one.count == len(made)


# ---- what is folded -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "counts"),
    [
        ("code", "X2", [1, 1]),
        ("message", "other", [1, 1]),
        ("severity", Severity.WARNING, [1, 1]),
        ("basis", Basis.RULES, [1, 1]),
        ("waiver", WAIVER, [1, 1]),
        ("found", 7, [2]),
        ("expected", 7, [2]),
        ("hint", "x", [2]),
        ("source", "x", [2]),
        ("line", 9, [2]),
    ],
)
def test_what_differs_is_apart(name: str, value: Any, counts: list[int]) -> None:
    made = [finding(RUNS[0]), finding(RUNS[1], **{name: value})]
    assert [one.count for one in folded(made)] == counts


def test_the_first_lines_are_kept_and_all_are_counted() -> None:
    one = only([finding("a.log", line) for line in range(1, 1001)])
    assert one.places == (place("a.log", *range(1, MAX_LINES + 1), count=1000),)


@pytest.mark.parametrize("value", [[9**4000] * 9, [[1] * 9999] * 2, {"a": "x" * 10_001}])
def test_large_values_are_text(value: Any) -> None:
    assert isinstance(bounded(value), str)
    assert bounded([9**4000, [1] * 999]) == [9**4000, [1] * 999]


def test_the_first_values_are_kept_and_of_numbers_the_extremes() -> None:
    one = only(with_values(*(f"v{n}" for n in range(1000))))
    assert one.places[0].found == tuple(f"v{n}" for n in range(MAX_VALUES))
    one = only(with_values(*range(500, 1000), *range(500)))
    assert one.places[0].found == (0, 999)


def test_the_first_messages_are_kept_and_all_findings_are_counted() -> None:
    made = [finding("a.log", line, message=f"m{line}") for line in range(1, 1001)]
    findings = folded(made)
    assert [one.message for one in findings] == [f"m{line}" for line in range(1, MAX_MESSAGES + 1)]
    assert [one.count for one in findings] == [1000 - MAX_MESSAGES + 1] + [1] * (MAX_MESSAGES - 1)


def test_the_messages_of_each_code_are_counted_alone() -> None:
    made = [finding(code=code, message=f"m{n}") for code in ("X1", "X2") for n in range(20)]
    assert [one.code for one in folded(made)] == ["X1"] * MAX_MESSAGES + ["X2"] * MAX_MESSAGES


# ---- any findings -------------------------------------------------------------------------

NUMBERS = st.integers(-9, 9)
WORDS = st.sampled_from([f"v{n}" for n in range(30)])


def any_findings(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Finding]]:
    """Lists of findings in the order of files and lines."""
    one = st.builds(
        lambda kind, **fields: kind(**fields),
        st.sampled_from([Finding, Pending]),
        code=st.sampled_from(["X1", "X2"]),
        message=st.sampled_from(["wrong", "x is {found}", "x is {found}; expected {expected}"]),
        path=st.sampled_from(RUNS),
        line=st.none() | st.integers(1, 30),
        severity=st.sampled_from(Severity),
        basis=st.sampled_from(Basis),
        found=st.none() | values,
        expected=st.none() | values,
        waiver=st.sampled_from([None, WAIVER]),
    )
    return st.lists(one, max_size=40).map(lambda made: list(in_order(made)))


ANY = any_findings(NUMBERS) | any_findings(WORDS)


@given(ANY)
def test_folded_by_run_and_then_by_set(made: list[Finding]) -> None:
    by_run = [one for path in RUNS for one in folded(f for f in made if f.path == path)]
    assert alike(folded(by_run, SET, RUNS)) == alike(folded(made, SET, RUNS))


@given(ANY, st.lists(st.integers(0, 40), max_size=5))
def test_folded_in_parts(made: list[Finding], cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(made)]
    parts = [made[begin:end] for begin, end in pairwise(edges)]
    in_parts = [one for part in parts for one in folded(part)]
    assert alike(folded(in_parts, SET, RUNS)) == alike(folded(made, SET, RUNS))


def alike(findings: list[Finding]) -> list[Any]:
    """Return what folding decides; hints and sources are those of any of the findings."""
    fields = ("code", "message", "severity", "basis", "waiver", "subject", "runs", "of_runs")
    rows = [
        (type(f).__name__, f.text, f.places, *(getattr(f, n) for n in fields)) for f in findings
    ]
    return sorted(rows, key=str)


@given(ANY)
def test_folding_changes_no_verdict_and_loses_no_finding(made: list[Finding]) -> None:
    findings = folded(made, SET, RUNS)
    assert verdicts_of(findings) == verdicts_of(made)
    assert sum(one.count for one in findings) == len(made)
    assert {place.path for one in findings for place in one.places} == {one.path for one in made}
    assert folded(findings, SET, RUNS) == findings


@given(ANY)
def test_the_parts_of_any_finding_are_the_whole(made: list[Finding]) -> None:
    whole = folded(made, SET, RUNS)
    parts = [[one.at(place) for place in one.places] for one in whole]
    assert [[part.occurrences for part in of_one] for of_one in parts] == [
        [(place,) for place in one.places] for one in whole
    ]
    assert [alike(folded(of_one, SET, RUNS)) for of_one in parts] == [alike([one]) for one in whole]
    assert [verdicts_of(of_one) for of_one in parts] == [verdicts_of([one]) for one in whole]
