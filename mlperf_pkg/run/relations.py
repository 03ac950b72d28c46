"""Which logs are of one run: what two runs with equal values are to each other, by their clocks."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from math import inf
from typing import TypeAlias

from mlperf_pkg.log.record import TOGETHER_MS
from mlperf_pkg.published.model import equal_values, is_near, is_series
from mlperf_pkg.run.model import Run

SERIES = ("evaluated", "losses")
"""The fields of a run with its first values, by which it is known."""

_NEIGHBOURS = 100  # in order of their values, that are compared
_UNIT_MS = 1.0  # of stamps
_SECOND_MS = 1000.0  # the unit of some clocks
_TELLING = 6  # evaluations whose stamps suffice, whatever start and stop say
_SCALED = 4  # stamps, at least, of which a factor is found: two are always equal after one


class RunRelation(StrEnum):
    """What a run is to another with equal values.

    PROCESSES: both are logs of one run, of two of its processes. COPY: they are logs of one run,
    whatever was edited in one of them. REPEATED: they are two runs of a deterministic training,
    which repeats its values, but never its clock.
    """

    PROCESSES = "processes"
    COPY = "copy"
    REPEATED = "repeated"

    @property
    def is_one_run(self) -> bool:
        """Whether the logs are of one run."""
        return self is not RunRelation.REPEATED


Related: TypeAlias = tuple[int, int, RunRelation]
"""The indexes of two runs with equal values, and what they are to each other."""


def relation_of(run: Run, other: Run) -> RunRelation | None:
    """Return what two runs are to each other; None if their values are not equal but for noise.

    Copies have equal stamps, perhaps after a shift, or a shift and one factor, to one unit.
    Processes overlap, and none of their stamps differ by more than a second. Seeds do not count.
    """
    is_equal = run.fingerprint is not None and run.fingerprint == other.fingerprint
    is_contradicted = False
    for name in SERIES:
        values = getattr(run, name)
        others = getattr(other, name)
        is_equal = is_equal or equal_values(values, others) > 0
        is_contradicted = is_contradicted or not all(map(is_near, values, others))
    if not is_equal:
        return None
    stamps, other_stamps = _stamps(run, other)
    differences = [abs(one - two) for one, two in zip(stamps, other_stamps, strict=True)]
    farthest = max(differences, default=inf)
    if farthest == 0:
        return RunRelation.COPY
    if farthest <= TOGETHER_MS and _overlap(run, other):
        return RunRelation.PROCESSES
    if stamps and _agree(stamps, other_stamps):
        return RunRelation.COPY
    common = min(len(run.evaluated_ms), len(other.evaluated_ms))
    if common >= _TELLING and _agree(run.evaluated_ms[:common], other.evaluated_ms[:common]):
        return RunRelation.COPY
    return None if is_contradicted else RunRelation.REPEATED


def _stamps(run: Run, other: Run) -> tuple[list[float], list[float]]:
    """Return the times of the events that both runs have: start, evaluations, stop.

    The stop counts if both have the same number of evaluations.
    """
    events = [(run.start_ms, other.start_ms)]
    events += zip(run.evaluated_ms, other.evaluated_ms, strict=False)
    if len(run.evaluated_ms) == len(other.evaluated_ms):
        events.append((run.stop_ms, other.stop_ms))
    stamps: list[float] = []
    other_stamps: list[float] = []
    for one, two in events:
        if one is not None and two is not None:
            stamps.append(one)
            other_stamps.append(two)
    return stamps, other_stamps


def _overlap(run: Run, other: Run) -> bool:
    """Return whether a run starts before the other stops, and the other way round."""
    for first, second in ((run, other), (other, run)):
        if first.start_ms and second.stop_ms and first.start_ms > second.stop_ms:
            return False
    return True


def _agree(stamps: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether stamps equal others after a shift, perhaps with a factor, to one unit.

    Stamps within a second, or a single one, tell nothing.
    """
    by_span = sorted((stamps, others), key=lambda times: times[-1] - times[0])
    shorter, longer = ([stamp - times[0] for stamp in times] for times in by_span)
    if not max(longer) > _SECOND_MS:
        return False
    unit = max(_unit(stamps), _unit(others))
    factors = [1.0]
    if len(stamps) >= _SCALED and longer[-1]:
        factors.append(shorter[-1] / longer[-1])
    for factor in factors:
        pairs = zip(shorter, longer, strict=True)
        if all(abs(short - factor * long) <= unit for short, long in pairs):
            return True
    return False


def _unit(stamps: Sequence[float]) -> float:
    """Return the unit of a clock, in milliseconds."""
    return _UNIT_MS if any(stamp % _SECOND_MS for stamp in stamps) else _SECOND_MS


# ---- the same runs among many -------------------------------------------------------------


def is_known(run: Run) -> bool:
    """Return whether its evaluations or losses, or their times, tell a run from all others."""
    return run.fingerprint is not None or any(is_series(getattr(run, name)) for name in SERIES)


def originals(runs: Sequence[Run], pairs: Iterable[Related] | None = None) -> list[int]:
    """Return for each run the index of the first that is the same run; its own if none is.

    ``pairs`` are the related ones among the runs, if they are known already.
    """
    first = list(range(len(runs)))

    def root(index: int) -> int:
        while first[index] != index:
            first[index] = first[first[index]]
            index = first[index]
        return index

    for index, other, relation in related_pairs(runs) if pairs is None else pairs:
        if relation.is_one_run:
            least, most = sorted((root(index), root(other)))
            first[most] = least
    return [root(index) for index in first]


def related_pairs(runs: Sequence[Run]) -> Iterator[Related]:
    """Yield the related pairs among runs.

    Of runs whose evaluations have the same values at the same times, each is paired with the first.
    """
    by_times: dict[bytes, int] = {}
    for index, run in enumerate(runs):
        if run.fingerprint is not None:
            original = by_times.setdefault(run.fingerprint, index)
            if original != index:
                yield original, index, RunRelation.COPY
    for name in SERIES:
        for index, other in _near_pairs(runs, name):
            run = runs[index]
            if run.fingerprint is not None and run.fingerprint == runs[other].fingerprint:
                continue  # they are paired by their times
            relation = relation_of(run, runs[other])
            if relation:
                yield index, other, relation


def _near_another(all_values: Sequence[Sequence[float]]) -> set[int]:
    """Return the indexes of the values of which the first is near the first of others; few are.

    To compare neighbours suffices: whatever is between two near values is near both.
    """
    firsts = sorted([(values[0], index) for index, values in enumerate(all_values) if values])
    indexes: set[int] = set()
    for (value, index), (next_value, next_index) in pairwise(firsts):
        if is_near(value, next_value):
            indexes |= {index, next_index}
    return indexes


def _near_pairs(runs: Sequence[Run], name: str) -> Iterator[tuple[int, int]]:
    """Yield the indexes of runs of one benchmark with nearly the same first value of a series."""
    all_values = [getattr(run, name) for run in runs]
    series: list[tuple[str, Sequence[float], int]] = []
    for index in _near_another(all_values):
        values = all_values[index]
        if is_series(values):
            series.append((runs[index].benchmark, values, index))
    series.sort()
    for position, (benchmark, values, index) in enumerate(series):
        for other, others, neighbour in series[position + 1 : position + _NEIGHBOURS]:
            if other != benchmark or not is_near(values[0], others[0]):
                break
            if equal_values(values, others):
                yield min(index, neighbour), max(index, neighbour)
