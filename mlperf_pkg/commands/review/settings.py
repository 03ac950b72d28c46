"""The hyperparameters of result sets, and those of the reference at their batch sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.findings import Basis
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.results.rcp import reference_hyperparameters
from mlperf_pkg.rulebook.explain.describe import conditions
from mlperf_pkg.rulebook.model import Benchmark, Rule
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import in_words, is_hyperparameter

BATCH_SIZE = "global_batch_size"
OF_SCALE = frozenset(
    {
        "batchnorm_group_size",
        "gradient_accumulation_frequency",
        "gradient_accumulation_steps",
        "model_bn_span",
        "opt_gradient_accumulation_steps",
    }
)
"""The hyperparameters that follow from the batch size and the number of accelerators."""

_MOST_KEYS = 200  # of a log; the keys with rules come first

_PLAIN = frozenset({"above", "at_least", "type"})  # constraints that nearly every value meets

_SPELT = {  # names in reference points, and those of the same hyperparameters in logs
    "batchnorm_groupsize": "batchnorm_group_size",
    "lora_r": "lora_rank",
    "max_steps": "opt_learning_rate_training_steps",
    "model_eva_ema_factor": "model_eval_ema_factor",
    "opt_gradient_accumulation_steps": "gradient_accumulation_steps",
    "opt_epsilon": "opt_lamb_epsilon",
    "opt_learning_decay_factor": "opt_learning_rate_decay_factor",
    "opt_learning_decay_steps": "opt_learning_rate_decay_steps",
    "opt_max_grad_norm": "opt_gradient_clip_norm",
    "optimizer": "opt_name",
}

_OF_SAMPLE = frozenset({("stable_diffusion", "opt_base_learning_rate")})
"""The hyperparameters that reference points give per sample, and logs per batch."""


class Entry(Struct, frozen=True):
    """The hyperparameters of a result set, as logged.

    ``counts`` maps each key, including the batch size, to its values (JSON) with the number of
    runs that log them, the most frequent first. ``size`` is the batch size of most runs.
    """

    path: str
    submitter: str
    system: str
    size: float | None
    counts: Mapping[str, Mapping[str, int]]

    def value(self, key: str) -> str:
        """Return the value of most runs, empty if they do not log the key."""
        return next(iter(self.counts.get(key, ())), "")

    def words(self, key: str) -> str:
        """Return all values of the runs."""
        return " or ".join(map(plain, self.counts.get(key, ())))


def division_of(context: SetContext) -> str:
    """Return the division of a set: that of its system, else that of its logs."""
    logged = (run.division.lower() for run in context.runs if run.division)
    return context.division_by_rules or next(logged, "unknown division")


def entry_of(context: SetContext) -> Entry:
    """Return the hyperparameters of a set, without killed runs and runs of other benchmarks."""
    name = context.files.benchmark
    runs = [run for run in context.runs if not run.killed and run.benchmark == name]
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        for key, value in _pairs(run):
            counts.setdefault(key, Counter())[value] += 1
    ordered = {key: dict(values.most_common()) for key, values in counts.items()}
    organisation = next((run.text("org") for run in context.runs), "")
    system = " ".join(filter(None, (context.files.system, context.files.scaling_mode)))
    size = next(iter(ordered.get(BATCH_SIZE, ())), "")
    submitter = context.submitter or organisation
    return Entry(context.path, submitter, system, number(size), ordered)


def _pairs(run: Run) -> Iterator[tuple[str, str]]:
    yield from ((BATCH_SIZE, size) for size in run.batch_sizes[:1])
    yield from islice(run.hyperparameters.items(), _MOST_KEYS)


class Reference(Struct, frozen=True):
    """The hyperparameters of the reference points by batch size, named as in logs.

    ``fixed`` are the values that the rules require, ``rules`` the requirements in words;
    ``derived`` are the keys whose values follow from others by a formula of the rules.
    """

    points: Mapping[float, Mapping[str, str]]
    fixed: Mapping[str, str]
    rules: Mapping[str, str]
    derived: frozenset[str]

    def near(self, size: float | None) -> list[float]:
        """Return the batch sizes of the point of this size, or of those on either side."""
        if size is None or size in self.points:
            return [] if size is None else [size]
        below = max((batch_size for batch_size in self.points if batch_size < size), default=None)
        above = min((batch_size for batch_size in self.points if batch_size > size), default=None)
        return [batch_size for batch_size in (below, above) if batch_size is not None]

    def values(self, key: str, size: float | None) -> list[str]:
        """Return the value at a batch size, or those of the two points around it; may be empty.

        Outside the range of the points, return the value on which all of them agree.
        """
        is_within = size is not None and len(self.near(size)) > (size not in self.points)
        logged = self._values(key, self.near(size) if is_within else self.points)
        if logged and (is_within or len(logged) == 1):
            return logged
        return [self.fixed[key]] if key in self.fixed else []

    def has(self, value: str, key: str, size: float | None) -> bool | None:
        """Return whether the reference has a value, or values on both sides of it.

        None if that is unknown: outside the range of batch sizes, a value is only known to be
        between those of all points.
        """
        values = self.values(key, size)
        if not values:
            return _is_among(value, self._values(key, self.points)) or None
        return _is_among(value, values)

    def _values(self, key: str, sizes: Iterable[float]) -> list[str]:
        points = (self.points[size] for size in sizes)
        return list(dict.fromkeys(point[key] for point in points if key in point))


def _is_among(value: str, values: Sequence[str]) -> bool:
    parsed, range_ = number(value), limits(values)
    if parsed is not None and range_ is not None:
        return range_[0] <= parsed <= range_[1]
    return value.lower() in (text.lower() for text in values)


def limits(values: Sequence[str]) -> tuple[float, float] | None:
    """Return the least and the greatest of values; None if they are not all numbers."""
    numbers = [parsed for parsed in map(number, values) if parsed is not None]
    return (min(numbers), max(numbers)) if numbers and len(numbers) == len(values) else None


def number(value: str) -> float | None:
    """Return a value in JSON as a finite number, None if it is something else."""
    try:
        return to_finite(float(value))
    except ValueError:
        return None


def plain(value: str) -> str:
    """Return a value in JSON without the quotation marks of a string."""
    return value.strip('"')


def reference_of(context: SetContext, keys: Collection[str]) -> Reference:
    """Return the reference for the benchmark of a set; ``keys`` are those in logs.

    The rules on values are those of the Closed division.
    """
    ruleset, benchmark = context.round.ruleset, context.files.benchmark
    records = reference_hyperparameters(context.round.usage, ruleset, benchmark)
    is_closed = division_of(context) == "closed"
    rules = dict(_rules(context.rules)) if context.rules and is_closed else {}
    return Reference(
        {size: _as_logged(values, keys, size, benchmark) for size, values in records.items()},
        {key: value for key, of_key in rules.items() for value in _fixed(of_key)},
        {key: words for key, of_key in rules.items() if (words := _words(of_key))},
        frozenset(key for key, of_key in rules.items() if any(rule.formula for rule in of_key)),
    )


def _as_logged(
    values: Mapping[str, Any], keys: Collection[str], size: float, benchmark: str
) -> dict[str, str]:
    optimizer = values.get("optimizer")
    named: dict[str, str] = {}
    for name, value in values.items():
        candidates = (f"{optimizer}_{name}", name, _SPELT.get(name, name))
        key = next((candidate for candidate in candidates if candidate in keys), name)
        is_of_sample = (benchmark, name) in _OF_SAMPLE and isinstance(value, float)
        named[key] = in_words(value * size if is_of_sample else value)
    return named


def _rules(benchmark: Benchmark) -> Iterator[tuple[str, list[Rule]]]:
    """Yield the rules of the Closed division on each hyperparameter, for all optimizers.

    Rules that only the official checker has are left out.
    """
    by_key: dict[str, list[Rule]] = {}
    choices = (rules for variant in benchmark.variants.values() for rules in variant.values())
    for section in (benchmark.sections["closed"], *choices):
        for key, rules in section.items():
            if is_hyperparameter(key):
                written = (rule for rule in rules if rule.basis is not Basis.OFFICIAL)
                by_key.setdefault(key, []).extend(written)
    yield from by_key.items()


def _fixed(rules: Sequence[Rule]) -> Iterator[str]:
    for rule in rules:
        if "equals" in rule.constraints:
            yield in_words(rule.constraints["equals"])


def _words(rules: Sequence[Rule]) -> str:
    """Return the requirements of rules in words, without those that nearly every value meets."""
    specific = (rule for rule in rules if rule.formula or rule.constraints.keys() - _PLAIN)
    words = (words for rule in specific for words in conditions(rule) if words)
    return " and ".join(dict.fromkeys(words))
