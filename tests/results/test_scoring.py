"""Scores: tables of the written rule, and the official olympic mean live."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.result_summarizer import result_summarizer as summarizer
from msgspec.structs import replace

from mlperf_pkg.results import scoring
from mlperf_pkg.results.scoring import RunChoice, RunTime, Score, choose, select
from mlperf_pkg.rulebook.model import Runs
from tests.helpers.logs import good_log, run_of

MINUTES = st.lists(st.floats(0.01, 1e5), max_size=50)
DROP = st.sampled_from([1, 4])


def result_set(*minutes: float | None) -> list[RunTime]:
    """Runs a, b, c, ...; those without minutes did not converge."""
    return [
        RunTime(chr(ord("a") + at), value, converged=value is not None)
        for at, value in enumerate(minutes)
    ]


OF_FIVE = "of the 5 required runs are there"
CANNOT_DROP = "too few to drop the fastest and the slowest"


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
                "2 runs did not converge or have no time-to-train; at most 1 may",
            ),
        ),
        (
            result_set(3, 1, 2),
            Score(2, (("b", "fastest"), ("a", "slowest")), f"only 3 {OF_FIVE}"),
        ),
        (
            result_set(6, 5, 4, 3, 2, 1),
            Score(3.5, (("f", "fastest"), ("a", "slowest")), "6 runs, 5 required"),
        ),
        (
            result_set(3, 1),
            Score(None, (), f"only 2 {OF_FIVE}, {CANNOT_DROP}"),
        ),
        (
            result_set(3, None),
            Score(
                None,
                (("b", "did not converge"),),
                f"only 2 {OF_FIVE}, {CANNOT_DROP}",
            ),
        ),
        (
            [],
            Score(None, (), f"only 0 {OF_FIVE}, {CANNOT_DROP}"),
        ),
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


@given(minutes=MINUTES, drop=DROP, dropped=st.integers(0, 4), data=st.data())
def test_olympic_mean_is_the_official_one_in_any_order(
    minutes: list[float], drop: int, dropped: int, data: st.DataObject
) -> None:
    official = summarizer._compute_olympic_average([*minutes], dropped, drop)
    shuffled = data.draw(st.permutations(minutes))
    assert scoring.olympic_mean(shuffled, drop, dropped) == official


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


INF = math.inf
F = None  # a run that failed


def runs(*minutes: float | None) -> list[RunTime]:
    return [RunTime(f"{at:03}", m, converged=m is not None) for at, m in enumerate(minutes)]


def chosen(minutes: list[float | None], required: int = 3, drop: int = 1) -> RunChoice:
    return choose(runs(*minutes), required, drop)


@pytest.mark.parametrize(
    ("minutes", "windows", "median", "first"),
    [
        # Three runs count, of which the middle one remains.
        ([5, 7, 6], [6], 6, 0),
        ([5, 7, 6, 4, 9], [6, 6, 6], 6, 0),
        ([1, 2, 3, 4, 5], [2, 3, 4], 3, 1),
        ([5, 4, 3, 2, 1], [4, 3, 2], 3, 1),
        ([9, 2, 8, 1, 7], [8, 2, 7], 7, 2),
        # Of an even number of windows the slower one in the middle.
        ([1, 2, 3, 4], [2, 3], 2.5, 1),
        ([4, 3, 2, 1], [3, 2], 2.5, 0),
        ([1, 2, 3, 4, 5, 6], [2, 3, 4, 5], 3.5, 2),
        ([6, 5, 4, 3, 2, 1], [5, 4, 3, 2], 3.5, 1),
        # Equal windows: the first.
        ([2, 2, 2, 2], [2, 2], 2, 0),
        ([1, 5, 5, 5, 9], [5, 5, 5], 5, 0),
        # One failed run is the slowest, two make a window infinite.
        ([5, F, 6], [6], 6, 0),
        ([5, F, 6, 7], [6, 7], 6.5, 1),
        ([5, F, 6, F, 7], [6, INF, 7], 7, 2),
        ([F, F, 4, 5, 6], [INF, 5, 5], 5, 1),
        # An infinite median.
        ([F, F, 4], [INF], INF, None),
        ([F, F, 4, 5], [INF, 5], INF, None),
        ([F, F, 4, F, 5], [INF, INF, 5], INF, None),
        ([4, 5, 6, F, F, 7], [5, 6, INF, INF], INF, None),
        ([4, 5, 6, 7, F, F], [5, 6, 7, INF], 6.5, 2),
        # Too few runs.
        ([1, 2], [], None, None),
        ([], [], None, None),
    ],
)
def test_examples_worked_by_hand(
    minutes: list[float | None], windows: list[float], median: float | None, first: int | None
) -> None:
    choice = chosen(minutes)
    assert ([window.minutes for window in choice.windows], choice.median) == (windows, median)
    assert (choice.chosen.first if choice.chosen else None) == first


@pytest.mark.parametrize(
    ("minutes", "reason"),
    [
        ([1, 2], "only 2 of the 3 required runs are there"),
        ([F, F, 4], "2 runs did not converge or have no time-to-train; at most 1 may"),
        (
            [F, F, 4, 5],
            "the median is infinite, as 1 of 2 windows of 3 consecutive runs have no result",
        ),
        (
            [1, 2, 3, 4],
            "runs 1 to 3 are as close to the median as the chosen runs; of two such windows, the"
            " slower one is chosen",
        ),
        ([2, 2, 2, 2], ""),
        ([1, 2, 3, 4, 5], ""),
    ],
)
def test_reasons(minutes: list[float | None], reason: str) -> None:
    assert chosen(minutes).reason == reason


def by_definition(minutes: list[float | None], required: int, drop: int) -> tuple[int, ...]:
    """The first runs of all windows that the definition allows; empty where it is invalid."""
    results = []
    for first in range(len(minutes) - required + 1):
        window = sorted(INF if m is None else m for m in minutes[first : first + required])
        kept = window[drop : required - drop]
        results.append(sum(kept) / len(kept))
    ranked = sorted(results)
    middle = len(ranked) // 2
    median = ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2
    if not results or median == INF:
        return ()
    closest = min(abs(result - median) for result in results)
    return tuple(at for at, result in enumerate(results) if abs(result - median) == closest)


@given(
    # Multiples of six: means of up to six and medians of them are exact.
    minutes=st.lists(st.none() | st.integers(1, 40).map(lambda n: n * 60.0), max_size=14),
    shape=st.sampled_from([(3, 1), (5, 1), (4, 1), (8, 2), (1, 0)]),
)
def test_the_choice_is_one_that_the_definition_allows(
    minutes: list[float | None], shape: tuple[int, int]
) -> None:
    required, drop = shape
    choice = chosen(minutes, required, drop)
    allowed = by_definition(minutes, required, drop) if len(minutes) >= required else ()
    if choice.chosen is None:
        assert allowed == ()
        assert choice.reason
        return
    assert choice.chosen.first in allowed
    results = [window.minutes for window in choice.windows]
    assert choice.chosen.minutes == max(results[at] for at in allowed)
    assert results.index(choice.chosen.minutes) == choice.chosen.first


def test_runs_are_ordered_by_start_then_path() -> None:
    run = replace(run_of(good_log()), minutes=1.0, converged=True)
    unordered = [
        replace(run, path="d", start_ms=None, converged=False),
        replace(run, path="c", start_ms=5.0, minutes=3.0),
        replace(run, path="b", start_ms=5.0, minutes=2.0),
        replace(run, path="a", start_ms=9.0, minutes=4.0),
        replace(run, path="z", start_ms=0.0),
    ]
    selection = select(unordered, Runs(required=3, drop=1))
    assert [run.path for run in selection.runs] == ["z", "b", "c", "a", "d"]
    assert [window.minutes for window in selection.choice.windows] == [2.0, 3.0, 4.0]
    assert [run.path for run in selection.chosen] == ["b", "c", "a"]
    assert select(unordered[::-1], Runs(required=3, drop=1)) == selection


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
    minutes: list[int], drop: int, already_dropped: int, mean: int | None
) -> None:
    assert scoring.olympic_mean(minutes, drop, already_dropped) == mean


def test_four_of_forty_may_fail() -> None:
    minutes = [F] * 5 + [10.0] * 40
    choice = chosen(minutes, 40, 4)
    assert [window.minutes for window in choice.windows] == [INF] + [10.0] * 5
    assert choice.chosen == choice.windows[1]
