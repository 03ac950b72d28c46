"""Scores of result sets: the olympic mean of the times-to-train, and which runs to submit.

Source: training_rules.adoc, Benchmark Results; ``mlperf_logging.result_summarizer`` for the
official mean.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from mlperf_pkg.rulebook.model import Runs
from mlperf_pkg.run.model import Run

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
    if not kept:
        return None
    return sum(kept) / len(kept)


def score(runs: Sequence[RunTime], drop: int, required: int) -> Score:
    """Score runs by the written rules, without the ``drop`` fastest and ``drop`` slowest.

    A run that did not converge, or has no time-to-train, is slower than any other; with more than
    ``drop`` of them there is no score. Equally fast runs are ordered by path. If the number of runs
    is not ``required``, the rule is the same, and the reason says so (training_rules.adoc,
    Benchmark Results).
    """
    failed = _failed(runs)
    if len(failed) > drop:
        reason = f"{len(failed)} runs did not converge or have no time-to-train; at most {drop} may"
        return Score(None, failed, reason)
    timed = _timed(runs)
    mean = olympic_mean([minutes for minutes, _ in timed], drop, len(failed))
    if mean is None:
        reason = f"{_too_few(len(runs), required)}, too few to drop {extremes(drop)}"
        return Score(None, failed, reason)
    fast = [(path, FASTEST) for _, path in timed[:drop]]
    slow = [(path, SLOWEST) for _, path in timed[len(runs) - drop :]]
    return Score(mean, (*fast, *slow, *failed), _unusual_number(len(runs), required))


def extremes(drop: int) -> str:
    """Return the runs that a score leaves out at both ends: ``the fastest and the slowest``."""
    number = "" if drop == 1 else f"{drop} "
    return f"the {number}fastest and the {number}slowest"


def _failed(runs: Sequence[RunTime]) -> tuple[tuple[str, str], ...]:
    """Return the paths of the runs that do not count, each with the reason."""
    failed = []
    for run in runs:
        if not run.converged:
            failed.append((run.path, NOT_CONVERGED))
        elif run.minutes is None:
            failed.append((run.path, NO_TIME))
    return tuple(sorted(failed))


def _timed(runs: Sequence[RunTime]) -> list[tuple[float, str]]:
    """Return the minutes and paths of the other runs, the fastest first."""
    return sorted(
        (run.minutes, run.path) for run in runs if run.converged and run.minutes is not None
    )


def _too_few(runs: int, required: int) -> str:
    verb = "is" if runs == 1 else "are"
    return f"only {runs} of the {required} required runs {verb} there"


def _unusual_number(runs: int, required: int) -> str:
    """Say that there are fewer or more runs than required; empty if neither."""
    if runs < required:
        return _too_few(runs, required)
    if runs > required:
        return f"{runs} runs, {required} required"
    return ""


def weak_score(
    trained: Sequence[tuple[float, float]], failed: Sequence[tuple[str, bool]], required: int
) -> Score:
    """Score weak scaling (HPC): minutes from the first start to the last stop of all models.

    ``trained`` are their starts and stops, in milliseconds since the epoch. ``failed`` pairs the
    path of each run that does not count with whether it has a time. At least ``required`` models
    must be trained (mlperf_logging.result_summarizer, _compute_weak_scaling_scores).
    """
    dropped = tuple((path, NOT_CONVERGED if timed else NO_TIME) for path, timed in failed)
    if len(trained) < required:
        return Score(None, dropped, f"only {len(trained)} of {required} models were trained")
    milliseconds = max(stop for _, stop in trained) - min(start for start, _ in trained)
    return Score(milliseconds / 60 / 1000, dropped)


# ---- which runs to submit if there are more than required ---------------------------------


class Window(Struct, frozen=True):
    """Consecutive runs, from index ``first`` to index ``last``, and their result.

    ``minutes`` is their olympic mean before any normalisation, infinite where they have none;
    ``reason`` then says why.
    """

    first: int
    last: int
    minutes: float
    reason: str = ""

    @property
    def valid(self) -> bool:
        """Whether the window has a result."""
        return math.isfinite(self.minutes)


class RunChoice(Struct, frozen=True):
    """All windows by their first run, the ``median`` of their minutes, and the ``chosen`` one.

    ``chosen`` is None where the result is invalid or there are too few runs; ``reason`` then says
    why. ``median`` is None if there is no window and infinite if it is invalid. ``reason`` also
    names a window that is as close to the median as the chosen one.
    """

    windows: tuple[Window, ...]
    median: float | None
    chosen: Window | None
    reason: str = ""


class Selection(Struct, frozen=True):
    """The ``runs`` of a result set by start, the choice among them, and the ``chosen`` runs."""

    runs: tuple[Run, ...]
    choice: RunChoice
    chosen: tuple[Run, ...]


def select(runs: Sequence[Run], rules: Runs) -> Selection:
    """Select the runs of one result set to submit; none where the result is invalid.

    ``runs`` may be in any order.
    """
    ordered = tuple(sorted(runs, key=start_order))
    times = [RunTime(run.path, run.minutes, run.converged) for run in ordered]
    choice = choose(times, rules.required, rules.drop)
    window = choice.chosen
    chosen = ordered[window.first : window.last + 1] if window else ()
    return Selection(ordered, choice, chosen)


def start_order(run: Run) -> tuple[bool, float, str]:
    """Return a sort key: by ``run_start``, then path; a run that never started comes last."""
    return (run.start_ms is None, run.start_ms or 0.0, run.path)


def choose(runs: Sequence[RunTime], required: int, drop: int) -> RunChoice:
    """Choose the window to submit; ``runs`` are in their objective order.

    In substance, training_rules.adoc, Benchmark Results, says: a submitter may make M > N runs of a
    benchmark that requires N. The runs are put in an objective order, such as that of their start,
    and the submitter submits the N consecutive runs whose result is closest to the median of the
    results of all windows of N consecutive runs. A failed run counts as infinite. If the median is
    invalid, so is the result.

    Where the text is open, this function decides, never in favour of the submitter:

    - The result of a window is its olympic mean, in which runs that did not converge are the
      slowest and are dropped first. It is infinite if more runs fail than are dropped.
    - For an odd number of windows the median is the middle result. For an even number it is the
      mean of the two in the middle, and infinite if one of them is. Both are then equally close to
      it, and the slower one is chosen.
    - Among windows with equal results the one that starts first is chosen.
    - Runs that start in the same millisecond are ordered by path. Runs without ``run_start`` come
      last. Runs may overlap: their start orders them.
    """
    if len(runs) < required:
        return RunChoice((), None, None, _too_few(len(runs), required))
    starts = range(len(runs) - required + 1)
    windows = tuple(_window(runs, first, required, drop) for first in starts)
    ranked = sorted(windows, key=lambda window: (window.minutes, window.first))
    lower = ranked[(len(ranked) - 1) // 2]
    upper = ranked[len(ranked) // 2]
    if not upper.valid:
        reason = upper.reason
        if len(windows) > 1:
            invalid = sum(not window.valid for window in windows)
            reason = (
                f"the median is infinite, as {invalid} of {len(windows)} windows of {required}"
                " consecutive runs have no result"
            )
        return RunChoice(windows, math.inf, None, reason)
    median = lower.minutes / 2 + upper.minutes / 2
    chosen = next(window for window in windows if window.minutes == upper.minutes)
    tie = ""
    if lower.minutes != chosen.minutes:
        tie = (
            f"runs {lower.first + 1} to {lower.last + 1} are as close to the median as the chosen"
            " runs; of two such windows, the slower one is chosen"
        )
    return RunChoice(windows, median, chosen, tie)


def _window(runs: Sequence[RunTime], first: int, required: int, drop: int) -> Window:
    scored = score(runs[first : first + required], drop, required)
    minutes = math.inf if scored.minutes is None else scored.minutes
    return Window(first, first + required - 1, minutes, scored.reason)
