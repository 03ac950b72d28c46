"""Which runs to submit if there are more than required.

Source: training_rules.adoc, Benchmark Results. In substance: a submitter may make M > N runs of a
benchmark that requires N. The runs are put in an objective order, such as that of their start,
and the submitter submits the N consecutive runs whose result is closest to the median of the
results of all windows of N consecutive runs. A failed run counts as infinite. If the median is
invalid, so is the result.

Where the text is open, this module decides, never in favour of the submitter:

- The result of a window is its olympic mean, in which runs that did not converge are the slowest
  and are dropped first. It is infinite if more runs fail than are dropped.
- For an odd number of windows the median is the middle result. For an even number it is the mean
  of the two in the middle, and infinite if one of them is. Both are then equally close to it, and
  the slower one is chosen.
- Among windows with equal results the one that starts first is chosen.
- Runs that start in the same millisecond are ordered by path. Runs without ``run_start`` come
  last. Runs may overlap: their start orders them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from mlperf_pkg.results.scoring import RunTime, score
from mlperf_pkg.rulebook.model import Runs
from mlperf_pkg.run.model import Run


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


class Choice(Struct, frozen=True):
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
    choice: Choice
    chosen: tuple[Run, ...]


def select(runs: Sequence[Run], rules: Runs) -> Selection:
    """Select the runs of one result set to submit; none where the result is invalid.

    ``runs`` may be in any order.
    """
    ordered = tuple(sorted(runs, key=start_order))
    times = [RunTime(run.path, run.minutes, run.converged) for run in ordered]
    choice = choose(times, rules.required, rules.drop)
    window = choice.chosen
    return Selection(ordered, choice, ordered[window.first : window.last + 1] if window else ())


def start_order(run: Run) -> tuple[bool, float, str]:
    """Return a sort key: by ``run_start``, then path; a run that never started comes last."""
    return (run.start_ms is None, run.start_ms or 0.0, run.path)


def choose(runs: Sequence[RunTime], required: int, drop: int) -> Choice:
    """Choose the window to submit; ``runs`` are in their objective order."""
    if len(runs) < required:
        return Choice((), None, None, f"only {len(runs)} of {required} runs")
    windows = tuple(
        _window(runs, first, required, drop) for first in range(len(runs) - required + 1)
    )
    ranked = sorted(windows, key=lambda window: (window.minutes, window.first))
    lower, upper = (ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2])
    if not upper.valid:
        return Choice(windows, math.inf, None, _invalid_reason(windows, upper))
    median = lower.minutes / 2 + upper.minutes / 2
    chosen = next(window for window in windows if window.minutes == upper.minutes)
    return Choice(windows, median, chosen, _tie(lower, chosen))


def _window(runs: Sequence[RunTime], first: int, required: int, drop: int) -> Window:
    scored = score(runs[first : first + required], drop, required)
    minutes = math.inf if scored.minutes is None else scored.minutes
    return Window(first, first + required - 1, minutes, scored.reason)


def _invalid_reason(windows: Sequence[Window], median: Window) -> str:
    if len(windows) == 1:
        return median.reason
    invalid = sum(not window.valid for window in windows)
    return f"the median is infinite: {invalid} of {len(windows)} windows have no result"


def _tie(lower: Window, chosen: Window) -> str:
    if lower.minutes == chosen.minutes:
        return ""
    return (
        f"runs {lower.first + 1} to {lower.last + 1} are equally close to the median;"
        " the slower window is taken"
    )
