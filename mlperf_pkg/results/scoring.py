"""Scores of result sets: the olympic mean of the times to train.

Source: training_rules.adoc, Benchmark Results; ``mlperf_logging.result_summarizer`` for the
official mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

NOT_CONVERGED = "did not converge"
NO_TIME = "has no time"
FASTEST = "fastest"
SLOWEST = "slowest"


class RunTime(Struct, frozen=True):
    """One run of a result set.

    ``minutes`` is the time from run_start to run_stop, None where the log does not give it;
    ``converged`` says whether the run reached the target.
    """

    path: str
    minutes: float | None
    converged: bool


class Score(Struct, frozen=True):
    """The score of a result set before any normalisation.

    ``minutes`` is the olympic mean, None where there is none. ``dropped`` pairs the path of each
    run left out of it with why: "fastest", "slowest", "did not converge" or "has no time"; without
    a score only the last two are told. ``reason`` says why there is no score, or that there are
    not as many runs as required; else it is empty.
    """

    minutes: float | None
    dropped: tuple[tuple[str, str], ...] = ()
    reason: str = ""


def olympic_mean(minutes: Sequence[float], drop: int, already_dropped: int = 0) -> float | None:
    """The mean without the ``drop`` smallest and ``drop`` largest values; None if none is left.

    ``already_dropped`` values, taken to be larger than all others, are not among ``minutes`` and
    count towards the largest. The order of ``minutes`` does not matter, to the last bit.
    """
    kept = sorted(minutes)[drop : len(minutes) - drop + already_dropped]
    return sum(kept) / len(kept) if kept else None


def score(runs: Sequence[RunTime], drop: int, required: int) -> Score:
    """The score by the written rules: the ``drop`` fastest and ``drop`` slowest runs are dropped.

    A run that did not converge, or has no time, is slower than any other; more than ``drop`` of
    them leave no score. Equally fast runs are ordered by path. Where the number of runs is not the
    ``required`` one the rule is the same, and the reason says so
    (training_rules.adoc, Benchmark Results).
    """
    failed = tuple(sorted((run.path, why) for run in runs if (why := _why_failed(run))))
    if len(failed) > drop:
        reason = f"{len(failed)} runs did not converge or have no time, at most {drop} may"
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


def weak_score(
    runs: Sequence[tuple[str, float, float]], failed: Sequence[tuple[str, bool]], required: int
) -> Score:
    """The weak-scaling score (HPC): minutes from the first start to the last stop of all models.

    ``runs`` are those that count: path, start and stop in milliseconds. ``failed`` are the
    others: path, and whether they have a time. At least ``required`` must count
    (mlperf_logging.result_summarizer, _compute_weak_scaling_scores).
    """
    dropped = tuple((path, NOT_CONVERGED if timed else NO_TIME) for path, timed in failed)
    if len(runs) < required:
        return Score(None, dropped, f"only {len(runs)} of {required} models were trained")
    span = max(stop for _, _, stop in runs) - min(start for _, start, _ in runs)
    return Score(span / 60 / 1000, dropped)


def _why_failed(run: RunTime) -> str | None:
    if not run.converged:
        return NOT_CONVERGED
    return NO_TIME if run.minutes is None else None


def _note(found: int, required: int) -> str:
    if found < required:
        return f"only {found} of {required} runs"
    return f"{found} runs, {required} required" if found > required else ""
