"""Ratios of results to a baseline, and to the same system in an earlier round.

Results compare if benchmark, division and kind of scaling agree, whatever their rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from mlperf_pkg.commands.compare.model import Result, Row
from mlperf_pkg.commands.compare.prices import Prices, plain, price_of
from mlperf_pkg.config import Price
from mlperf_pkg.rulebook.model import version_of


def compare(
    results: Sequence[Result], prices: Prices, is_baseline: Callable[[Result], bool]
) -> tuple[Row, ...]:
    """Return the rows of all results by group, in a group the fastest first.

    The baseline of a group is the first result with a score for which ``is_baseline`` holds, in
    the order of ``results``; a group without one has no ratios.
    """
    rows = []
    for group in sorted({result.group for result in results}):
        members = [result for result in results if result.group == group]
        scored = (result for result in members if result.minutes is not None)
        baseline = next((result for result in scored if is_baseline(result)), None)
        ordered = sorted(members, key=_by_score)
        rows += [_row(result, baseline, members, prices) for result in ordered]
    return tuple(rows)


def _by_score(result: Result) -> tuple[float, str]:
    """Return the key that sorts the fastest first, and results without a score last."""
    return math.inf if result.minutes is None else result.minutes, result.path


class _Figures(Struct, frozen=True):
    """The figures of a result or a baseline that ratios compare; None if unknown."""

    minutes: float | None = None
    accelerators: int | None = None
    nodes: int | None = None
    joules: float | None = None
    price: Price | None = None

    @property
    def usd(self) -> float | None:
        return self.price.usd if self.price else None


def _figures(result: Result | None, prices: Prices) -> _Figures:
    if result is None:
        return _Figures()
    return _Figures(
        minutes=result.minutes,
        accelerators=result.accelerators,
        nodes=result.nodes,
        joules=result.energy_joules,
        price=price_of(prices, result.system, result.system_name),
    )


def _row(result: Result, baseline: Result | None, members: Sequence[Result], prices: Prices) -> Row:
    own, base = _figures(result, prices), _figures(baseline, prices)
    previous = _previous(result, members)
    speed = _ratio(base.minutes, own.minutes)
    return Row(
        result=result,
        baseline=result is baseline,
        speed=speed,
        speed_per_accelerator=_product(speed, _ratio(base.accelerators, own.accelerators)),
        speed_per_node=_product(speed, _ratio(base.nodes, own.nodes)),
        performance_per_dollar=_product(speed, _ratio(base.usd, own.usd)),
        # Energy is that of the whole training, so it includes the time.
        performance_per_joule=_ratio(base.joules, own.joules),
        samples_per_second_per_accelerator=_ratio(result.samples_per_second, own.accelerators),
        samples_per_second_per_node=_ratio(result.samples_per_second, own.nodes),
        price_usd=own.usd,
        price_source=own.price.source if own.price else None,
        price_date=own.price.date if own.price else None,
        previous_round=previous.round if previous else None,
        previous_system=previous.system if previous else None,
        previous_minutes=previous.minutes if previous else None,
        improvement=_ratio(previous.minutes, result.minutes) if previous else None,
    )


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


def _product(one: float | None, other: float | None) -> float | None:
    return one * other if one and other else None


# ---- rounds -------------------------------------------------------------------------------


def _previous(result: Result, members: Sequence[Result]) -> Result | None:
    """Return the same system's result of the latest earlier round.

    If there are several: one of the same name, else of the same framework, else the fastest.
    """
    earlier = [
        other
        for other in members
        if other.minutes
        and _same_system(result, other)
        and _version(other.round) < _version(result.round)
    ]
    if result.minutes is None or not earlier:
        return None
    latest = max(_version(other.round) for other in earlier)
    of_round = [other for other in earlier if _version(other.round) == latest]
    return min(
        of_round, key=lambda other: (*_differences(result, other), other.minutes, other.path)
    )


def _differences(result: Result, other: Result) -> tuple[bool, bool]:
    return plain(result.system) != plain(other.system), result.framework != other.framework


def _same_system(one: Result, other: Result) -> bool:
    if not one.round or not other.round or one.submitter != other.submitter:
        return False
    if one.hardware and other.hardware:
        return _machine(one) == _machine(other)
    return plain(one.system) == plain(other.system)


def _machine(result: Result) -> tuple[str | None, int | None, int | None]:
    return result.hardware, result.accelerators, result.nodes


def _version(round_: str | None) -> tuple[int, ...]:
    return version_of(round_) if round_ else ()
