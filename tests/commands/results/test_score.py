"""Scores in detail."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options, Rank, ScoredSet, Scores, Standing, scores
from mlperf_pkg.commands.results.score import SCORE_FORMATS
from mlperf_pkg.render import View
from tests.helpers.reports import FAIL, rcp, report, result_set, run
from tests.helpers.trees import SYSTEM, simulated, write_set

COUNTED = {"samples_to_converge": 138000, "convergence_unit": "samples"}
RUNS = (
    run(
        path="results/dgx/bert/result_0.txt",
        minutes=19.0,
        dropped="fastest",
        samples_to_converge=120000,
        convergence_unit="samples",
    ),
    run(path="results/dgx/bert/result_1.txt", minutes=20.0, **COUNTED),
    run(
        path="results/dgx/bert/result_2.txt",
        status="aborted",
        dropped="did not converge",
        samples_to_converge=None,
    ),
)
LONG = "The mean to converge reaches the smallest acceptable mean of all of the runs."
SCORED = result_set(
    rcp=rcp(explanation=LONG), unscaled_minutes=20.0, scaling_factor=1.025, score_note="only 3 runs"
)
SCORES = Scores(report(result_sets=(SCORED,), runs=RUNS), (ScoredSet(SCORED, RUNS),))


def test_text() -> None:
    assert SCORE_FORMATS["text"](SCORES, View(80)) == dedent(
        """\
        Scores            Minutes      To converge  Status, dropped
        bert: dgx (closed)
          result_0.txt     19.000  120,000 samples  success, fastest
          result_1.txt     20.000  138,000 samples  success
          result_2.txt     20.000                -  aborted, dropped
          olympic mean     20.000
          scaling factor   1.0250
          score            20.500
          official         20.500
          only 3 runs
          RCP: The mean to converge reaches the smallest acceptable mean of all of the
          runs.

        round 2.0: as given
        """
    )


@pytest.mark.parametrize(
    ("energies", "note", "lines"),
    [
        pytest.param((None, None, None), None, [], id="not measured"),
        pytest.param(
            (1_234_567.0, 1e6, None),
            None,
            [
                "result_0.txt     19.000  120,000 samples  success, fastest      1,234.6",
                "result_2.txt     20.000                -  aborted, dropped            -",
                "official         20.500                                         2,000.0",
            ],
            id="measured",
        ),
        pytest.param(
            (1e6, None, None),
            "too few runs (1 of 3) pass the official checker",
            ["no energy: too few runs (1 of 3) pass the official checker"],
            id="too few",
        ),
    ],
)
def test_energy(energies: tuple[float | None, ...], note: str | None, lines: list[str]) -> None:
    runs = [replace(run, energy_joules=joules) for run, joules in zip(RUNS, energies, strict=True)]
    joules = 2e6 if any(energies) and note is None else None
    row = replace(SCORED, energy_joules=joules, energy_note=note)
    measured = Scores(report(result_sets=(row,), runs=runs), (ScoredSet(row, tuple(runs)),))
    shown = SCORE_FORMATS["text"](measured, View(80)).splitlines()
    assert [line for line in lines if line not in map(str.strip, shown)] == []
    assert ("Energy" in shown[0]) is any(energies)


def test_no_power_beside_a_set_with_power() -> None:
    measured = tuple(replace(run, energy_joules=1e6) for run in RUNS)
    with_power = ScoredSet(replace(SCORED, energy_joules=1e6), measured)
    both = Scores(SCORES.report, (with_power, *SCORES.sets))
    shown = SCORE_FORMATS["text"](both, View(80, verbose=True))
    assert shown.count("no energy: the set has no folder power/") == 1


def test_data() -> None:
    read = json.loads(SCORE_FORMATS["json"](SCORES, View()))
    assert list(read) == ["format", "tool", "usage", "round", "round_reason", "result_sets"]
    [only] = read["result_sets"]
    assert (only["score_minutes"], only["published"]) == (20.5, None)
    dropped = [(run["minutes"], run["dropped"]) for run in only["runs"]]
    assert dropped == [(19.0, "fastest"), (20.0, None), (20.0, "did not converge")]
    standing = Standing("5.1", 1, Rank(2, 41), "H100", None)
    standings = Scores(SCORES.report, (*SCORES.sets, ScoredSet(SCORED, RUNS, standing)))
    lines = SCORE_FORMATS["csv"](standings, View()).splitlines()
    assert lines[0] == (
        "submitter,system,benchmark,division,round,path,status,minutes,dropped,"
        "samples_to_converge,energy_joules,unscaled_minutes,scaling_factor,score_minutes,official_minutes,score_note,published_round,published_rank,"
        "published_of"
    )
    run = "ACME,dgx,bert,closed,2.0,results/dgx/bert/result_2.txt,aborted,20.0,did not converge"
    assert [
        (line, ranks)
        for line, ranks in ((lines[3], ",,"), (lines[6], "5.1,2,41"))
        if line != f"{run},,,20.0,1.025,20.5,20.5,only 3 runs,{ranks}"
    ] == []


def test_loose_logs_of_two_systems_in_one_folder(tmp_path: Path) -> None:
    first, second, third = simulated()[:3]
    write_set(tmp_path, (first, second.replace(SYSTEM.encode(), b"other"), third))
    sets = scores(check([str(tmp_path)], Options())).sets
    runs = {scored.row.system: [run.path for run in scored.runs] for scored in sets}
    assert runs == {SYSTEM: ["result_0.txt", "result_2.txt"], "other": ["result_1.txt"]}


def scores_of(*rows: dict[str, Any]) -> Scores:
    sets = tuple(result_set(**row) for row in rows)
    return Scores(report(result_sets=sets), tuple(ScoredSet(row, ()) for row in sets))


ROUND = scores_of(
    {},
    {"benchmark": "resnet", "score_minutes": 123.4567, "rcp": None},
    {"system": "a_system_of_many_accelerators_and_nodes", "verdict": FAIL},
    {"division": "open", "score_minutes": None, "score_note": "1 of 10 runs"},
    {"submitter": None, "path": "folder", "system": None},
)


@pytest.mark.parametrize(("number", "lines"), [(10, 10), (11, 0)])
def test_standings_of_few_sets(number: int, lines: int) -> None:
    standing = Standing("5.1", 1, Rank(2, 41), "H100", Rank(1, 6))
    rows = scores_of(*number * [{}])
    sets = tuple(ScoredSet(scored.row, (), standing) for scored in rows.sets)
    shown = SCORE_FORMATS["text"](Scores(rows.report, sets), View(80))
    assert (
        shown.count("  dgx, bert: 2nd of 41 published results on 1 accelerator in round 5.1\n")
        == lines
    )


def test_text_in_short() -> None:
    assert SCORE_FORMATS["text"](ROUND, View(70)) == dedent(
        """\
        Submitter, system      Benchmark  Minutes  RCP margin    Verdict
        ACME (closed)
          dgx                  bert        20.500  pass +10.0 %  pass
          dgx                  resnet     123.457  not checked   pass
          a_system_of_many_accelerators_and_nodes
                               bert        20.500  pass +10.0 %  official FAIL

        ACME (open)
          dgx                  bert             -  -             pass
          dgx, bert: 1 of 10 runs

        logs in folder (closed)
          unnamed system       bert        20.500  pass +10.0 %  pass

        5 result sets; --verbose shows the runs and how each score is computed
        round 2.0: as given
        """
    )


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_runs_are_shown_with_verbose_or_of_a_single_set(format_: str) -> None:
    sets = (ScoredSet(SCORED, RUNS[:1]),) * 2
    one, two = (Scores(report(result_sets=(SCORED,) * n), sets[:n]) for n in (1, 2))
    render = SCORE_FORMATS[format_]
    shown = (render(one, View()), render(two, View()), render(two, View(verbose=True)))
    assert [text.count("result_0.txt") for text in shown] == [1, 0, 2]
