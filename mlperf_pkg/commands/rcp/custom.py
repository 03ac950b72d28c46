"""Read a file of reference points that mlperf-logging does not have, such as a pending change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import visible
from mlperf_pkg.results.rcp import ReferencePoint, by_size
from mlperf_pkg.rulebook.model import Runs
from mlperf_pkg.rulebook.upstream.points import PointRecord, read_points

_LARGEST = 1e9
"""Batch sizes are smaller: the official checker starts its search at this value."""

_MOST = 1e11
"""The largest value of a run: from 4.5e11 on, the search for the smallest mean never ends."""

IN_SAMPLES = frozenset({"llama2_70b_lora", "flux1"})
"""The benchmarks whose points have "samples to converge" in mlperf-logging 4.1.68."""


def unit_key(benchmark: str) -> str:
    """Return the key under which the official checker reads the runs of a benchmark."""
    return "samples to converge" if benchmark in IN_SAMPLES else "Epochs to converge"


def custom_points(path: Path, benchmark: str, runs: Runs) -> tuple[ReferencePoint, ...]:
    """Return the points for a benchmark in a file in the format of mlperf-logging, by batch size.

    If no point names the benchmark, all are used: some names in mlperf-logging are wrong.

    Raises:
        UserError: the file cannot be read, or the official checker cannot use it.
    """
    records = read_points(path)
    of_benchmark = {name: r for name, r in records.items() if r.benchmark == benchmark}
    records = of_benchmark or records
    if reason := _refused(records, 2 * runs.drop):
        raise UserError(f"{visible(str(path))}: {reason}")
    return by_size(
        ReferencePoint.from_runs(
            name, record.batch_size, record.to_converge, runs=runs.required, drop=runs.drop
        )
        for name, record in records.items()
    )


def benchmarks_in(path: Path) -> list[str]:
    """Return the benchmarks that the points of a file name, sorted.

    Raises:
        UserError: the file cannot be read.
    """
    return sorted({record.benchmark for record in read_points(path).values()})


def _refused(records: Mapping[str, PointRecord], dropped: int) -> str | None:
    """Return the reason why the official checker cannot use the points of a file, or None."""
    if not records:
        return "no reference point"
    sizes: dict[float, str] = {}
    for name, record in records.items():
        point, first = visible(name), sizes.setdefault(record.batch_size, name)
        if first != name:
            return f"{point} and {visible(first)} both have batch size {record.batch_size:.15g}"
        if reason := refused_point(record, dropped):
            return f"{point} {reason}"
    return None


def refused_point(record: PointRecord, dropped: int) -> str | None:
    """Return the reason why the official checker cannot use a point, or None.

    ``dropped`` is the number of runs that do not count in the mean.
    """
    key = unit_key(record.benchmark)
    values = record.samples if key.startswith("samples") else record.epochs
    if record.hyperparameters is None:
        return 'has no "Hyperparams", which the official checker reads'
    if not values:
        return f'has no "{key}", which the official checker reads'
    if len(values) <= dropped:
        return f"has {len(values)} runs, of which {dropped} are dropped; expected more"
    if record.batch_size >= _LARGEST:
        return f"has batch size {record.batch_size:.15g}; expected less than {_LARGEST:,.0f}"
    if not all(0 < value <= _MOST for value in values):
        return f"has a run outside of 0 to {_MOST:,.0f}"
    return None
