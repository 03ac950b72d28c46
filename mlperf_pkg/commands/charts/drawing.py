"""Draw all charts of a check."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, count

from mlperf_pkg.checker.scores import ScoredSet, scores
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.charts import Chart, DrawnRun, DrawnSet, scoreboard, set_charts
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.run.curve import Curve
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import set_name

MAX_NAME = 150  # characters of a file name
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")


def drawn_sets(checked: Checked) -> tuple[DrawnSet, ...]:
    """Return the result sets of a check with ``curves``, in the order of its report."""
    runs = {run.path: run for run in checked.runs}
    return tuple(_drawn(scored, runs) for scored in scores(checked).sets)


def files(checked: Checked, names: Collection[str]) -> dict[str, Chart]:
    """Return the charts of these ``names`` by file name, without a suffix.

    File names consist of letters, digits, ``.``, ``_`` and ``-``, whatever the names of folders.
    """
    charts: dict[str, Chart] = {}
    for name, chart in _by_name(checked):
        if chart.name.partition("-")[0] in names:
            plain = _UNSAFE.sub("-", f"{name}.{chart.name}").lstrip(".-")[-MAX_NAME:]
            numbered = (f"{plain}-{number}" for number in count(2))
            free = next(file for file in chain([plain], numbered) if file not in charts)
            charts[free] = chart
    return charts


def _by_name(checked: Checked) -> Iterator[tuple[str, Chart]]:
    for drawn in drawn_sets(checked):
        row = drawn.row
        name = row.path if set_name(row.path) else row.id  # several sets may be in one folder
        yield from ((name, chart) for chart in set_charts(drawn))
    yield from scoreboard(checked.report.result_sets)


def _drawn(scored: ScoredSet, runs: Mapping[str, Run]) -> DrawnSet:
    usage = next((runs[run.path].usage for run in scored.runs), "training")
    row = scored.row
    return DrawnSet(
        row=row,
        runs=tuple(DrawnRun(run, runs[run.path].curve or Curve()) for run in scored.runs),
        usage=usage,
        ruleset=load_round(usage, row.round).ruleset,
        rules=load_benchmark(usage, row.round, row.benchmark),
    )
