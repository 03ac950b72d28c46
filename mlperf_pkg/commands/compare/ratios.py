"""Results, their ratios to a baseline and to the same system in an earlier round, and prices.

Results compare if benchmark, division and kind of scaling agree, in rounds whose versions of the
benchmark compare.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.checks.descriptions import category
from mlperf_pkg.commands.notice import ShownResult, category_in_words
from mlperf_pkg.config import PRICES_NAME, Price, read_prices, shipped_prices
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.published.model import known_division
from mlperf_pkg.render.table import by_key
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import TRAINING, version_since
from mlperf_pkg.submission.submitters import SubmitterNames, is_same_submitter

Prices = Mapping[str, Price]
"""List prices by system; a price has other names of its system, too."""


class ResultGroup(NamedTuple):
    """The group in which results are compared; a name is empty if the result lacks it.

    ``version`` is the first round with which its results compare, empty if all earlier ones do.
    """

    benchmark: str
    division: str
    scaling: str
    version: str = ""

    @property
    def title(self) -> str:
        """The group as a heading."""
        kind = self.division or "no division"
        if self.scaling:
            kind = f"{kind}, {self.scaling} scaling"
        if self.version:
            kind = f"{kind}, since {self.version}"
        return f"{self.benchmark} ({kind})"


class Result(Struct, frozen=True):
    """A result to be compared: that of a result set, or a published score (``rules`` None).

    ``minutes`` is the score; ``note`` qualifies it. ``argument`` is the index of the argument
    that holds it. ``accelerators`` and ``nodes`` are totals. Rates are in ``unit`` ("samples" or
    "tokens") per second, means over the runs that count in the score; ``logged_throughput`` is in
    whatever unit the logs use. ``target`` is the quality that the round requires. ``hardware`` and
    ``framework`` identify the results of other rounds that are of the same system.
    ``availability`` is the status in the system description. ``published`` marks a published result
    of this package. The values of ``hyperparameters`` are JSON. A result ``is_verified`` if it was
    published and its logs, if any, are those of the record. ``id`` is that of MLCommons, if known;
    without a round, it is compared as one of the ``assumed_round``.
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
    availability: str | None = None
    published: bool = False
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    usage: str = TRAINING
    is_verified: bool = False
    id: str = ""
    assumed_round: str = ""

    @property
    def shown(self) -> ShownResult:
        """What must stand beside it."""
        return ShownResult(
            usage=self.usage,
            round=self.round or "",
            benchmark=self.benchmark,
            division=known_division(self.division),
            category=category_in_words(self.availability or ""),
            accelerators=self.accelerators,
            minutes=self.minutes,
            is_verified=self.is_verified,
            id=self.id,
        )

    @property
    def group(self) -> ResultGroup:
        """The results that it compares with."""
        division = known_division(self.division)
        version = version_since(self.usage, self.round or self.assumed_round, self.benchmark)
        return ResultGroup(self.benchmark, division, self.scaling or "", version)

    @property
    def name(self) -> str:
        """Round, submitter and system."""
        owned = f"{self.submitter}/{self.system}" if self.submitter else self.system
        return f"{self.round} {owned}" if self.round else owned

    @property
    def availability_in_short(self) -> str:
        """The availability in a word, empty if unknown: ``onprem``, ``cloud``, ``preview``..."""
        status = self.availability or ""
        return category(status) or status

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern names the result's submitter, system, or both.

        ``*`` matches any text. The round may come before the name, as in the tables; case does not
        matter.
        """
        names = [self.system, self.system_name, self.submitter, self.path, self.name]
        names.append(f"{self.submitter}/{self.system}")
        names.append(f"{self.round} {self.system}")
        wanted = pattern.casefold()
        return any(name and fnmatchcase(name.casefold(), wanted) for name in names)


class ComparisonRow(Struct, frozen=True):
    """A result, its price, and how it compares with the baseline of its group.

    ``speed`` is the baseline's minutes over those of the result: above 1 is faster. The other
    ratios are of speed per accelerator, node, US dollar and joule, relative to the baseline's. A
    ratio is None if either side lacks a figure. ``previous_round`` is the latest earlier round
    with a result of the same system, ``improvement`` that result's minutes over these.
    """

    result: Result
    baseline: bool
    speed: float | None = None
    speed_per_accelerator: float | None = None
    speed_per_node: float | None = None
    performance_per_dollar: float | None = None
    performance_per_joule: float | None = None
    samples_per_second_per_accelerator: float | None = None
    samples_per_second_per_node: float | None = None
    price_usd: float | None = None
    price_source: str | None = None
    price_date: str | None = None
    previous_round: str | None = None
    previous_system: str | None = None
    previous_minutes: float | None = None
    improvement: float | None = None


# ---- ratios -------------------------------------------------------------------------------


def compare(
    results: Sequence[Result], prices: Prices, is_baseline: Callable[[Result], bool]
) -> tuple[ComparisonRow, ...]:
    """Return the rows of all results by group, in a group the fastest first.

    The baseline of a group is the first result with a score for which ``is_baseline`` holds, in
    the order of ``results``; a group without one has no ratios.
    """
    groups = by_key((result.group, result) for result in results)
    rows = []
    for _, members in sorted(groups.items()):
        scored = [result for result in members if result.minutes is not None]
        baseline = next((result for result in scored if is_baseline(result)), None)
        members.sort(key=_by_speed)
        rows += [_row(result, baseline, members, prices) for result in members]
    return tuple(rows)


def with_rounds(results: Sequence[Result]) -> list[Result]:
    """Return results; those without a round are compared with the first of their benchmark."""
    rounds: dict[str, str] = {}
    for result in results:
        if result.round:
            rounds.setdefault(result.benchmark, result.round)
    assumed = []
    for result in results:
        assumed.append(replace(result, assumed_round=rounds.get(result.benchmark, "")))
    return assumed


def _by_speed(result: Result) -> tuple[float, str]:
    minutes = math.inf if result.minutes is None else result.minutes
    return minutes, result.path


def _row(
    result: Result, baseline: Result | None, members: Sequence[Result], prices: Prices
) -> ComparisonRow:
    price = price_of(prices, result.system, result.system_name)
    previous = _previous(result, members)
    figures: dict[str, Any] = {}
    if baseline:
        figures.update(_ratios(result, baseline))
        baseline_price = price_of(prices, baseline.system, baseline.system_name)
        if price and baseline_price:
            cost = _ratio(baseline_price.usd, price.usd)
            figures["performance_per_dollar"] = _product(figures["speed"], cost)
    if price:
        figures.update(price_usd=price.usd, price_source=price.source, price_date=price.date)
    if previous:
        figures.update(
            previous_round=previous.round,
            previous_system=previous.system,
            previous_minutes=previous.minutes,
            improvement=_ratio(previous.minutes, result.minutes),
        )
    return ComparisonRow(
        result=result,
        baseline=result is baseline,
        samples_per_second_per_accelerator=_ratio(result.samples_per_second, result.accelerators),
        samples_per_second_per_node=_ratio(result.samples_per_second, result.nodes),
        **figures,
    )


def _ratios(result: Result, baseline: Result) -> Mapping[str, float | None]:
    """Return the ratios of a result to the baseline, by the names of fields."""
    speed = _ratio(baseline.minutes, result.minutes)
    return {
        "speed": speed,
        "speed_per_accelerator": _product(
            speed, _ratio(baseline.accelerators, result.accelerators)
        ),
        "speed_per_node": _product(speed, _ratio(baseline.nodes, result.nodes)),
        # Energy is that of the whole training, so it includes the time.
        "performance_per_joule": _ratio(baseline.energy_joules, result.energy_joules),
    }


def _ratio(dividend: float | None, divisor: float | None) -> float | None:
    return dividend / divisor if dividend and divisor else None


def _product(speed: float | None, factor: float | None) -> float | None:
    return speed * factor if speed and factor else None


def baseline_test(name: str | None, results: Sequence[Result]) -> Callable[[Result], bool]:
    """Return a predicate for results of the baseline; without a name, those of the first argument.

    Raises:
        UserError: no result has this name.
    """
    if name is None:
        return lambda result: result.argument == 0
    if not any(result.matches(name) for result in results):
        names = {result.system for result in results}
        names |= {result.submitter or "" for result in results}
        suggestion = did_you_mean(name, sorted(names))
        raise UserError(
            f"--baseline {name}: no such system or submitter among the results{suggestion}"
        )
    return lambda result: result.matches(name)


# ---- rounds -------------------------------------------------------------------------------


def _previous(result: Result, members: Sequence[Result]) -> Result | None:
    """Return the same system's result of the latest earlier round.

    If there are several: one of the same name, else of the same framework, else the fastest.
    """
    if result.minutes is None:
        return None
    version = _version(result.round)
    earlier = []
    for other in members:
        if other.minutes and _same_system(result, other) and _version(other.round) < version:
            earlier.append(other)
    if not earlier:
        return None
    latest = max(_version(other.round) for other in earlier)
    candidates = [other for other in earlier if _version(other.round) == latest]

    def rank(other: Result) -> tuple[Any, ...]:
        has_other_name = plain(result.system) != plain(other.system)
        has_other_framework = result.framework != other.framework
        return has_other_name, has_other_framework, other.minutes, other.path

    return min(candidates, key=rank)


def _same_system(one: Result, other: Result) -> bool:
    if not one.round or not other.round:
        return False
    names = SubmitterNames(one.submitter or "")
    if not is_same_submitter(names, SubmitterNames(other.submitter or "")):
        return False
    if one.hardware and other.hardware:
        machine = attrgetter("hardware", "accelerators", "nodes")
        return bool(machine(one) == machine(other))
    return plain(one.system) == plain(other.system)


def _version(round_: str | None) -> tuple[int, ...]:
    return version_of(round_) if round_ else ()


# ---- prices -------------------------------------------------------------------------------


def all_prices(file: Path | None, configured: Prices, workspace: Path) -> Prices:
    """Return all prices by system; the first source that has a price for a system counts.

    The sources are ``file``, ``configured``, and ``systems/prices.yaml`` of the workspace, or of
    this package if the workspace has none.

    Raises:
        UserError: a file cannot be read or is not a file of prices; the message names each line.
    """
    path = workspace / PRICES_NAME
    default = read_prices(path) if path.is_file() else shipped_prices()
    prices = {**default, **configured}
    if file:
        prices.update(read_prices(file))
    return prices


def price_of(prices: Prices, *names: str | None) -> Price | None:
    """Return the price of the system with one of ``names``, which are tried in their order.

    Case and punctuation do not matter. The name of an entry comes before those under ``also``.
    """
    searched = [plain(name) for name in names if name and plain(name)]
    named = [(plain(system), price) for system, price in prices.items()]
    also_named = []
    for price in prices.values():
        also_named += [(plain(name), price) for name in price.also]
    for patterns in (named, also_named):
        for name in searched:
            for pattern, price in patterns:
                if fnmatchcase(name, pattern):
                    return price
    return None


def plain(name: str) -> str:
    """Return a name without case and punctuation: ``Bow Pod16`` and ``BOW_POD16`` agree."""
    return re.sub(r"[^\w*]|_", "", name.casefold())
