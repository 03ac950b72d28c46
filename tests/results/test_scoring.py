"""Scores: tables of the written rule, and the official olympic mean live."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.result_summarizer import result_summarizer as summarizer

from mlperf_pkg.results import scoring
from mlperf_pkg.results.scoring import RunTime, Score

MINUTES = st.lists(st.floats(0.01, 1e5), max_size=50)
DROP = st.sampled_from([1, 4])


def result_set(*minutes: float | None) -> list[RunTime]:
    """Runs a, b, c, ...; those without minutes did not converge."""
    return [
        RunTime(chr(ord("a") + at), value, converged=value is not None)
        for at, value in enumerate(minutes)
    ]


@pytest.mark.parametrize(
    ("minutes", "drop", "already_dropped", "mean"),
    [
        ([3, 1, 2], 1, 0, 2),
        ([5, 4, 3, 2, 1], 1, 0, 3),
        ([4, 3, 2, 1], 1, 1, 3),
        ([1, 2], 1, 0, None),
        ([1, 2], 1, 1, 2),
        ([], 1, 0, None),
        ([], 1, 1, None),
        ([7], 0, 0, 7),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], 4, 0, 5),
        ([1, 2, 3, 4, 5, 6, 7], 4, 2, 5),
        ([1, 2, 3], 4, 0, None),
    ],
)
def test_olympic_mean(
    minutes: list[float], drop: int, already_dropped: int, mean: float | None
) -> None:
    assert scoring.olympic_mean(minutes, drop, already_dropped) == mean


@pytest.mark.parametrize(
    ("runs", "score"),
    [
        (result_set(5, 1, 3, 2, 4), Score(3, (("b", "fastest"), ("a", "slowest")))),
        (result_set(2, 2, 2, 2, 2), Score(2, (("a", "fastest"), ("e", "slowest")))),
        (result_set(5, None, 3, 2, 4), Score(4, (("d", "fastest"), ("b", "did not converge")))),
        (
            [*result_set(1, 2, 3, 4), RunTime("z", None, converged=True)],
            Score(3, (("a", "fastest"), ("z", "has no time-to-train"))),
        ),
        (
            [*result_set(1, 2, 3, 4), RunTime("z", 0.5, converged=False)],
            Score(3, (("a", "fastest"), ("z", "did not converge"))),
        ),
        (
            result_set(5, None, 3, None, 4),
            Score(
                None,
                (("b", "did not converge"), ("d", "did not converge")),
                "2 runs did not converge or have no time-to-train, at most 1 may",
            ),
        ),
        (
            result_set(3, 1, 2),
            Score(2, (("b", "fastest"), ("a", "slowest")), "only 3 of 5 runs"),
        ),
        (
            result_set(6, 5, 4, 3, 2, 1),
            Score(3.5, (("f", "fastest"), ("a", "slowest")), "6 runs, 5 required"),
        ),
        (
            result_set(3, 1),
            Score(None, (), "2 of 5 runs: none is left after dropping 1 + 1"),
        ),
        (
            result_set(3, None),
            Score(
                None,
                (("b", "did not converge"),),
                "2 of 5 runs: none is left after dropping 1 + 1",
            ),
        ),
        ([], Score(None, (), "0 of 5 runs: none is left after dropping 1 + 1")),
    ],
)
def test_score(runs: list[RunTime], score: Score) -> None:
    assert scoring.score(runs, drop=1, required=5) == score
    assert scoring.score(runs[::-1], drop=1, required=5) == score


def test_score_of_unet3d() -> None:
    scored = scoring.score(result_set(*range(1, 38), None, None, None), drop=4, required=40)
    reasons = [reason for _, reason in scored.dropped]
    assert scored.minutes == sum(range(5, 37)) / 32
    assert reasons == ["fastest"] * 4 + ["slowest"] + ["did not converge"] * 3
    assert scored.reason == ""


@given(minutes=MINUTES, drop=DROP, already_dropped=st.integers(0, 4))
def test_olympic_mean_is_the_official_one(
    minutes: list[float], drop: int, already_dropped: int
) -> None:
    official = summarizer._compute_olympic_average([*minutes], already_dropped, drop)
    assert scoring.olympic_mean(minutes, drop, already_dropped) == official


@given(minutes=MINUTES, drop=DROP, data=st.data())
def test_olympic_mean_does_not_depend_on_the_order(
    minutes: list[float], drop: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(minutes))
    assert scoring.olympic_mean(minutes, drop) == scoring.olympic_mean(shuffled, drop)


@given(minutes=MINUTES, drop=DROP)
def test_olympic_mean_is_between_the_extremes(minutes: list[float], drop: int) -> None:
    mean = scoring.olympic_mean(minutes, drop)
    if len(minutes) <= 2 * drop:
        assert mean is None
    else:
        assert mean is not None
        assert min(minutes) * (1 - 1e-12) <= mean <= max(minutes) * (1 + 1e-12)


@given(minutes=st.lists(st.none() | st.floats(0.01, 1e5), max_size=60), drop=DROP, data=st.data())
def test_score_drops_twice_the_drop_count(
    minutes: list[float | None], drop: int, data: st.DataObject
) -> None:
    runs = result_set(*minutes)
    scored = scoring.score(runs, drop, len(runs))
    left_out = {path for path, _ in scored.dropped}
    assert len(left_out) == len(scored.dropped)
    assert scored == scoring.score(data.draw(st.permutations(runs)), drop, len(runs))
    if scored.minutes is None:
        assert minutes.count(None) > drop or len(runs) <= 2 * drop
        return
    assert len(left_out) == 2 * drop
    kept = [run.minutes for run in runs if run.path not in left_out and run.minutes is not None]
    assert len(kept) == len(runs) - 2 * drop
    assert scored.minutes == pytest.approx(math.fsum(kept) / len(kept))
