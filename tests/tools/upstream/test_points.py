"""Mistakes in reference points: every kind is found in a made folder, and nothing else is."""

from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.rulebook.load import load_round
from tests.helpers.upstream import RUNS, folder_with, point, points_in
from tests.tools.upstream.points import PointProblem, lint

ROUND = load_round("training", "4.1")


def linted(folder: Path) -> list[PointProblem]:
    return lint(folder, [ROUND])


# the point, and the kinds of mistakes in it with what was found
POINTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "samples in place of epochs": (
        {"Benchmark": "gpt3", "BS": 64, "samples to converge": RUNS},
        {},
    ),
    "three times the median": (point([10, 10, 10, 10, 10, 30]), {}),
    "more than three times the median": (
        point([10, 10, 10, 10, 10, 30.1]),
        {"outlier": "30.1, 3.0 times the median"},
    ),
    "less than a third of the median": (
        point([90, 90, 90, 90, 90, 29]),
        {"outlier": "29, 0.3 times the median"},
    ),
    "two outliers": (
        point([1000, 1000, 1000, 1000, 9000, 1]),
        {"outlier": "9,000, 9.0 times the median; 1, 0.0 times the median"},
    ),
    "a median of zero": (point([0, 0, 0, 0, 0, 3]), {"outlier": "3"}),
    "2N - 1 runs": (point(RUNS[:5]), {"few_runs": "5 runs"}),
    "equal runs": (point([7] * 6), {"equal_runs": "6 runs, all at 7"}),
    "one run": (point([7]), {"few_runs": "1 runs", "equal_runs": "1 runs, all at 7"}),
    "another benchmark": (point(RUNS, Benchmark="gpt_3"), {"misnamed": "the benchmark gpt_3"}),
}


@pytest.mark.parametrize(("record", "expected"), POINTS.values(), ids=list(POINTS))
def test_mistakes_of_a_point(
    record: dict[str, Any], expected: dict[str, str], tmp_path: Path
) -> None:
    problems = linted(points_in(tmp_path, {"gpt3_ref_64": record}))
    assert {str(problem.kind): problem.found for problem in problems} == expected


def test_a_mistake_names_its_place_and_what_is_expected(tmp_path: Path) -> None:
    points = {"good": point(RUNS), "\x1b[31m": point(RUNS[:4], BS=96)}
    (problem,) = linted(points_in(tmp_path, points))
    assert problem == PointProblem(
        kind=problem.kind,
        usage="training",
        round="4.1",
        benchmark="gpt3",
        point="\\x1b[31m",
        batch_size=96,
        file="rcp_checker/training_4.1.0/rcps_gpt3.json",
        found="4 runs",
        expected="at least 6 (2N, where a submission has N = 3)",
    )


@pytest.mark.parametrize(
    ("benchmark", "runs", "kinds"),
    [
        ("bert", 19, ["few_runs"]),
        ("bert", 20, []),
        ("resnet", 10, ["unused"]),
        ("unheard_of", 1, ["equal_runs", "unused"]),  # without a number of runs
    ],
)
def test_the_number_of_runs_is_that_of_the_benchmark(
    tmp_path: Path, benchmark: str, runs: int, kinds: list[str]
) -> None:
    record = point([10 + number % 2 for number in range(runs)], Benchmark=benchmark)
    folder = points_in(tmp_path, {"x": record}, file=f"training_4.1.0/rcps_{benchmark}.json")
    assert [str(problem.kind) for problem in linted(folder)] == kinds


def test_other_rounds_and_files_are_not_read(tmp_path: Path) -> None:
    folder_with(tmp_path, "broken", "training_9.9.0/rcps_gpt3.json")
    folder_with(tmp_path, "broken", "training_4.1.0/notes.json")
    assert linted(tmp_path) == []
