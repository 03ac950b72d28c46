"""The evaluations in a log: how far a run had trained, and what quality it had reached.

Every figure and chart that needs evaluations reads them here, so that all agree on what a record
means. The verdicts do not: ``run/convergence.py`` reads what the official RCP checker reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import Benchmark

KEYS = frozenset({"eval_accuracy", "eval_error", "averaged_validation_loss"})
"""The keys of evaluations; the last is that of Flux.1 in the Open division."""

POSITION_UNITS = {"samples_count": "samples", "epoch_num": "epochs", "step_num": "steps"}
"""The metadata that count training, with their units, in the order in which they are tried."""

_LARGEST = 1e100  # products of larger numbers overflow


class Evaluation(Struct, frozen=True):
    """One evaluation record.

    ``time_ms`` is in milliseconds since the epoch, ``line`` the 1-based line of the log.
    ``position`` is how far the run had trained, in ``unit``; see ``position_of``.
    ``values`` are the finite numbers by metric name; the name is empty for the only metric of a
    benchmark. There are none if the value is not a number.
    """

    key: str
    time_ms: float
    line: int
    position: float
    unit: str
    values: Mapping[str, float]


class Position(Struct, frozen=True):
    """How far a run had trained, as logged, in ``unit``."""

    amount: float
    unit: str


def evaluation_of(record: Record, rules: Benchmark | None, line: int) -> Evaluation | None:
    """Return an evaluation, read by the rules of its benchmark if there are any.

    None if the record does not say how far the run had trained.
    """
    position = position_of(record, rules)
    if position is None:
        return None
    numbers = {name: _measured(value) for name, value in _metrics(record, rules)}
    return Evaluation(
        key=record.key,
        time_ms=float(record.time_ms),
        line=line,
        position=position.amount,
        unit=position.unit,
        values={name: number for name, number in numbers.items() if number is not None},
    )


def position_of(record: Record, rules: Benchmark | None) -> Position | None:
    """Return how far a run had trained at a record; None if its metadata do not say.

    Many logs hold several counts. The one that the rules count convergence by comes first; then
    ``samples_count``, ``epoch_num`` and ``step_num``. The first that is a number counts.
    """
    own = {rules.counted_by: rules.unit} if rules else {}
    metadata = _metadata(record)
    for name, unit in {**own, **POSITION_UNITS, **own}.items():
        if _measured(metadata.get(name)) is not None:
            return Position(metadata[name], unit)
    return None


def _metrics(record: Record, rules: Benchmark | None) -> Iterator[tuple[str, Any]]:
    if isinstance(record.value, dict):
        yield from record.value.items()
    elif rules and rules.joined:
        yield str(_metadata(record).get(rules.joined.name, "")), record.value
    else:
        yield "", record.value


def _metadata(record: Record) -> Mapping[str, Any]:
    return record.metadata if isinstance(record.metadata, dict) else {}


def _measured(value: Any) -> float | None:
    number = to_finite(value)
    return number if number is not None and abs(number) < _LARGEST else None
