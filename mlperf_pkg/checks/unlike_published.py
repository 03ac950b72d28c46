"""Hyperparameters and scores unlike all published ones: advice on sets that are not published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct

from mlperf_pkg.checks.consistency import broken_keys
from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.checks.described import texts_of
from mlperf_pkg.checks.system_names import plain_name
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.published.results import PublishedResults, usable_results
from mlperf_pkg.rulebook.load import target_of
from mlperf_pkg.run.model import Run

_MIN_SETS, _MIN_SUBMITTERS = 20, 5  # with a hyperparameter; with fewer, values are not compared
_FACTOR = 2.0  # below the least or above the greatest published value of a hyperparameter
_MIN_SCORES = 3  # on the same accelerators; with fewer, scores are not compared
_FAST, _SLOW = 1.3, 1.5

_Accelerators: TypeAlias = tuple[int, str, str | None]
"""The number of accelerators, their model, and the kind of scaling."""

_NOTE: dict[str, Any] = {"basis": Basis.ADVICE, "severity": Severity.NOTE}


def check_unlike_published(context: SetContext, score: float | None) -> Iterator[Finding]:
    """Note hyperparameters and a ``score`` in minutes that are unlike all published ones.

    They are compared with those of the Closed sets of this benchmark in rounds with the same
    target. A set of several benchmarks is not compared.
    """
    if not (context.origin.is_judged and context.closed_by_rules and context.rules):
        return
    if {run.benchmark for run in context.runs} != {context.files.benchmark}:
        return
    results = usable_results()
    if results is None:
        return
    round_ = context.round
    peers = _peers(results, round_.usage, round_.name, context.files.benchmark)
    yield from _check_hyperparameters(context, peers)
    yield from _check_score(context, score, peers)


# ---- what they are compared with ----------------------------------------------------------


class _Published(Struct, dict=True):
    """The published numbers of a hyperparameter, with the sets and the submitters that have it."""

    numbers: set[float]
    sets: set[int]
    submitters: set[str]

    @property
    def are_many(self) -> bool:
        return len(self.sets) >= _MIN_SETS and len(self.submitters) >= _MIN_SUBMITTERS

    @property
    def words(self) -> str:
        return " to ".join(f"{limit:.6g}" for limit in dict.fromkeys(self._limits))

    def has_like(self, number: float) -> bool:
        """Return whether a number is between the published ones, or near them."""
        least, greatest = self._limits
        lower = least / _FACTOR if least > 0 else least * _FACTOR
        upper = greatest * _FACTOR if greatest > 0 else greatest / _FACTOR
        return lower <= number <= upper

    @cached_property
    def _limits(self) -> tuple[float, float]:
        return min(self.numbers), max(self.numbers)


class _Peers(Struct, frozen=True, dict=True):
    """The published sets of a ``benchmark`` to compare with, by their index in all ``results``."""

    results: PublishedResults
    benchmark: str
    sets: Mapping[int, PublishedSet]

    @cached_property
    def settings(self) -> frozenset[tuple[str, str]]:
        """The keys of their hyperparameters, each with a value."""
        settings = self.results.settings(self.benchmark)
        return frozenset((s.key, s.value) for s in settings if s.set in self.sets)

    @cached_property
    def numbers(self) -> Mapping[str, _Published]:
        """Their hyperparameters that are numbers, by key."""
        published: dict[str, _Published] = {}
        for setting in self.results.settings(self.benchmark):
            if setting.set in self.sets and (number := _number(setting.value)) is not None:
                of_key = published.setdefault(setting.key, _Published(set(), set(), set()))
                of_key.numbers.add(number)
                of_key.sets.add(setting.set)
                of_key.submitters.add(self.sets[setting.set].submitter)
        return published

    @cached_property
    def by_accelerators(self) -> Mapping[_Accelerators, Sequence[PublishedSet]]:
        """Those with a score, by the accelerators that it was reached on."""
        rows: dict[_Accelerators, list[PublishedSet]] = {}
        for row in self.sets.values():
            if row.score_minutes and row.accelerators:
                model = plain_name(row.accelerator_model)
                rows.setdefault((row.accelerators, model, row.scaling), []).append(row)
        return rows


@per_rulebook
def _peers(results: PublishedResults, usage: str, round_name: str, benchmark: str) -> _Peers:
    """Return the Closed sets of a benchmark in rounds with the same target."""
    target = target_of(usage, round_name, benchmark)
    targets: dict[str, bool] = {}
    peers: dict[int, PublishedSet] = {}
    for index, row in enumerate(results.sets):
        if (row.benchmark, row.usage) != (benchmark, usage):
            continue
        if known_division(row.division) != "closed":
            continue
        if row.round not in targets:
            older = target_of(usage, row.round, benchmark)
            targets[row.round] = older is not None and older == target
        if targets[row.round]:
            peers[index] = row
    return _Peers(results, benchmark, peers)


# ---- hyperparameters ----------------------------------------------------------------------


def _check_hyperparameters(context: SetContext, peers: _Peers) -> Iterator[Finding]:
    values = {pair for run in context.runs for pair in run.hyperparameters.items()}
    if not (values := values - peers.settings):  # the usual case, and fast
        return
    published = peers.numbers
    unlike = {
        f"{key} {number:.6g}": f"{key} {published[key].words}"
        for key, number in _own_numbers(context.runs, values)
        if key in published and published[key].are_many and not published[key].has_like(number)
    }
    if unlike:
        yield set_finding(
            context,
            "SET162",
            f"{{found:s}}; all published sets of {context.files.benchmark} have {{expected:s}}",
            found=list(unlike),
            expected=list(unlike.values()),
            **_NOTE,
        )


def _own_numbers(
    runs: Sequence[Run], values: Collection[tuple[str, str]]
) -> list[tuple[str, float]]:
    """Return the numbers to compare, without those of steps and those that break a rule."""
    broken = broken_keys(runs)
    keys = {key for key, _ in values if not key.endswith("_steps") and key not in broken}
    numbers = ((key, _number(value)) for key, value in sorted(values) if key in keys)
    return [(key, number) for key, number in numbers if number is not None]


def _number(value: str) -> float | None:
    try:
        return to_finite(float(value))
    except ValueError:
        return None


# ---- scores -------------------------------------------------------------------------------


def _check_score(context: SetContext, score: float | None, peers: _Peers) -> Iterator[Finding]:
    system = context.system
    if not score or system is None or not system.accelerators:
        return
    model = plain_name(texts_of(system)["accelerator_model"])
    accelerators = (system.accelerators, model, context.files.scaling_mode)
    rows = peers.by_accelerators.get(accelerators, ())
    scores = {row.score_minutes: row for row in rows if row.score_minutes}
    if len(scores) < _MIN_SCORES or len({row.submitter for row in scores.values()}) == 1:
        return
    fastest, slowest = min(scores), max(scores)
    if score * _FAST <= fastest:
        words, ratio, limit = "fast as the fastest", fastest / score, fastest
    elif score >= slowest * _SLOW:
        words, ratio, limit = "slow as the slowest", score / slowest, slowest
    else:
        return
    row = scores[limit]
    yield set_finding(
        context,
        "SET163",
        f"the score is {{found:.3f}} minutes: {ratio:.1f} times as {words} published result on"
        f" {system.accelerators} {row.accelerator_model}, {{expected:.3f}} minutes"
        f" ({row.submitter} in {row.round})",
        found=score,
        expected=limit,
        **_NOTE,
    )
