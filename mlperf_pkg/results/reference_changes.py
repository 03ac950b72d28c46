"""What changed in the reference convergence points between two rounds of mlperf-logging."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from mlperf_pkg.results.rcp import ReferencePoint, reference_points
from mlperf_pkg.rulebook.model import Benchmark, Round


class ReferenceRuns(Struct, frozen=True):
    """The reference runs at one batch size: how many, and the olympic mean to convergence."""

    runs: int
    mean: float


class PointChange(Struct, frozen=True):
    """A reference point that was added (``old`` is None), removed (``new`` is None) or changed.

    Means are in the ``unit`` of the benchmark, such as samples.
    """

    benchmark: str
    unit: str
    batch_size: float
    old: ReferenceRuns | None
    new: ReferenceRuns | None


def changed_points(
    before: Round, old: Benchmark | None, after: Round, new: Benchmark
) -> Iterator[PointChange]:
    """Yield the changed points of a benchmark by batch size; all are new where ``old`` is None.

    Nothing is yielded if the installed mlperf-logging has no points of one of the rounds: whether
    they changed is then unknown.
    """
    was, now = (_points(before, old) if old else {}), _points(after, new)
    if not now or (old and not was):
        return
    for batch_size in sorted(was.keys() | now.keys()):
        one, other = was.get(batch_size), now.get(batch_size)
        if not (one and other and one.to_converge == other.to_converge):
            yield PointChange(new.name, new.unit, batch_size, _summary(one), _summary(other))


def _points(round_: Round, benchmark: Benchmark) -> Mapping[float, ReferencePoint]:
    points = reference_points(
        round_.usage,
        round_.ruleset,
        benchmark.name,
        runs=benchmark.runs.required,
        drop=benchmark.runs.drop,
    )
    return {point.batch_size: point for point in points}


def _summary(point: ReferencePoint | None) -> ReferenceRuns | None:
    return ReferenceRuns(len(point.to_converge), point.mean) if point else None
