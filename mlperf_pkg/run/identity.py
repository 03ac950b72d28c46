"""Which rules apply to a run: its usage, round, benchmark, division and variants."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mlperf_pkg.log.block import Block
from mlperf_pkg.log.reader import first_values, records_with
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark
from mlperf_pkg.rulebook.rounds import TRAINING, RoundChoice, round_of_run, usage_with
from mlperf_pkg.rulebook.table import RuleTable, rule_table
from mlperf_pkg.run.model import LogFile

BENCHMARK = "submission_benchmark"
_IDENTITY_KEYS = ("submission_division", BENCHMARK)


def infer_round(log: LogFile) -> RoundChoice:
    """Return the round of a log, inferred from its time and benchmark.

    Raises:
        OSError: the log cannot be read.
    """
    return identify(log).choice


def benchmark_of(log: LogFile) -> str:
    """Return the benchmark that a log names, empty where it names none.

    Raises:
        OSError: the log cannot be read.
    """
    return _text(_first_values(log, None, (BENCHMARK,)), BENCHMARK)


class Identity(msgspec.Struct, frozen=True):
    """The values that decide which rules apply; ``variant_keys`` choose variants of them."""

    values: dict[str, Any]
    usage: str
    choice: RoundChoice
    variant_keys: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether the log names everything that decides which rules apply."""
        return self.values.keys() >= {*_IDENTITY_KEYS, *self.variant_keys}

    def text(self, key: str) -> str:
        """Return the value of a key, empty where it is not text."""
        return _text(self.values, key)


def identify(log: LogFile, head: Block | None = None) -> Identity:
    """Return the identity of a run; read beyond the ``head`` of its log only if necessary."""
    values = _first_values(log, head, _IDENTITY_KEYS)
    benchmark = _text(values, BENCHMARK)
    inferred = None if log.usage else usage_with(benchmark, log.round)
    usage = log.usage or (inferred.usage if inferred else TRAINING)
    choice = log.choice or round_of_run(usage, _time_ms(log, head), benchmark)
    if inferred and usage != TRAINING:
        choice = choice.of_usage(inferred)
    rules = load_benchmark(usage, choice.name, benchmark)
    closed = values.get("submission_division") == "closed"
    variant_keys = tuple(rules.variants) if rules and closed else ()
    if variant_keys:
        values |= _first_values(log, head, variant_keys)
    return Identity(values, usage, choice, variant_keys)


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _first_values(log: LogFile, head: Block | None, keys: Sequence[str]) -> dict[str, Any]:
    if head and all(key in head.indexes for key in keys):
        return dict(zip(keys, head.values([head.indexes[key][0] for key in keys]), strict=True))
    with log.source.open() as stream:
        return first_values(stream, keys)


def _time_ms(log: LogFile, head: Block | None) -> float:
    """Return the first time of a run other than 0; 0 if there is none."""
    # The first line of the head may have no record that could be read.
    if head and any(0 in indexes[:1] for indexes in head.indexes.values()):
        time_ms: float = head.times([0])[0]
        if time_ms:
            return time_ms
    with log.source.open() as stream:
        return next(filter(None, (record.time_ms for record in records_with(stream))), 0.0)


def rules_of(identity: Identity) -> Benchmark | None:
    """Return the benchmark of a run, None if its round does not have it."""
    return load_benchmark(identity.usage, identity.choice.name, identity.text(BENCHMARK))


def table_of(identity: Identity) -> RuleTable:
    """Return the rules of a run."""
    division = identity.text("submission_division")
    return rule_table(
        identity.usage,
        identity.choice.name,
        division if division in DIVISIONS else "",
        identity.text(BENCHMARK),
        frozenset([(key, identity.text(key)) for key in identity.variant_keys]),
    )
