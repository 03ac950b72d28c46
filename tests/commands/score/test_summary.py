"""The scores of several result sets, a line each."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from mlperf_pkg.checker.values import Rank, ScoredSet, Scores, Standing
from mlperf_pkg.commands.score.formats import SCORE_FORMATS
from mlperf_pkg.commands.score.summary import verdict_in_short
from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.render import View
from tests.helpers.reports import FAIL, PASS, rcp, report, result_set, run


def some_scores(*rows: dict[str, Any], **changes: Any) -> Scores:
    sets = tuple(result_set(**row) for row in rows)
    return Scores(report(result_sets=sets, **changes), tuple(ScoredSet(row, ()) for row in sets))


ROUND = some_scores(
    {},
    {"benchmark": "resnet", "score_minutes": 123.4567, "rcp": None},
    {"system": "a_system_of_many_accelerators_and_nodes", "verdict": FAIL},
    {"division": "open", "score_minutes": None, "score_note": "1 of 10 runs"},
    {"submitter": "Other", "rcp": rcp(margin_percent=None, no_limit_reason="why")},
    {"submitter": None, "path": "folder", "system": None},
)


@pytest.mark.parametrize(("number", "lines"), [(2, 2), (10, 10), (11, 0)])
def test_standings_of_few_sets(number: int, lines: int) -> None:
    standing = Standing("5.1", 1, Rank(2, 41), "H100", Rank(1, 6))
    rows = some_scores(*number * [{}])
    sets = tuple(ScoredSet(scored.row, (), standing) for scored in rows.sets)
    shown = SCORE_FORMATS["text"](Scores(rows.report, sets), View(80))
    assert shown.count("  dgx, bert: published: 2nd of 41 on 1 accelerator in 5.1\n") == lines


def test_text() -> None:
    assert SCORE_FORMATS["text"](ROUND, View(70)) == dedent(
        """\
        Submitter, system    Benchmark  Minutes  RCP margin      Verdict
        ACME (closed)
          dgx                bert        20.500  pass +10.0 %    pass
          dgx                resnet     123.457  not checked     pass
          a_system_of_many_accelerators_and_nodes
                             bert        20.500  pass +10.0 %    official FAIL

        ACME (open)
          dgx                bert             -  -               pass
          dgx, bert: 1 of 10 runs

        Other (closed)
          dgx                bert        20.500  pass, no limit  pass

        logs in folder (closed)
          unnamed system     bert        20.500  pass +10.0 %    pass

        6 result sets; --verbose shows the runs and how each score is computed
        round 2.0: as given
        """
    )


@pytest.mark.parametrize("width", [70, 80, 200])
def test_a_line_per_result_set(width: int) -> None:
    lines = SCORE_FORMATS["text"](ROUND, View(width)).splitlines()
    assert len([line for line in lines if " bert " in line or " resnet " in line]) == 6
    assert all(len(line) <= width for line in lines)


def test_markdown() -> None:
    assert SCORE_FORMATS["markdown"](ROUND, View()).splitlines()[:8] == [
        "## MLPerf scores",
        "",
        "### ACME (closed)",
        "",
        "| System | Benchmark | Minutes | RCP margin | Verdict |",
        "| --- | --- | ---: | --- | --- |",
        "| dgx | bert | 20.500 | pass +10.0 % | pass |",
        "| dgx | resnet | 123.457 | not checked | pass |",
    ]


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_runs_are_shown_with_verbose_or_of_a_single_set(format_: str) -> None:
    row, runs = result_set(), (run(),)
    one, two = (
        Scores(report(result_sets=(row,) * number), (ScoredSet(row, runs),) * number)
        for number in (1, 2)
    )
    render = SCORE_FORMATS[format_]
    assert "result_0.txt" in render(one, View())
    assert "result_0.txt" not in render(two, View())
    assert render(two, View(verbose=True)).count("result_0.txt") == 2


@pytest.mark.parametrize(
    ("official", "rules", "words"),
    [
        ("pass", "pass", "pass"),
        ("fail", "fail", "FAIL"),
        ("not_checked", "not_checked", "not checked"),
        ("fail", "pass", "official FAIL"),
        ("fail", "not_checked", "official FAIL"),
        ("pass", "fail", "rules FAIL"),
        ("pass", "not_checked", "official pass"),
        ("not_checked", "pass", "rules pass"),
    ],
)
def test_verdict_in_short(official: str, rules: str, words: str) -> None:
    assert verdict_in_short(Verdicts(Verdict(official), Verdict(rules))) == words


def test_rounds_are_named_if_several() -> None:
    shown = SCORE_FORMATS["text"](
        some_scores({}, {"round": "2.1", "verdict": PASS}, round=None), View()
    )
    assert "ACME (closed, round 2.0)" in shown
    assert "ACME (closed, round 2.1)" in shown
