"""Times that a log states beside its stamps: of training and of the warm-up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import nan
from operator import sub
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.log.block import Block
from mlperf_pkg.rulebook.formula import Seen
from mlperf_pkg.rulebook.model import Benchmark

_MOST = 3  # statements that are compared, from the first on: to read a record costs time

# In published logs, no interval is more than 15 milliseconds shorter than stated.
_LEAST_SECONDS = 0.1
_LEAST_PART = 0.005
_OTHER_UNIT = 0.6  # of the time that would be needed: below it, the throughput is of something else


class _Layout(Struct, frozen=True):
    """Where logs state the throughput, or the time of a step, of a part of the training.

    It stands one of the ``offsets`` from a record of the key ``end``, the last one that is stated,
    and counts from the last record of the key ``opening``, or from the statement before if that is
    later.
    """

    end: str
    offsets: tuple[int, ...]
    opening: str


_BY_EVALUATION = _Layout("eval_start", (-2, -1), "block_start")
_BY_EPOCH = _Layout("epoch_stop", (1, 2), "epoch_start")
_LAYOUTS = {
    "bert": _BY_EVALUATION,
    "flux1": _BY_EVALUATION,
    "llama2_70b_lora": _BY_EVALUATION,
    "llama31_405b": _BY_EVALUATION,
    "llama31_8b": _BY_EVALUATION,
    "resnet": _BY_EPOCH,
    "rnnt": _BY_EPOCH,
    "stable_diffusion": _Layout("block_start", (-1,), ""),
}
"""By benchmark; those of all others count batches, tokens, or parts of an epoch."""

_NUMBERS = (int, float)  # as their types, which is faster than ``to_finite``
_LARGEST = 1e18
_MOST_MS = 3e10  # a year; times farther apart are of different units, or have a digit too many

_WORDS = {
    "throughput": (
        "{amount:,.0f} samples at a throughput of {value:,.2f} samples a second take"
        " {needed:,.1f} seconds"
    ),
    "train_step_time": "{amount:,.0f} steps of {value:,.3f} seconds take {needed:,.1f} seconds",
    "warmup_time": "warmup_time is {needed:,.1f} seconds",
}
"""The arithmetic of what is stated. Of several statements in one record, the first counts."""


class Interval(Struct, frozen=True):
    """A time between two stamps that is shorter than what the log states needs.

    ``start`` and ``statement`` are the indexes of its records in a block of lines, ``seconds`` what
    is between them. The ``value`` is that of ``stated``, for an ``amount`` of samples or steps.
    """

    start: int
    statement: int
    seconds: float
    needed: float
    stated: str
    value: float
    amount: float

    @property
    def arithmetic(self) -> str:
        """Why the time is needed, in words."""
        words = _WORDS[self.stated]
        return words.format(amount=self.amount, value=self.value, needed=self.needed)


def too_short(block: Block, rules: Benchmark | None, seen: Seen) -> list[Interval]:
    """Return the intervals whose stamps leave less time than the log states.

    There are none if most intervals are far too short: then the log states the throughput of
    something else. Only the ``block`` with ``run_start`` is read: nearly all logs are one.
    """
    layout = _LAYOUTS.get(rules.name) if rules else None
    if rules is None or layout is None:
        return []
    indexes = block.indexes
    stating = {*indexes.get("tracked_stats", ()), *indexes.get("throughput", ())}
    if not stating:
        return []
    places = [*_warmup(block, stating), *_places(block, layout, rules.counted_by, stating)]
    if not places:
        return []
    intervals: list[Interval] = []
    far = 0
    for interval in _intervals(block, places, _sizes(rules, seen)):
        intervals.append(interval)
        far += interval.seconds < _OTHER_UNIT * interval.needed
    return [] if 2 * far > len(places) else intervals


def _places(
    block: Block, layout: _Layout, counted_by: str, stating: set[int]
) -> Iterator[tuple[int, int, float]]:
    """Yield the record from which a statement counts, the statement, and how much it counts.

    Records are indexes in the block. Several openings between two statements are not compared.
    """
    openings = block.indexes.get(layout.opening, [])
    ends = block.indexes.get(layout.end, [])[:_MOST]
    position = 0.0
    last = -1
    opened = 0
    for end, metadata in zip(ends, block.metadata(ends), strict=True):
        reached: Any = metadata.get(counted_by) if type(metadata) is dict else None
        if type(reached) not in _NUMBERS or not 0 <= reached < _LARGEST:
            reached = nan
        statement = end  # which states nothing
        for offset in layout.offsets:
            if end + offset in stating:
                statement = end + offset
        place = bisect_left(openings, statement)
        start = max(last, openings[place - 1] if place else -1)
        if statement != end and start >= 0 and place - opened <= 1:
            yield start, statement, reached - position
        position = reached
        last = statement if statement != end else -1
        opened = place


def _warmup(block: Block, stating: set[int]) -> Iterator[tuple[int, int, float]]:
    """Yield the first ``init_start``, and a statement at the end of the initialisation."""
    starts = block.indexes.get("init_start", [])[:1]
    stops = block.indexes.get("init_stop", [])[:1]
    for start, stop in zip(starts, stops, strict=False):
        for statement in stating.intersection((stop - 1, stop - 2)):
            yield start, statement, 1.0


def _intervals(
    block: Block, places: Sequence[tuple[int, int, float]], sizes: Mapping[str, float]
) -> Iterator[Interval]:
    """Yield the intervals between two places that are too short for what is stated there."""
    statements = [place[1] for place in places]
    times = block.times([place[0] for place in places] + statements)
    rows = zip(
        places,
        map(sub, times[len(places) :], times),
        map(_stated, block.values(statements)),
        strict=True,
    )
    for place, elapsed_ms, (stated, value) in rows:
        amount = place[2] / sizes[stated]
        needed = amount / value if stated == "throughput" else amount * value
        allowed_ms = (needed - max(_LEAST_SECONDS, _LEAST_PART * needed)) * 1000
        if -_MOST_MS < elapsed_ms < allowed_ms:
            yield Interval(*place[:2], elapsed_ms / 1000, needed, stated, value, amount)


def _stated(value: Any) -> tuple[str, float]:
    """Return what a record states, and its value; that of one step, with a loss, does not count."""
    stated = value if type(value) is dict else {"throughput": value}
    for name in () if "loss" in " ".join(stated) else _WORDS:
        rate: Any = stated.get(name)
        if type(rate) in _NUMBERS and 0 < rate < _LARGEST:
            return name, rate
    return "throughput", nan


def _sizes(rules: Benchmark, seen: Seen) -> dict[str, float]:
    """Return how much of the training each thing that may be stated counts: a sample, or a step."""
    sample = 1.0
    if rules.unit == "epochs":
        sample = 1 / _size("train_samples", seen)
    step = _size("global_batch_size", seen) * sample
    return {"throughput": sample, "train_step_time": step, "warmup_time": 1.0}


def _size(key: str, seen: Seen) -> float:
    size = to_finite(seen[key].last) if key in seen else None
    return size or nan
