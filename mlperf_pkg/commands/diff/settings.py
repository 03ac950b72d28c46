"""The settings in a log: hyperparameters, and other values that the rules require."""

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
from mlperf_pkg.run import evaluations

MAX_VALUES = 10  # of one key in one log
MAX_CHARACTERS = 10_000
_EXACT = 2.0**53

# Rules name these too, but they record what happened, not what was set. "actual_..." is "not a
# hyperparameter, cannot be borrowed" in training_rules, Hyperparameters: minigo.
_OUTCOMES = evaluations.KEYS | {
    "actual_selfplay_games_per_generation",
    "aggregated_eval_accuracy",
    "cache_clear",
    "config_filename",
    "seed",
    "weights_initialization",
}
# Named in training_rules, Hyperparameters and Hyperparameter borrowing, but required of a log by no
# rule of the rulebook.
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
    """Return the keys of settings that the rules of a round name, for any of its benchmarks.

    Raises:
        UserError: the rulebook has no such round.
    """
    return frozenset(
        key
        for key in _WRITTEN.union(_keys_named(usage, round_)) - _OUTCOMES
        if not key.startswith("submission_") and not key.endswith(_SUFFIXES)
    )


def _keys_named(usage: str, round_: str) -> Iterator[str]:
    rulebook = load_round(usage, round_)
    for rules in rulebook.sections.values():
        yield from rules
    for name in rulebook.benchmarks:
        benchmark = load_benchmark(usage, round_, name)
        for rules in benchmark.sections.values() if benchmark else ():
            yield from rules
        for key, variants in benchmark.variants.items() if benchmark else ():
            yield key
            for rules in variants.values():
                yield from rules


def read_settings(source: Source, keys: frozenset[str]) -> dict[str, str]:
    """Return the values of these keys in a log as JSON, several values separated by commas.

    Equal numbers have equal text: ``1.0`` becomes ``1``.

    Raises:
        OSError: the log cannot be read.
    """
    values: dict[str, dict[str, None]] = {}
    with source.open() as stream:
        for record in LogReader(stream, source.label, lambda _: None):
            if record is not None and isinstance(record.key, str) and record.key in keys:
                texts = values.setdefault(record.key, {})
                if len(texts) < MAX_VALUES:
                    texts[_as_text(record.value)] = None
    return {key: ", ".join(texts) for key, texts in values.items()}


def _as_text(value: Any) -> str:
    """Return a value as JSON, equal values as equal text; a very long one as start and digest."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    with suppress(TypeError, ValueError, RecursionError):
        text = json.dumps(printable(value), ensure_ascii=False, sort_keys=True)
        if len(text) <= MAX_CHARACTERS:
            return text
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{text[:MAX_CHARACTERS]}... (sha256 {digest})"
    return shown(value)
