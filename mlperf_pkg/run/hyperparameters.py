"""The hyperparameters of a run, to compare the runs of a result set."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any

from mlperf_pkg.infra.numbers import to_finite
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import shown
from mlperf_pkg.rulebook.logged import Seen

_PREFIXES = ("opt_", "lars_", "sgd_opt_", "scheduler_", "lora_", "swa_", "data_sp", "data_train_")
_KEYS = frozenset(
    {
        "batchnorm_group_size",
        "dropout",
        "gradient_accumulation_frequency",
        "gradient_accumulation_steps",
        "lr_boundaries",
        "lr_decay_start_steps",
        "lr_rates",
        "max_samples",
        "max_sequence_length",
        "model_bn_span",
        "model_eval_ema_factor",
        "model_weights_initialization_scale",
        "num_image_candidates",
        "num_warmup_steps",
        "oversampling",
        "sequence_length",
        "start_warmup_step",
        "training_input_shape",
    }
)


def hyperparameters_of(
    seen: Seen, followed: frozenset[str], others: Mapping[str, str]
) -> dict[str, str]:
    """Return the first values of the hyperparameters in a log, as JSON.

    Numbers have six significant digits: ``1`` and ``1.0`` are the same. ``seen`` holds the keys
    that the rules have ``followed``, ``others`` those that they do not (``of_head``).
    """
    names = _hyperparameters(followed)
    return {**{key: in_words(seen[key].first) for key in names if key in seen}, **others}


@lru_cache
def _hyperparameters(keys: frozenset[str]) -> list[str]:
    return sorted(filter(is_hyperparameter, keys))


def of_head(head: Block, followed: Set[str]) -> dict[str, str]:
    """Return the hyperparameters in the ``head`` of a log that its rules do not follow."""
    keys = sorted(filter(is_hyperparameter, head.indexes.keys() - followed))
    values = head.values([head.indexes[key][0] for key in keys]) if keys else []
    return {key: in_words(value) for key, value in zip(keys, values, strict=True)}


def is_hyperparameter(key: str) -> bool:
    """Return whether the runs of a result set are compared by this key."""
    return key.startswith(_PREFIXES) or key in _KEYS


def in_words(value: Any) -> str:
    """Return a value as JSON; numbers have six significant digits."""
    is_cached = type(value) in (int, float) and value  # zeros are equal, whatever their sign
    return _in_words(value) if is_cached else _in_words.__wrapped__(value)


@lru_cache(maxsize=1024)  # the runs of a result set repeat the same numbers
def _in_words(value: Any) -> str:
    number = to_finite(value)
    return shown(value) if number is None else f"{number:.6g}"
