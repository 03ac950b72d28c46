"""Which rules apply to a run: its round, benchmark, division and variants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mlperf_pkg.log.block import Block
from mlperf_pkg.log.reader import first_values, records_with
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.rulebook.rounds import round_of_run
from mlperf_pkg.rulebook.table import RuleTable, rule_table
from mlperf_pkg.run.model import LogFile

_IDENTITY_KEYS = ("submission_division", "submission_benchmark")


def infer_round(log: LogFile) -> tuple[str, str]:
    """Return the round of a log, inferred from its time and benchmark, and the reason.

    Raises:
        OSError: the log cannot be read.
    """
    identity = identify(log)
    return identity.round, identity.reason


class Identity(msgspec.Struct, frozen=True):
    """The values that decide which rules apply; ``variant_keys`` choose variants of them."""

    values: dict[str, Any]
    round: str
    reason: str
    variant_keys: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether the log names everything that decides which rules apply."""
        return all(key in self.values for key in (*_IDENTITY_KEYS, *self.variant_keys))

    def text(self, key: str) -> str:
        """Return the value of a key, empty where it is not text."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""


def identify(log: LogFile, head: Block | None = None) -> Identity:
    """Return the identity of a run; read beyond the ``head`` of its log only if necessary."""
    values = _first_values(log, head, _IDENTITY_KEYS)
    name = values.get("submission_benchmark")
    benchmark = name if isinstance(name, str) else ""
    round_, reason = (log.round, "as given") if log.round else _round(log, head, benchmark)
    rules = load_benchmark(log.usage, round_, benchmark)
    closed = values.get("submission_division") == "closed"
    variant_keys = tuple(rules.variants) if rules and closed else ()
    if variant_keys:
        values |= _first_values(log, head, variant_keys)
    return Identity(values, round_, reason, variant_keys)


def _first_values(log: LogFile, head: Block | None, keys: Sequence[str]) -> dict[str, Any]:
    if head and all(key in head.indexes for key in keys):
        return dict(zip(keys, head.values([head.indexes[key][0] for key in keys]), strict=True))
    with log.source.open() as stream:
        return first_values(stream, keys)


def _round(log: LogFile, head: Block | None, benchmark: str) -> tuple[str, str]:
    """Return the round of a run by its first time other than 0, and the reason."""
    time_ms = head.times([0])[0] if head and _has_first(head) else 0
    if not time_ms:
        with log.source.open() as stream:
            times = (record.time_ms for record in records_with(stream))
            time_ms = next(filter(None, times), 0.0)
    return round_of_run(log.usage, time_ms, benchmark)


def _has_first(head: Block) -> bool:
    """Return whether the first line of a block has a record that could be read."""
    return any(0 in indexes[:1] for indexes in head.indexes.values())


def table_of(log: LogFile, identity: Identity) -> RuleTable:
    """Return the rules of a run."""
    division = identity.text("submission_division")
    return rule_table(
        log.usage,
        identity.round,
        division if division in DIVISIONS else "",
        identity.text("submission_benchmark"),
        frozenset([(key, identity.text(key)) for key in identity.variant_keys]),
    )
