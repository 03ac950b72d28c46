"""Which runs to submit where more were made than are required.

Source: training_rules.adoc, Benchmark Results. In substance: a submitter may make M > N runs of a
benchmark that requires N. The runs are put in an objective order, such as that of their start,
and the N consecutive ones are submitted whose result is closest to the median of the results of
all windows of N consecutive runs. A run that fails counts as infinite. If the median is invalid,
so is the result.

What the text leaves open is settled here, never in favour of the submitter:

- The result of a window is its olympic mean, in which runs that did not converge are the slowest
  and are dropped first; it is infinite where more of them fail than are dropped.
- Of an odd number of windows the median is the middle result. Of an even number it is the mean of
  the two in the middle, and so infinite where one of them is. Both are then equally close to it;
  the slower one is chosen.
- Of windows with equal results the one that starts first is chosen.
- Runs that start in the same millisecond are ordered by path. Runs without ``run_start`` come
  last. That runs overlap does not matter: their start orders them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from mlperf_pkg.results.scoring import RunTime, score
from mlperf_pkg.rulebook.model import Runs
from mlperf_pkg.run.model import Run


class Window(Struct, frozen=True):
    """Consecutive runs, ``first`` to ``last`` counted from 0, and their result.

    ``minutes`` is their olympic mean, before any normalisation, infinite where they have none;
    ``reason`` then says why.
    """

    first: int
    last: int
    minutes: float
    reason: str = ""

    @property
    def valid(self) -> bool:
        """Whether it has a result."""
        return math.isfinite(self.minutes)


class Choice(Struct, frozen=True):
    """All windows by their first run, the ``median`` of their minutes, and the one ``chosen``.

    ``chosen`` is None where the result is invalid or there are too few runs, as ``reason`` says;
    ``median`` is None where there is no window and infinite where it is invalid. ``reason`` also
    tells of a window that is as close to the median as the one chosen.
    """

    windows: tuple[Window, ...]
    median: float | None
    chosen: Window | None
    reason: str = ""


class Selection(Struct, frozen=True):
    """The ``runs`` of a result set by start, the choice among them, and the runs it takes."""

    runs: tuple[Run, ...]
    choice: Choice
    chosen: tuple[Run, ...]


def select(runs: Sequence[Run], rules: Runs) -> Selection:
    """Of the runs of one result set, in any order, those to submit; none where it is invalid."""
    ordered = tuple(sorted(runs, key=start_order))
    times = [RunTime(run.path, run.minutes, run.converged) for run in ordered]
    choice = choose(times, rules.required, rules.drop)
    window = choice.chosen
    return Selection(ordered, choice, ordered[window.first : window.last + 1] if window else ())


def start_order(run: Run) -> tuple[bool, float, str]:
    """By ``run_start``, then path; a run that never started comes last."""
    return (run.start_ms is None, run.start_ms or 0.0, run.path)


def choose(runs: Sequence[RunTime], required: int, drop: int) -> Choice:
    """The window to submit of ``runs``, which are in their objective order."""
    if len(runs) < required:
        return Choice((), None, None, f"only {len(runs)} of {required} runs")
    windows = tuple(
        _window(runs, first, required, drop) for first in range(len(runs) - required + 1)
    )
    ranked = sorted(windows, key=lambda window: (window.minutes, window.first))
    lower, upper = (ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2])
    if not upper.valid:
        return Choice(windows, math.inf, None, _why_invalid(windows, upper))
    median = lower.minutes / 2 + upper.minutes / 2
    chosen = next(window for window in windows if window.minutes == upper.minutes)
    return Choice(windows, median, chosen, _tie(lower, chosen))


def _window(runs: Sequence[RunTime], first: int, required: int, drop: int) -> Window:
    scored = score(runs[first : first + required], drop, required)
    minutes = math.inf if scored.minutes is None else scored.minutes
    return Window(first, first + required - 1, minutes, scored.reason)


def _why_invalid(windows: Sequence[Window], median: Window) -> str:
    if len(windows) == 1:
        return median.reason
    lost = sum(not window.valid for window in windows)
    return f"the median is infinite: {lost} of {len(windows)} windows have no result"


def _tie(lower: Window, chosen: Window) -> str:
    if lower.minutes == chosen.minutes:
        return ""
    return (
        f"runs {lower.first + 1} to {lower.last + 1} are equally close to the median;"
        " the slower window is taken"
    )
