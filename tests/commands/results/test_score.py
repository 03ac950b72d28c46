"""Scores in detail."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options, Rank, ScoredSet, Scores, Standing, scores
from mlperf_pkg.commands.results.score import SCORE_FORMATS
from mlperf_pkg.render import View
from tests.helpers.reports import FAIL, rcp, report, result_set, run
from tests.helpers.trees import SYSTEM, simulated, write_set

RUNS = (
    run(path="results/dgx/bert/result_0.txt", minutes=19.0, dropped="fastest"),
    run(path="results/dgx/bert/result_1.txt", minutes=20.0),
    run(
        path="results/dgx/bert/result_2.txt",
        minutes=30.0,
        status="aborted",
        dropped="did not converge",
    ),
)


def some_scores(**changes: Any) -> Scores:
    row = result_set(
        runs_found=3,
        unscaled_minutes=20.0,
        scaling_factor=1.025,
        score_note="only 3 of 10 runs",
        **changes,
    )
    return Scores(report(result_sets=(row,), runs=RUNS), (ScoredSet(row, RUNS),))


def test_text() -> None:
    long = "The mean to converge reaches the smallest acceptable mean of all of the runs."
    shown = SCORE_FORMATS["text"](some_scores(rcp=rcp(explanation=long)), View(80))
    assert shown == dedent(
        """\
        Scores            Minutes  Status, dropped
        bert: dgx (closed)
          result_0.txt     19.000  success, fastest
          result_1.txt     20.000  success
          result_2.txt     30.000  aborted, dropped
          olympic mean     20.000
          scaling factor   1.0250
          score            20.500
          official         20.500
          only 3 of 10 runs
          RCP: The mean to converge reaches the smallest acceptable mean of all of the
          runs.

        round 2.0: as given
        """
    )


def test_json() -> None:
    read = json.loads(SCORE_FORMATS["json"](some_scores(), View()))
    assert list(read) == ["format", "tool", "usage", "round", "round_reason", "result_sets"]
    assert read["format"] == "mlperf-pkg/score/1"
    only = read["result_sets"][0]
    assert only["score_minutes"] == 20.5
    assert [(run["minutes"], run["dropped"]) for run in only["runs"]] == [
        (19.0, "fastest"),
        (20.0, None),
        (30.0, "did not converge"),
    ]


def test_csv() -> None:
    lines = SCORE_FORMATS["csv"](some_scores(), View()).splitlines()
    assert lines[0] == (
        "submitter,system,benchmark,division,round,path,status,minutes,dropped,unscaled_minutes,"
        "scaling_factor,score_minutes,official_minutes,score_note,published_round,published_rank,"
        "published_of"
    )
    assert lines[3] == (
        "ACME,dgx,bert,closed,2.0,results/dgx/bert/result_2.txt,aborted,30.0,did not converge,20.0,"
        "1.025,20.5,20.5,only 3 of 10 runs,,,"
    )


def sorted_runs(path: Path) -> dict[str, list[str]]:
    """The runs of each set, by its system."""
    sets = scores(check([str(path)], Options())).sets
    return {scored.row.system or "": [run.path for run in scored.runs] for scored in sets}


def test_loose_logs_of_two_systems_in_one_folder(tmp_path: Path) -> None:
    first, second, third = (log for log in simulated()[:3])
    write_set(tmp_path, (first, second.replace(SYSTEM.encode(), b"other"), third))
    assert sorted_runs(tmp_path) == {
        SYSTEM: ["result_0.txt", "result_2.txt"],
        "other": ["result_1.txt"],
    }


def scores_of(*rows: dict[str, Any], **changes: Any) -> Scores:
    sets = tuple(result_set(**row) for row in rows)
    return Scores(report(result_sets=sets, **changes), tuple(ScoredSet(row, ()) for row in sets))


ROUND = scores_of(
    {},
    {"benchmark": "resnet", "score_minutes": 123.4567, "rcp": None},
    {"system": "a_system_of_many_accelerators_and_nodes", "verdict": FAIL},
    {"division": "open", "score_minutes": None, "score_note": "1 of 10 runs"},
    {"submitter": "Other", "rcp": rcp(margin_percent=None, no_limit_reason="why")},
    {"submitter": None, "path": "folder", "system": None},
)


def test_standings_of_few_sets() -> None:
    for number, lines in ((2, 2), (10, 10), (11, 0)):
        standing = Standing("5.1", 1, Rank(2, 41), "H100", Rank(1, 6))
        rows = scores_of(*number * [{}])
        sets = tuple(ScoredSet(scored.row, (), standing) for scored in rows.sets)
        shown = SCORE_FORMATS["text"](Scores(rows.report, sets), View(80))
        assert shown.count("  dgx, bert: published: 2nd of 41 on 1 accelerator in 5.1\n") == lines


def test_text_in_short() -> None:
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


def test_runs_are_shown_with_verbose_or_of_a_single_set() -> None:
    for format_ in ("text", "markdown"):
        row, runs = result_set(), (run(),)
        one, two = (
            Scores(report(result_sets=(row,) * number), (ScoredSet(row, runs),) * number)
            for number in (1, 2)
        )
        render = SCORE_FORMATS[format_]
        assert "result_0.txt" in render(one, View())
        assert "result_0.txt" not in render(two, View())
        assert render(two, View(verbose=True)).count("result_0.txt") == 2
