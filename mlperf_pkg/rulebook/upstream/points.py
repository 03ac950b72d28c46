"""Check the reference convergence points of an mlperf-logging for mistakes in the data.

A mistake in a point changes the RCP test of every result set that is compared with it. The points
are those of the folder ``rcp_checker``; ``known_points.py`` has the mistakes that are known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Round

_FACTOR = 3
"""A value this many times its median, or this fraction of it, is a typo.

Apart from the one typo, which is 11.4 times its median, the points of mlperf-logging 4.1.68 stay
within 2.1 times (``unet3d_ref_2_fp32``).
"""


class Kind(StrEnum):
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

    kind: Kind
    usage: str
    round: str
    benchmark: str
    point: str
    batch_size: float
    file: str
    found: str
    expected: str


class PointRecord(Struct, frozen=True):
    """A point as its file has it, as far as it is checked."""

    benchmark: str = msgspec.field(name="Benchmark")
    batch_size: Annotated[float, Meta(gt=0)] = msgspec.field(name="BS")
    epochs: Annotated[list[float], Meta(min_length=1)] | None = msgspec.field(
        name="Epochs to converge", default=None
    )
    samples: Annotated[list[float], Meta(min_length=1)] | None = msgspec.field(
        name="samples to converge", default=None
    )
    hyperparameters: dict[str, Any] | None = msgspec.field(name="Hyperparams", default=None)

    @property
    def to_converge(self) -> list[float]:
        """The epochs or samples of each run, in the unit of the file."""
        return self.samples or self.epochs or []


def points_folder(folder: Path, round_: Round) -> Path:
    """Return the folder of an mlperf-logging with the points of a round, which need not exist."""
    return folder / "rcp_checker" / f"{round_.usage}_{round_.ruleset}"


def lint(folder: Path, rounds: Iterable[Round]) -> list[PointProblem]:
    """Return what is wrong with the points of some rounds in the folder of an mlperf-logging.

    Raises:
        UserError: a file of reference points cannot be read. The message names it.
    """
    return [
        problem
        for round_ in rounds
        for path in sorted(points_folder(folder, round_).glob("rcps_*.json"))
        for problem in _of_file(folder, round_, path)
    ]


def _of_file(folder: Path, round_: Round, path: Path) -> Iterator[PointProblem]:
    file = visible(path.relative_to(folder).as_posix())
    yield from lint_file(path, round_, path.stem.removeprefix("rcps_"), file)


def lint_file(path: Path, round_: Round, name: str, file: str) -> Iterator[PointProblem]:
    """Yield what is wrong with the points in a file of benchmark ``name``, shown as ``file``.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    benchmark = load_benchmark(round_.usage, round_.name, name)
    runs = benchmark.runs.required if benchmark else None
    for point, record in read_points(path).items():
        for kind, actual, expected in problems_of(record, name, runs):
            yield PointProblem(
                kind=kind,
                usage=round_.usage,
                round=round_.name,
                benchmark=visible(name),
                point=visible(point),
                batch_size=record.batch_size,
                file=file,
                found=actual,
                expected=expected,
            )


def problems_of(
    record: PointRecord, name: str, runs: int | None
) -> Iterator[tuple[Kind, str, str]]:
    """Yield what is wrong with a point: the kind, what was found, what was expected.

    ``runs`` is what a submission needs; None where the round does not have the benchmark.
    """
    values = record.to_converge
    if outliers := _outliers(values):
        expected = f"all within {_FACTOR} times the median"
        yield Kind.OUTLIER, outliers, expected
    if runs is not None and len(values) < 2 * runs:
        expected = f"at least {2 * runs} (2N, where a submission has N = {runs})"
        yield Kind.FEW_RUNS, f"{len(values)} runs", expected
    if min(values) == max(values):
        text = f"{len(values)} runs, all at {_number(values[0])}"
        yield Kind.EQUAL_RUNS, text, "runs that differ"
    if record.benchmark != name:
        yield Kind.MISNAMED, f"the benchmark {visible(record.benchmark)}", name
    if runs is None:
        yield Kind.UNUSED, "a point of a benchmark that the round does not have", "no such point"


def _outliers(values: Sequence[float]) -> str:
    """Return the values far from the median, in words; empty where there are none."""
    middle = median(values)
    far = [value for value in values if not middle / _FACTOR <= value <= middle * _FACTOR]
    if not far:
        return ""
    ratios = [f", {value / middle:.1f} times the median" if middle else "" for value in far]
    return "; ".join(map("{}{}".format, map(_number, far), ratios))


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")


# ---- files --------------------------------------------------------------------------------


def read_points(path: Path) -> dict[str, PointRecord]:
    """Return the points of a file by name.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    file = visible(str(path))
    try:
        if not path.is_file():
            raise UserError(f"{file}: not a file")
        document = json.loads(
            read_file(path, MAX_BYTES).decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse,
        )
        records = msgspec.convert(document, dict[str, PointRecord])
    except RecursionError as error:
        raise UserError(f"{file}: not reference points: nested too deeply") from error
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from error
    except ValueError as error:  # of JSON, UTF-8 and msgspec
        raise UserError(f"{file}: not reference points: {visible(str(error))}") from error
    for point, record in records.items():
        if not record.to_converge or not all(map(math.isfinite, _numbers(record))):
            raise UserError(
                f"{file}: not reference points: {visible(point)} has no finite numbers of epochs"
                " or samples to converge"
            )
    return records


def _numbers(record: PointRecord) -> list[float]:
    return [record.batch_size, *record.to_converge]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a mapping.

    Raises:
        ValueError: a name is in it twice, so that one of its values would be ignored.
    """
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{repeated!r} is given twice")
    return mapping


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")
