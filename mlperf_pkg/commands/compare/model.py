"""The values of a comparison: results, and rows that set each beside its baseline."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct, field

from mlperf_pkg.checks.descriptions import category
from mlperf_pkg.findings import Verdict
from mlperf_pkg.published.model import known_division


class ResultGroup(NamedTuple):
    """The group in which results are compared; a name is empty if the result lacks it."""

    benchmark: str
    division: str
    scaling: str

    @property
    def title(self) -> str:
        """The group as a heading."""
        scaling = [f"{self.scaling} scaling"] if self.scaling else []
        return f"{self.benchmark} ({', '.join([self.division or 'no division', *scaling])})"


class Result(Struct, frozen=True):
    """A result to be compared: that of a result set, or a published score (``rules`` None).

    ``minutes`` is the score; ``note`` qualifies it. ``argument`` is the index of the argument
    that holds it. ``accelerators`` and ``nodes`` are totals. Rates are in ``unit`` ("samples" or
    "tokens") per second, means over the runs that count in the score; ``logged_throughput`` is in
    whatever unit the logs use. ``target`` is the quality that the round requires. ``hardware`` and
    ``framework`` identify the results of other rounds that are of the same system.
    ``availability`` is the status in the system description. ``published`` marks a published result
    of this package. The values of ``hyperparameters`` are JSON.
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

    @property
    def group(self) -> ResultGroup:
        """The results that it compares with."""
        return ResultGroup(self.benchmark, known_division(self.division), self.scaling or "")

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
        names += [f"{self.submitter}/{self.system}", f"{self.round} {self.system}"]
        return any(name and fnmatchcase(name.casefold(), pattern.casefold()) for name in names)


class Row(Struct, frozen=True):
    """A result, its price, and how it compares with the baseline of its group.

    ``speed`` is the baseline's minutes over those of the result: above 1 is faster. The other
    ratios are of speed per accelerator, node, US dollar and joule, relative to the baseline's. A
    ratio is None if either side lacks a figure. ``previous_round`` is the latest earlier round
    with a result of the same system, ``improvement`` that result's minutes over these.
    """

    result: Result
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
