"""An example: a line of a log that meets a rule."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time
from typing import Any

from mlperf_pkg.log.record import TOKEN, Record
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, target_test
from mlperf_pkg.rulebook.formula import Formula, NoAnswerError
from mlperf_pkg.rulebook.logged import first_logged
from mlperf_pkg.rulebook.model import Joined, Round, Rule

_COUNTERS = ("epoch_num", "first_epoch_num", "epoch_count", "samples_count", "step_num")
_PLAIN = (None, 1, 0.5, 2, "name")
_STEP = 0.01
_EVENTS = {"_start": "INTERVAL_START", "_stop": "INTERVAL_END"}
_POINT = "POINT_IN_TIME"


def example(rule: Rule, round_: Round, joined: Joined | None = None) -> str | None:
    """Return a record that meets a rule by itself, as a line; None where other records decide.

    For a key that is ``joined`` from several records, return these, one per line. Their time is
    noon of the round's submission date.
    """
    if "same_as" in rule.constraints:
        return None
    noon = datetime.combine(round_.submission_date, time(12), UTC)
    time_ms, metadata = int(noon.timestamp() * 1000), _metadata(rule)
    for value in _values(rule, round_):
        record = Record(rule.key, time_ms, value, metadata)
        if _meets(rule, record):
            records = _parts(record, joined) if joined and joined.key == rule.key else [record]
            return "\n".join(map(_line, records))
    return None


def _parts(record: Record, joined: Joined) -> Iterator[Record]:
    """Yield the records that are joined to one; a rule may omit what they are joined by."""
    for name, value in record.value.items():
        if name != joined.by:
            metadata = {joined.name: name, joined.by: record.value.get(joined.by, 1)}
            yield Record(joined.of, record.time_ms, value, metadata)


def _line(record: Record) -> str:
    fields = {
        "namespace": "",
        "time_ms": record.time_ms,
        "event_type": next((_EVENTS[end] for end in _EVENTS if record.key.endswith(end)), _POINT),
        "key": record.key,
        "value": record.value,
        "metadata": record.metadata,
    }
    return TOKEN.decode() + json.dumps(fields)


def _meets(rule: Rule, record: Record) -> bool:
    seen = {
        key: first_logged(Record(key, record.time_ms - 1, None, None))
        for key in (*rule.constraints.get("after", ()), "submission_division")
    }
    try:
        tests = [CONSTRAINTS[name].test(argument) for name, argument in rule.constraints.items()]
        met = all(test(record, seen) for test in tests)
        met = met and (rule.reaches is None or target_test(rule.reaches)(record, seen))
        formula = Formula(rule.formula) if rule.formula else None
        return met and (not formula or formula.holds(record, seen))
    except (NoAnswerError, TypeError, ValueError, ArithmeticError, LookupError):
        return False


# ---- candidates ---------------------------------------------------------------------------


def _values(rule: Rule, round_: Round) -> Iterator[Any]:
    """Yield values that may meet a rule, the likeliest first."""
    constraints = {**rule.constraints, **(rule.reaches or {})}
    yield from _candidates(constraints)
    if names := constraints.get("has", ()):
        fields = constraints.get("fields", {})
        yield {name: next(_candidates(fields.get(name, {})), 1) for name in names}
    if "none_of" in constraints:
        yield from round_.benchmarks
    if rule.key.startswith(("init_", "run_", "block_", "epoch_", "eval_st")):
        yield None
    yield from reversed(_PLAIN) if rule.key.startswith("submission_") else _PLAIN[1:]
    yield None


def _candidates(constraints: Mapping[str, Any]) -> Iterator[Any]:
    for name, argument in constraints.items():
        match name:
            case (
                "equals" | "close_to" | "multiple_of" | "power_of_two_times" | "truthy" | "in_ratio"
            ):
                yield argument
            case "one_of":
                yield from argument
            case "at_least" | "at_most" | "above" | "below":
                step = 1 if isinstance(argument, int) else _STEP  # beside the bound
                yield from (argument, round(argument - step, 6), round(argument + step, 6))
            case "counts":
                yield from _candidates(argument)
            case "any":
                yield from (value for limits in argument for value in _candidates(limits))
            case "each":
                yield from ([value] for value in _fitting(argument))
            case "length" | "length_at_least":
                yield [1] * argument
            case "fields":
                yield {field: next(_fitting(limits), 1) for field, limits in argument.items()}
                yield [5.0] * (len(argument) + 1)


def _fitting(constraints: Mapping[str, Any]) -> Iterator[Any]:
    tests = [CONSTRAINTS[name].test(argument) for name, argument in constraints.items()]
    for value in _candidates(constraints):
        if all(test(Record("", 0, value, {}), {}) for test in tests):
            yield value


def _metadata(rule: Rule) -> dict[str, Any]:
    names = [*rule.constraints.get("metadata", ()), *rule.constraints.get("metadata_any", ())[-1:]]
    fields = rule.constraints.get("metadata_fields", {})
    tensor = {"tensor": rule.tensors[0]} if rule.tensors else {}
    defaults = {**dict.fromkeys(_COUNTERS, 1), **tensor}
    return {
        name: next(_fitting(fields.get(name, {})), defaults.get(name, "success")) for name in names
    }
