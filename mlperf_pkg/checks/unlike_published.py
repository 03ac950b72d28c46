"""Hyperparameters and scores unlike all published ones: advice on sets that are not published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.consistency import broken_keys
from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.checks.described import texts_of
from mlperf_pkg.checks.system_names import plain_name
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.numbers import to_finite
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.published.results import PublishedResults, usable_results
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.run.model import Run

_MIN_SETS, _MIN_SUBMITTERS = 20, 5  # with a hyperparameter; with fewer, values are not compared
_FACTOR = 2.0  # below the least or above the greatest published value of a hyperparameter
_MIN_SCORES = 3  # on the same accelerators; with fewer, scores are not compared
_FAST, _SLOW = 1.3, 1.5
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
    peers = _peers(context, results)
    yield from _check_hyperparameters(context, results, peers)
    yield from _check_score(context, score, peers.values())


def _peers(context: SetContext, results: PublishedResults) -> Mapping[int, PublishedSet]:
    """Return the sets to compare with, by their index."""
    usage, benchmark, rules = context.round.usage, context.files.benchmark, context.rules
    targets: dict[str, bool] = {}
    peers: dict[int, PublishedSet] = {}
    for index, row in enumerate(results.sets):
        if (row.benchmark, row.usage) != (benchmark, usage):
            continue
        if known_division(row.division) != "closed":
            continue
        if row.round not in targets:
            older = load_benchmark(usage, row.round, benchmark)
            targets[row.round] = bool(older and rules and older.target == rules.target)
        if targets[row.round]:
            peers[index] = row
    return peers


# ---- hyperparameters ----------------------------------------------------------------------


class _Published(Struct):
    """The published numbers of a hyperparameter, with the sets and the submitters that have it."""

    numbers: set[float]
    sets: set[int]
    submitters: set[str]

    @property
    def are_many(self) -> bool:
        return len(self.sets) >= _MIN_SETS and len(self.submitters) >= _MIN_SUBMITTERS

    @property
    def words(self) -> str:
        limits = dict.fromkeys((min(self.numbers), max(self.numbers)))
        return " to ".join(f"{limit:.6g}" for limit in limits)

    def has_like(self, number: float) -> bool:
        """Return whether a number is between the published ones, or near them."""
        least, greatest = min(self.numbers), max(self.numbers)
        lower = least / _FACTOR if least > 0 else least * _FACTOR
        upper = greatest * _FACTOR if greatest > 0 else greatest / _FACTOR
        return lower <= number <= upper


def _check_hyperparameters(
    context: SetContext, results: PublishedResults, peers: Mapping[int, PublishedSet]
) -> Iterator[Finding]:
    published = _published(results, context.files.benchmark, tuple(peers))
    unlike = {
        f"{key} {number:.6g}": f"{key} {published[key].words}"
        for key, number in _own_numbers(context.runs)
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


@lru_cache(maxsize=64)  # of the benchmarks in a round, each in many sets
def _published(
    results: PublishedResults, benchmark: str, peers: tuple[int, ...]
) -> Mapping[str, _Published]:
    """Return the hyperparameters of these sets, which are numbers, by key."""
    published: dict[str, _Published] = {}
    indexes = frozenset(peers)
    for setting in results.settings(benchmark):
        if setting.set in indexes and (number := _number(setting.value)) is not None:
            of_key = published.setdefault(setting.key, _Published(set(), set(), set()))
            of_key.numbers.add(number)
            of_key.sets.add(setting.set)
            of_key.submitters.add(results.sets[setting.set].submitter)
    return published


def _own_numbers(runs: Sequence[Run]) -> list[tuple[str, float]]:
    """Return the numbers to compare, without those of steps and those that break a rule."""
    values = {pair for run in runs for pair in run.hyperparameters.items()}
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


def _check_score(
    context: SetContext, score: float | None, peers: Collection[PublishedSet]
) -> Iterator[Finding]:
    system = context.system
    if not score or system is None or not system.accelerators:
        return
    model = texts_of(system)["accelerator_model"]
    scores = {
        row.score_minutes: row
        for row in peers
        if row.score_minutes
        and (row.accelerators, row.scaling) == (system.accelerators, context.files.scaling_mode)
        and plain_name(row.accelerator_model) == plain_name(model)
    }
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
