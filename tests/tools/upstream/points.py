"""Mistakes in the reference convergence points of an mlperf-logging.

A mistake in a point changes the RCP test of every result set that is compared with it. The points
are those of the folder ``rcp_checker``.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from statistics import median

from msgspec import Struct

from mlperf_pkg.commands.rcp.records import PointRecord, points_folder, read_points
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Round

_FACTOR = 3
"""A value this many times its median, or this fraction of it, is a typo.

Apart from the one typo, which is 11.4 times its median, the points of mlperf-logging 4.1.68 stay
within 2.1 times (``unet3d_ref_2_fp32``).
"""


class PointKind(StrEnum):
    """What is wrong with a reference point.

    OUTLIER: a run far from the others. FEW_RUNS: fewer than twice the runs of a submission.
    EQUAL_RUNS: a deviation of zero. MISNAMED: the point is of another benchmark than its file.
    UNUSED: the round does not have the benchmark.
    """

    OUTLIER = "outlier"
    FEW_RUNS = "few_runs"
    EQUAL_RUNS = "equal_runs"
    MISNAMED = "misnamed"
    UNUSED = "unused"


class PointProblem(Struct, frozen=True):
    """What is wrong with one reference point; ``file`` is relative to the mlperf-logging."""

    kind: PointKind
    usage: str
    round: str
    benchmark: str
    point: str
    batch_size: float
    file: str
    found: str
    expected: str


def lint(folder: Path, rounds: Iterable[Round]) -> list[PointProblem]:
    """Return what is wrong with the points of some rounds in the folder of an mlperf-logging.

    Raises:
        UserError: a file of reference points cannot be read. The message names it.
    """
    problems: list[PointProblem] = []
    for round_ in rounds:
        for path in sorted(points_folder(folder, round_).glob("rcps_*.json")):
            name = path.stem.removeprefix("rcps_")
            file = path.relative_to(folder).as_posix()
            problems += lint_file(path, round_, name, visible(file))
    return problems


def lint_file(path: Path, round_: Round, name: str, file: str) -> Iterator[PointProblem]:
    """Yield what is wrong with the points in a file of benchmark ``name``, shown as ``file``.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    benchmark = load_benchmark(round_.usage, round_.name, name)
    runs = benchmark.runs.required if benchmark else None
    for point, record in read_points(path).items():
        place = round_.usage, round_.name, visible(name), visible(point)
        for kind, actual, expected in problems_of(record, name, runs):
            yield PointProblem(kind, *place, record.batch_size, file, actual, expected)


def problems_of(
    record: PointRecord, name: str, runs: int | None
) -> Iterator[tuple[PointKind, str, str]]:
    """Yield what is wrong with a point: the kind, what was found, what was expected.

    ``runs`` is what a submission needs; None where the round does not have the benchmark.
    """
    values = record.to_converge
    outliers = _outliers(values)
    if outliers:
        yield PointKind.OUTLIER, outliers, f"all within {_FACTOR} times the median"
    if runs is not None and len(values) < 2 * runs:
        expected = f"at least {2 * runs} (2N, where a submission has N = {runs})"
        yield PointKind.FEW_RUNS, f"{len(values)} runs", expected
    if min(values) == max(values):
        actual = f"{len(values)} runs, all at {_number(values[0])}"
        yield PointKind.EQUAL_RUNS, actual, "runs that differ"
    if record.benchmark != name:
        yield PointKind.MISNAMED, f"the benchmark {visible(record.benchmark)}", name
    if runs is None:
        yield (
            PointKind.UNUSED,
            "a point of a benchmark that the round does not have",
            "no such point",
        )


def _outliers(values: Sequence[float]) -> str:
    """Return the values far from the median, in words; empty where there are none."""
    middle = median(values)
    far = [value for value in values if not middle / _FACTOR <= value <= middle * _FACTOR]
    return "; ".join(
        _number(value) + (f", {value / middle:.1f} times the median" if middle else "")
        for value in far
    )


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")
