"""Scores in detail."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options, ScoredSet, Scores, scores
from mlperf_pkg.commands.score.formats import SCORE_FORMATS
from mlperf_pkg.render import View
from tests.helpers.reports import rcp, report, result_set, run
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission

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


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"official_minutes": None}, "official              -  mlperf-logging gives no score"),
        ({"official_minutes": None, "runs_required": None}, "official              -  not checked"),
        ({"score_minutes": None}, "score                 -"),
    ],
)
def test_text_without_a_score(changes: dict[str, Any], line: str) -> None:
    shown = SCORE_FORMATS["text"](some_scores(**changes), View(80))
    assert f"  {line}" in shown.splitlines()


def test_text_without_a_set() -> None:
    shown = SCORE_FORMATS["text"](Scores(report(), ()), View())
    assert shown == "no result set: no log names its benchmark\nround 2.0: as given\n"


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
    rows = list(csv.DictReader(io.StringIO(SCORE_FORMATS["csv"](some_scores(), View()))))
    assert rows[2] == {
        "submitter": "ACME",
        "system": "dgx",
        "benchmark": "bert",
        "division": "closed",
        "round": "2.0",
        "path": "results/dgx/bert/result_2.txt",
        "status": "aborted",
        "minutes": "30.0",
        "dropped": "did not converge",
        "unscaled_minutes": "20.0",
        "scaling_factor": "1.025",
        "score_minutes": "20.5",
        "official_minutes": "20.5",
        "score_note": "only 3 of 10 runs",
        **dict.fromkeys(("published_round", "published_rank", "published_of"), ""),
    }


def test_markdown() -> None:
    assert SCORE_FORMATS["markdown"](some_scores(), View()).split("\n") == [
        "## MLPerf scores",
        "",
        "### bert: dgx (closed)",
        "",
        "| Run | Minutes | Status, dropped |",
        "| --- | ---: | --- |",
        "| result_0.txt | 19.000 | success, fastest |",
        "| result_1.txt | 20.000 | success |",
        "| result_2.txt | 30.000 | aborted, dropped |",
        "| olympic mean | 20.000 |  |",
        "| scaling factor | 1.0250 |  |",
        "| score | 20.500 |  |",
        "| official | 20.500 |  |",
        "",
        "- only 3 of 10 runs",
        "- RCP: All is well.",
        "",
        "round 2.0: as given",
        "",
    ]


def sorted_runs(path: Path) -> dict[str, list[str]]:
    """The runs of each set, by its system."""
    sets = scores(check([str(path)], Options())).sets
    return {scored.row.system or "": [run.path for run in scored.runs] for scored in sets}


def test_the_runs_of_a_submission(tmp_path: Path) -> None:
    folder = f"results/{SYSTEM}/resnet"
    assert sorted_runs(write_submission(tmp_path)) == {
        SYSTEM: [f"{folder}/result_{number}.txt" for number in range(5)]
    }


def test_loose_logs_of_two_systems_in_one_folder(tmp_path: Path) -> None:
    first, second, third = (log for log in simulated()[:3])
    write_set(tmp_path, (first, second.replace(SYSTEM.encode(), b"other"), third))
    assert sorted_runs(tmp_path) == {
        SYSTEM: ["result_0.txt", "result_2.txt"],
        "other": ["result_1.txt"],
    }
