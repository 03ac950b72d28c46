"""From a check to what its charts show: the curves of its runs, read in a second, light pass."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

from mlperf_pkg.checker.scores import ScoredSet, scores
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.charts import Chart, DrawnRun, DrawnSet, scoreboard, set_charts
from mlperf_pkg.commands.charts.curve_reader import Curve, CurveFile, raw_lines, read_curve
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.processes import pool
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.submission.model import Input

EXCERPT = 300  # characters of a line that are shown
PARALLEL_FROM_RECORDS = 40_000
MAX_NAME = 150  # characters of a file's name
_ODD = re.compile(r"[^A-Za-z0-9._]+")


def drawn_sets(checked: Checked, jobs: int | None = None) -> tuple[DrawnSet, ...]:
    """The result sets of a check, with the curves of their runs, in the order of its report."""
    paths = _paths(checked.inputs)
    usages = {run.path: run.usage for run in checked.runs}
    files = [
        CurveFile(
            Source(run.path, paths[run.path]),
            load_benchmark(usages[run.path], run.round, run.benchmark),
        )
        for run in checked.runs
    ]
    large = sum(run.records for run in checked.runs) >= PARALLEL_FROM_RECORDS
    curves = {curve.path: curve for curve in _read_all(files, large, jobs)}
    return tuple(_drawn(each, usages, curves) for each in scores(checked).sets)


def excerpts(checked: Checked, findings: Iterable[Finding]) -> dict[tuple[str, int], str]:
    """The raw lines that findings are about, by path and line, as far as they can be read."""
    paths = _paths(checked.inputs)
    asked: dict[str, set[int]] = {}
    for finding in findings:
        if finding.line and finding.path in paths:
            asked.setdefault(finding.path, set()).add(finding.line)
    found: dict[tuple[str, int], str] = {}
    for path, lines in asked.items():
        with suppress(OSError):
            texts = raw_lines(Source(path, paths[path]), lines, EXCERPT)
            found |= {(path, line): text for line, text in texts.items()}
    return found


def files(checked: Checked, names: Collection[str], jobs: int | None = None) -> dict[str, Chart]:
    """The charts of ``names`` by the names of files of their own, without a suffix.

    Those are letters, digits, ``.``, ``_`` and ``-`` alone, whatever the names of folders are.
    """
    found: dict[str, Chart] = {}
    for path, chart in _named(checked, jobs):
        if chart.name.partition("-")[0] in names:
            plain = _ODD.sub("-", f"{path}.{chart.name}").lstrip(".-")[-MAX_NAME:]
            numbered = (f"{plain}-{number}" for number in count(2))
            found[next(name for name in chain([plain], numbered) if name not in found)] = chart
    return found


def _named(checked: Checked, jobs: int | None) -> Iterator[tuple[str, Chart]]:
    for drawn in drawn_sets(checked, jobs):
        row = drawn.row
        # Of loose logs several sets may lie in one folder.
        loose = [] if row.submitter else [row.benchmark, row.system or ""]
        path = "/".join([row.path, *loose])
        yield from ((path, chart) for chart in set_charts(drawn))
    yield from scoreboard(checked.report.result_sets)


def _drawn(each: ScoredSet, usages: Mapping[str, str], curves: Mapping[str, Curve]) -> DrawnSet:
    usage = next((usages[run.path] for run in each.runs), "training")
    row = each.row
    return DrawnSet(
        row=row,
        runs=tuple(DrawnRun(run, curves.get(run.path, Curve(run.path))) for run in each.runs),
        usage=usage,
        ruleset=load_round(usage, row.round).ruleset,
        rules=load_benchmark(usage, row.round, row.benchmark),
    )


def _paths(inputs: Iterable[Input]) -> dict[str, Path]:
    """Where the logs and system descriptions lie, by their paths in the report."""
    return {place.label: place.local for given in inputs for place in given.places.values()}


def _read_all(files: list[CurveFile], large: bool, jobs: int | None) -> list[Curve]:
    workers = min(jobs or os.cpu_count() or 1, len(files))
    if workers < 2 or not large:  # noqa: PLR2004
        return [_read(file) for file in files]
    with pool(workers) as executor:
        return list(executor.map(_read, files, chunksize=4))


def _read(file: CurveFile) -> Curve:
    try:
        return read_curve(file)
    except OSError:
        return Curve(file.source.label)  # the check has told of it
