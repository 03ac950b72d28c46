"""Scores of result sets: the olympic mean of the times-to-train.

Source: training_rules.adoc, Benchmark Results; ``mlperf_logging.result_summarizer`` for the
official mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

NOT_CONVERGED = "did not converge"
NO_TIME = "has no time-to-train"
FASTEST = "fastest"
SLOWEST = "slowest"


class RunTime(Struct, frozen=True):
    """The time of one run of a result set.

    ``minutes`` is the time from run_start to run_stop, None where the log does not have it;
    ``converged`` is whether the run reached the target.
    """

    path: str
    minutes: float | None
    converged: bool


class Span(Struct, frozen=True):
    """The start and the stop of one run, in milliseconds since the epoch."""

    path: str
    start_ms: float
    stop_ms: float


class Score(Struct, frozen=True):
    """The score of a result set before any normalisation.

    ``minutes`` is the olympic mean, None where there is none. ``dropped`` pairs the path of each
    run that it leaves out with the reason: "fastest", "slowest", "did not converge" or "has no
    time-to-train"; without a score only the last two occur. ``reason`` says why there is no score,
    or that the number of runs is not the required one; otherwise it is empty.
    """

    minutes: float | None
    dropped: tuple[tuple[str, str], ...] = ()
    reason: str = ""


def olympic_mean(minutes: Sequence[float], drop: int, already_dropped: int = 0) -> float | None:
    """Return the mean without the ``drop`` smallest and ``drop`` largest values.

    None where no value is left. ``already_dropped`` is the number of values that ``minutes`` lacks
    and that count among the largest. The order of ``minutes`` does not matter, to the last bit.
    """
    kept = sorted(minutes)[drop : len(minutes) - drop + already_dropped]
    return sum(kept) / len(kept) if kept else None


def score(runs: Sequence[RunTime], drop: int, required: int) -> Score:
    """Score runs by the written rules, without the ``drop`` fastest and ``drop`` slowest.

    A run that did not converge, or has no time-to-train, is slower than any other; with more than
    ``drop`` of them there is no score. Equally fast runs are ordered by path. If the number of runs
    is not ``required``, the rule is the same, and the reason says so (training_rules.adoc,
    Benchmark Results).
    """
    failed = tuple(sorted((run.path, reason) for run in runs if (reason := _failure(run))))
    if len(failed) > drop:
        reason = f"{len(failed)} runs did not converge or have no time-to-train, at most {drop} may"
        return Score(None, failed, reason)
    timed = sorted(
        (run.minutes, run.path) for run in runs if run.converged and run.minutes is not None
    )
    mean = olympic_mean([minutes for minutes, _ in timed], drop, len(failed))
    if mean is None:
        reason = f"{len(runs)} of {required} runs: none is left after dropping {drop} + {drop}"
        return Score(None, failed, reason)
    fast = tuple((path, FASTEST) for _, path in timed[:drop])
    slow = tuple((path, SLOWEST) for _, path in timed[len(runs) - drop :])
    return Score(mean, fast + slow + failed, _note(len(runs), required))


def weak_score(trained: Sequence[Span], failed: Sequence[tuple[str, bool]], required: int) -> Score:
    """Score weak scaling (HPC): minutes from the first start to the last stop of all models.

    ``failed`` pairs the path of each run that does not count with whether it has a time. At least
    ``required`` models must be trained
    (mlperf_logging.result_summarizer, _compute_weak_scaling_scores).
    """
    dropped = tuple((path, NOT_CONVERGED if timed else NO_TIME) for path, timed in failed)
    if len(trained) < required:
        return Score(None, dropped, f"only {len(trained)} of {required} models were trained")
    milliseconds = max(run.stop_ms for run in trained) - min(run.start_ms for run in trained)
    return Score(milliseconds / 60 / 1000, dropped)


def _failure(run: RunTime) -> str | None:
    if not run.converged:
        return NOT_CONVERGED
    return NO_TIME if run.minutes is None else None


def _note(runs: int, required: int) -> str:
    if runs < required:
        return f"only {runs} of {required} runs"
    return f"{runs} runs, {required} required" if runs > required else ""
