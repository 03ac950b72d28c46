"""Of more runs than required a build takes the window that the rules let be submitted."""

from __future__ import annotations

from pathlib import Path

from mlperf_pkg.commands.builder.prepare import Order, Prepared, prepare
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.results.scoring import select
from mlperf_pkg.rulebook.load import load_benchmark
from tests.helpers.workspaces import logs_of, resnet_workspace, with_failures

SEVEN = logs_of("bow-pod16", runs=7)


def prepared(root: Path, logs: tuple[bytes, ...], *, chosen: bool = True) -> Prepared:
    resnet_workspace(root, logs)
    return prepare(Folders.of(root), Order(select=chosen))


def paths(made: Prepared) -> list[str]:
    return [run.path for planned in made.plan.sets for run in planned.runs]


def test_the_median_window_is_taken(tmp_path: Path) -> None:
    every = prepared(tmp_path, SEVEN, chosen=False)
    assert len(paths(every)) == 7
    assert "SET101" in every.refusals[0]
    made = prepared(tmp_path, SEVEN)
    rules = load_benchmark("training", "2.0", "resnet")
    assert rules
    chosen = select(every.plan.sets[0].runs, rules.runs).chosen
    assert paths(made) == [run.path for run in chosen]
    assert (len(paths(made)), made.refusals) == (5, ())
    (note,) = [note for note in made.notes if "closest to the median" in note]
    assert all(path in note for path in set(paths(every)) - set(paths(made)))


def test_as_many_as_required_are_left_alone(tmp_path: Path) -> None:
    made = prepared(tmp_path, SEVEN[:5])
    assert len(paths(made)) == 5
    assert not [note for note in made.notes if "median" in note]


def test_an_invalid_median_is_refused(tmp_path: Path) -> None:
    made = prepared(tmp_path, with_failures(SEVEN, 5))
    assert "bow-pod16/resnet: no runs can be chosen: the median is infinite" in made.refusals[0]
