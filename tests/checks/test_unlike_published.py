"""Advice on sets unlike all published ones, with simulated runs and made-up published results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks import published, result_sets
from mlperf_pkg.published.model import PublishedSet, Setting
from mlperf_pkg.run.model import Run
from tests.helpers.published import published_set, results_of
from tests.helpers.trees import SYSTEM, write_submission

KEY = "lars_opt_base_learning_rate"
MODEL = "Graphcore Bow IPU"


def peer(number: int, **fields: Any) -> PublishedSet:
    """A published set of resnet: 16 accelerators, 20 minutes."""
    defaults = {
        "round": "1.1",
        "submitter": f"S{number % 5}",
        "path": f"S{number % 5}/results/box{number}/resnet",
        "benchmark": "resnet",
        "accelerators": 16,
        "accelerator_model": MODEL,
        "score_minutes": 20.0,
    }
    return published_set(**{**defaults, **fields})


def settings(sets: Sequence[PublishedSet], *values: object, key: str = KEY) -> list[Setting]:
    """The same values in turn."""
    return [Setting(i, key, str(values[i % len(values)]), 5) for i in range(len(sets))]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_submission(tmp_path / "v2.0/Graphcore").parent


def texts(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    sets: Sequence[PublishedSet],
    of_sets: Sequence[Setting] = (),
) -> list[str]:
    results = results_of(*sets, settings=of_sets)
    monkeypatch.setattr(published, "usable_results", lambda: results)
    report = check([str(root)], Options(jobs=1)).report
    return [
        f"{f.code} {f.severity} {f.basis} {f.subject} {f.text}"
        for f in report.findings
        if f.code in ("SET162", "SET163")
    ]


def own_rate(root: Path) -> float:
    runs: Iterable[Run] = check([str(root)], Options(jobs=1)).runs
    return float(next(run.hyperparameters[KEY] for run in runs))


PEERS = [peer(number) for number in range(20)]
HEAD = f"note advice Graphcore/results/{SYSTEM}/resnet"


@pytest.mark.parametrize(
    ("factors", "limits"),
    [
        ((3.0,), "{0:.6g}"),
        ((2.1, 30), "{0:.6g} to {1:.6g}"),
        ((0.1, 0.4), "{0:.6g} to {1:.6g}"),
        ((1.9,), ""),
        ((0.51,), ""),
        ((0.1, 10), ""),
        ((1.0,), ""),
    ],
)
def test_hyperparameters(
    root: Path, monkeypatch: pytest.MonkeyPatch, factors: tuple[float, ...], limits: str
) -> None:
    own = own_rate(root)
    values = [own * factor for factor in factors]
    words = f"{KEY} {own:.6g}; all published sets of resnet have {KEY} {limits.format(*values)}"
    expected = [f"SET162 {HEAD} {words}"] if limits else []
    assert texts(root, monkeypatch, PEERS, settings(PEERS, *values)) == expected


FEW = PEERS[:19]
OF_FOUR = [peer(number, submitter=f"S{number % 4}") for number in range(20)]
OPEN = [peer(number, division="open") for number in range(20)]
OTHERS = [peer(number, benchmark="bert") for number in range(20)]


@pytest.mark.parametrize(
    "sets", [FEW, OF_FOUR, OPEN, OTHERS], ids=["few sets", "four submitters", "open", "another"]
)
def test_without_enough_sets_to_compare_with(
    root: Path, monkeypatch: pytest.MonkeyPatch, sets: Sequence[PublishedSet]
) -> None:
    assert texts(root, monkeypatch, sets, settings(sets, 1e6)) == []


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("lars_opt_learning_rate_decay_steps", [1e9]),
        ("opt_name", ['"lamb"']),
        (KEY, ["[1, 2]"]),
        ("opt_unknown", [1]),
    ],
)
def test_what_is_not_compared(
    root: Path, monkeypatch: pytest.MonkeyPatch, key: str, values: Sequence[object]
) -> None:
    assert texts(root, monkeypatch, PEERS, settings(PEERS, *values, key=key)) == []


def scores(minutes: Sequence[float], **fields: Any) -> list[PublishedSet]:
    return [peer(i, score_minutes=score, **fields) for i, score in enumerate(minutes)]


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (scores([42, 50, 60]), "2.1 times as fast as the fastest"),
        (scores([9.9, 8, 5]), "2.0 times as slow as the slowest"),
        (scores([25, 50, 60]), ""),
        (scores([15, 5, 5.5]), ""),
        (scores([42, 50]), ""),
        (scores([42, 50, 60], submitter="one"), ""),
        (scores([42, 50, 60], accelerators=8), ""),
        (scores([42, 50, 60], accelerator_model="another"), ""),
        (scores([42, 50, 60], division="open"), ""),
        (scores([42, 50, 60], accelerator_model=MODEL.upper()), "2.1 times as fast as the fastest"),
    ],
)
def test_scores(
    root: Path, monkeypatch: pytest.MonkeyPatch, sets: Sequence[PublishedSet], words: str
) -> None:
    notes = texts(root, monkeypatch, sets)
    assert len(notes) == bool(words)
    for text in notes:
        limit, model = sets[0].score_minutes, sets[0].accelerator_model
        assert f" minutes: {words} published result on 16 {model}, {limit:.3f} minutes" in text
        assert text.startswith(f"SET163 {HEAD} the score is ")
        assert text.endswith("(S0 in 1.1)")


def test_a_published_set_is_not_compared(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_sets, "published_runs", lambda *_: None)
    assert texts(root, monkeypatch, scores([42, 50, 60])) == []


def test_an_open_set_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_submission(tmp_path / "v2.0/Graphcore", division="open")
    assert texts(tmp_path / "v2.0", monkeypatch, scores([42, 50, 60])) == []


@pytest.mark.parametrize(("round_", "count"), [("1.1", 1), ("0.7", 0)])
def test_rounds_with_another_target_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round_: str, count: int
) -> None:
    """The target of bert changed after 0.7."""
    write_submission(tmp_path / "v2.0/Graphcore", "bert")
    sets = scores([42, 50, 60], round=round_, benchmark="bert")
    assert len(texts(tmp_path / "v2.0", monkeypatch, sets)) == count
