"""Results of systems beside each other: speed, per accelerator, node, dollar and joule.

Results compare where benchmark, division and kind of scaling agree, of whatever rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from mlperf_pkg.commands.compare.prices import Prices, plain, price_of
from mlperf_pkg.config import Price
from mlperf_pkg.findings import Verdict
from mlperf_pkg.rulebook.model import version_of


class Entry(Struct, frozen=True):
    """A result to be compared: of a result set, or a published score (``rules`` None).

    ``minutes`` is the score; ``note`` what it lacks. ``argument`` tells with which of the
    arguments, from 0, it was given. ``accelerators`` and ``nodes`` are totals. Rates are in
    ``unit`` ("samples" or "tokens") a second, means over the runs that count in the score;
    ``logged_throughput`` in whatever unit the logs have. ``target`` is the quality that the round
    asks for. ``hardware`` and ``framework`` tell which results of other rounds are of the same
    system.
    """

    argument: int
    round: str | None
    submitter: str | None
    system: str
    system_name: str | None
    benchmark: str
    division: str | None
    minutes: float | None
    path: str
    scaling: str | None = None
    note: str = ""
    rules: Verdict | None = None
    accelerators: int | None = None
    nodes: int | None = None
    hardware: str | None = None
    framework: str | None = None
    unit: str | None = None
    samples_per_second: float | None = None
    logged_throughput: float | None = None
    energy_joules: float | None = None
    precision: str | None = None
    target: str | None = None

    @property
    def group(self) -> tuple[str, str, str]:
        """Benchmark, division and scaling: what must agree to compare results."""
        return (self.benchmark, self.division or "", self.scaling or "")

    @property
    def name(self) -> str:
        """Round, submitter and system."""
        owned = f"{self.submitter}/{self.system}" if self.submitter else self.system
        return f"{self.round} {owned}" if self.round else owned


class Row(Struct, frozen=True):
    """An entry, its price, and how it compares with the baseline of its group.

    ``speed`` is the baseline's minutes over its own: above 1 is faster. The ratios beside it are of
    speed over accelerators, nodes, US dollars and joules, each relative to the baseline's. A ratio
    is None where either side lacks what it needs. ``previous_round`` is the latest earlier round
    with a result of the same system, ``improvement`` that result's minutes over these.
    """

    entry: Entry
    baseline: bool
    speed: float | None
    speed_per_accelerator: float | None
    speed_per_node: float | None
    performance_per_dollar: float | None
    performance_per_joule: float | None
    samples_per_second_per_accelerator: float | None
    samples_per_second_per_node: float | None
    price_usd: float | None
    price_source: str | None
    price_date: str | None
    previous_round: str | None
    previous_system: str | None
    previous_minutes: float | None
    improvement: float | None


def compete(
    entries: Sequence[Entry], prices: Prices, is_baseline: Callable[[Entry], bool]
) -> tuple[Row, ...]:
    """The rows of all entries by group, then in the order given.

    The baseline of a group is the first entry with a score of which ``is_baseline`` holds; a group
    without one has no ratios.
    """
    rows = []
    for group in sorted({entry.group for entry in entries}):
        members = [entry for entry in entries if entry.group == group]
        scored = (each for each in members if each.minutes is not None)
        baseline = next((each for each in scored if is_baseline(each)), None)
        rows += [_row(entry, baseline, members, prices) for entry in members]
    return tuple(rows)


def named(entry: Entry, name: str) -> bool:
    """Whether ``name`` is that of the entry's submitter, system, or both, with ``*`` for any text.

    The round may stand before it, as the tables show it; case does not matter.
    """
    names = [entry.system, entry.system_name, entry.submitter, entry.path, entry.name]
    names += [f"{entry.submitter}/{entry.system}", f"{entry.round} {entry.system}"]
    return any(each and fnmatchcase(each.casefold(), name.casefold()) for each in names)


def _row(entry: Entry, baseline: Entry | None, members: Sequence[Entry], prices: Prices) -> Row:
    price, other = _price(entry, prices), _price(baseline, prices)
    previous = _previous(entry, members)
    speed = _ratio(_of(baseline, "minutes"), entry.minutes)

    def speed_per(name: str) -> float | None:
        return _product(speed, _ratio(_of(baseline, name), _of(entry, name)))

    return Row(
        entry=entry,
        baseline=entry is baseline,
        speed=speed,
        speed_per_accelerator=speed_per("accelerators"),
        speed_per_node=speed_per("nodes"),
        performance_per_dollar=_product(speed, _ratio(_of(other, "usd"), _of(price, "usd"))),
        # Energy is that of the whole training, so that time is in it already.
        performance_per_joule=_ratio(_of(baseline, "energy_joules"), entry.energy_joules),
        samples_per_second_per_accelerator=_ratio(entry.samples_per_second, entry.accelerators),
        samples_per_second_per_node=_ratio(entry.samples_per_second, entry.nodes),
        price_usd=_of(price, "usd"),
        price_source=price.source if price else None,
        price_date=price.date if price else None,
        previous_round=previous.round if previous else None,
        previous_system=previous.system if previous else None,
        previous_minutes=previous.minutes if previous else None,
        improvement=_ratio(_of(previous, "minutes"), entry.minutes),
    )


def _price(entry: Entry | None, prices: Prices) -> Price | None:
    return price_of(prices, entry.system, entry.system_name) if entry else None


def _of(side: Entry | Price | None, name: str) -> float | None:
    value: float | None = getattr(side, name, None)
    return value


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


def _product(one: float | None, other: float | None) -> float | None:
    return one * other if one and other else None


# ---- rounds -------------------------------------------------------------------------------


def _previous(entry: Entry, members: Sequence[Entry]) -> Entry | None:
    """The same system's result of the latest earlier round.

    Of several it is one of the same name, else of the same framework, else the fastest.
    """
    known = [each for each in members if each.minutes and _same_system(entry, each)]
    earlier = [each for each in known if _version(each.round) < _version(entry.round)]
    if entry.minutes is None or not earlier:
        return None
    latest = max(_version(each.round) for each in earlier)
    of_round = [each for each in earlier if _version(each.round) == latest]
    return min(of_round, key=lambda each: (*_differences(entry, each), each.minutes, each.path))


def _differences(entry: Entry, other: Entry) -> tuple[bool, bool]:
    return plain(entry.system) != plain(other.system), entry.framework != other.framework


def _same_system(one: Entry, other: Entry) -> bool:
    if not one.round or not other.round or one.submitter != other.submitter:
        return False
    if one.hardware and other.hardware:
        mine, theirs = ((each.hardware, each.accelerators, each.nodes) for each in (one, other))
        return mine == theirs
    return plain(one.system) == plain(other.system)


def _version(round_: str | None) -> tuple[int, ...]:
    return version_of(round_) if round_ else ()
