"""The settings that a log tells: its hyperparameters and what else rules ask about the set-up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import printable, shown
from mlperf_pkg.rulebook.load import load_benchmark, load_round

MAX_VALUES = 10  # of one key in one log; more of them tell nothing more
MAX_CHARACTERS = 10_000
_EXACT = 2.0**53

# Rules name these too, but they tell what happened, not what was set. "actual_..." is "not a
# hyperparameter, cannot be borrowed" in training_rules, Hyperparameters: minigo.
_OUTCOMES = frozenset(
    {
        "actual_selfplay_games_per_generation",
        "aggregated_eval_accuracy",
        "averaged_validation_loss",
        "cache_clear",
        "config_filename",
        "eval_accuracy",
        "eval_error",
        "seed",
        "weights_initialization",
    }
)
# Named in training_rules, Hyperparameters and Hyperparameter borrowing, under keys that no rule
# of the rulebook asks of a log.
_WRITTEN = frozenset(
    {
        "data_eval_samples",
        "data_train_samples",
        "data_train_speed_perturbation_max",
        "data_train_speed_perturbation_min",
        "dropout",
        "evaluation_input_shape",
        "evaluation_overlap",
        "local_batch_size",
        "lora_dropout",
        "opt_epsilon",
        "opt_gradient_accumulation_steps",
        "opt_init_checkpoint_step",
        "opt_initial_learning_rate",
        "opt_learning_rate_warmup_ratio",
        "sequence_length",
        "training_oversampling",
    }
)
_SUFFIXES = ("_start", "_stop")


def settings_named(usage: str, round_: str) -> frozenset[str]:
    """The keys of settings that rules name, of whatever benchmark of a round.

    Raises:
        UserError: the rulebook has no such round.
    """
    return frozenset(
        key
        for key in _WRITTEN.union(_keys_named(usage, round_)) - _OUTCOMES
        if not key.startswith("submission_") and not key.endswith(_SUFFIXES)
    )


def _keys_named(usage: str, round_: str) -> Iterator[str]:
    known = load_round(usage, round_)
    for rules in known.sections.values():
        yield from rules
    for name in known.benchmarks:
        benchmark = load_benchmark(usage, round_, name)
        for rules in benchmark.sections.values() if benchmark else ():
            yield from rules
        for key, variants in benchmark.variants.items() if benchmark else ():
            yield key
            for rules in variants.values():
                yield from rules


def read_settings(source: Source, names: frozenset[str]) -> dict[str, str]:
    """The values of the keys ``names`` in a log, as JSON; different values of one key in a row.

    Numbers of equal value read equal: ``1.0`` is ``1``.

    Raises:
        OSError: it cannot be read.
    """
    found: dict[str, dict[str, None]] = {}
    with source.open() as stream:
        for record in LogReader(stream, source.label, lambda _: None):
            if record is not None and isinstance(record.key, str) and record.key in names:
                values = found.setdefault(record.key, {})
                if len(values) < MAX_VALUES:
                    values[_as_text(record.value)] = None
    return {key: ", ".join(values) for key, values in found.items()}


def _as_text(value: Any) -> str:
    """A value as JSON, one text for equal values; of a very long one the head and a digest."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    with suppress(TypeError, ValueError, RecursionError):
        text = json.dumps(printable(value), ensure_ascii=False, sort_keys=True)
        if len(text) <= MAX_CHARACTERS:
            return text
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{text[:MAX_CHARACTERS]}... (sha256 {digest})"
    return shown(value)
