"""Draw all charts of a check: read the curves of its runs, and put its result sets together."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, count

from mlperf_pkg.checker.scores import ScoredSet, scores
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.charts import Chart, DrawnRun, DrawnSet, scoreboard, set_charts
from mlperf_pkg.commands.charts.curve_reader import Curve, CurveFile, read_curve
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.processes import pool
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.submission.model import Place

PARALLEL_FROM_RECORDS = 40_000
MAX_NAME = 150  # characters of a file name
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")


def drawn_sets(checked: Checked, jobs: int | None = None) -> tuple[DrawnSet, ...]:
    """Return the result sets of a check with the curves of their runs, in order of its report."""
    usages = {run.path: run.usage for run in checked.runs}
    curves = read_curves(checked, jobs)
    return tuple(_drawn(scored, usages, curves) for scored in scores(checked).sets)


def read_curves(checked: Checked, jobs: int | None = None) -> dict[str, Curve]:
    """Return the curves of the runs of a check by path; they are empty for unreadable logs."""
    sources = local_sources(checked)
    files = [
        CurveFile(sources[run.path], load_benchmark(run.usage, run.round, run.benchmark))
        for run in checked.runs
    ]
    parallel = sum(run.records for run in checked.runs) >= PARALLEL_FROM_RECORDS
    curves = _read_all(files, jobs or os.cpu_count() or 1) if parallel else map(_read, files)
    return {curve.path: curve for curve in curves}


def local_sources(checked: Checked) -> dict[str, Source]:
    """Return the logs and system descriptions of a check by their paths in its report.

    Raises:
        UserError: one of them is in a store.
    """
    places = (place for contents in checked.inputs for place in contents.places.values())
    return {place.label: _local_source(place) for place in places}


def _local_source(place: Place) -> Source:
    if place.source.stored:
        raise UserError(f"{place.path}: is in an object store; expected a path of this machine")
    return place.source


def files(checked: Checked, names: Collection[str], jobs: int | None = None) -> dict[str, Chart]:
    """Return the charts of these ``names`` by file name, without a suffix.

    File names consist of letters, digits, ``.``, ``_`` and ``-``, whatever the names of folders.
    """
    charts: dict[str, Chart] = {}
    for path, chart in _by_path(checked, jobs):
        if chart.name.partition("-")[0] in names:
            plain = _UNSAFE.sub("-", f"{path}.{chart.name}").lstrip(".-")[-MAX_NAME:]
            numbered = (f"{plain}-{number}" for number in count(2))
            free = next(name for name in chain([plain], numbered) if name not in charts)
            charts[free] = chart
    return charts


def _by_path(checked: Checked, jobs: int | None) -> Iterator[tuple[str, Chart]]:
    for drawn in drawn_sets(checked, jobs):
        row = drawn.row
        # Several result sets of loose logs may be in one folder.
        loose = [] if row.submitter else [row.benchmark, row.system or ""]
        path = "/".join([row.path, *loose])
        yield from ((path, chart) for chart in set_charts(drawn))
    yield from scoreboard(checked.report.result_sets)


def _drawn(scored: ScoredSet, usages: Mapping[str, str], curves: Mapping[str, Curve]) -> DrawnSet:
    usage = next((usages[run.path] for run in scored.runs), "training")
    row = scored.row
    return DrawnSet(
        row=row,
        runs=tuple(DrawnRun(run, curves.get(run.path, Curve(run.path))) for run in scored.runs),
        usage=usage,
        ruleset=load_round(usage, row.round).ruleset,
        rules=load_benchmark(usage, row.round, row.benchmark),
    )


def _read_all(files: list[CurveFile], jobs: int) -> list[Curve]:
    workers = min(jobs, len(files))
    if workers < 2:  # noqa: PLR2004
        return [_read(file) for file in files]
    with pool(workers) as executor:
        curves = executor.map(_read_or_none, files, chunksize=4, instead=lambda _: None)
        return [
            curve or Curve(file.source.label) for file, curve in zip(files, curves, strict=True)
        ]


def _read_or_none(file: CurveFile) -> Curve | None:
    return _read(file)


def _read(file: CurveFile) -> Curve:
    try:
        return read_curve(file)
    except Exception:  # noqa: BLE001 - the check reports a file that it cannot read
        return Curve(file.source.label)
