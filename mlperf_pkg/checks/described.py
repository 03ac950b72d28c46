"""The fields of a system description that published results also have."""

from __future__ import annotations

from typing import Any

from mlperf_pkg.checks.system_schema import logged_statuses
from mlperf_pkg.checks.system_values import is_text, whole_number
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.published.model import PublishedSet

PREVIEW = "preview"

TEXTS = {
    "system_name": "system_name",
    "accelerator_model": "accelerator_model_name",
    "host_processor": "host_processor_model_name",
    "framework": "framework",
}
COUNTS = {"accelerators_per_node": "accelerators_per_node", "nodes": "number_of_nodes"}
"""Fields of ``PublishedSet`` and their names in a description."""


def texts_of(system: SystemFile | None) -> dict[str, Any]:
    """Return the texts of a description by fields of ``PublishedSet``; missing texts are empty."""
    contents = (system and system.contents) or {}
    values = {name: contents.get(field) for name, field in TEXTS.items()}
    return {name: value.strip() if is_text(value) else "" for name, value in values.items()}


def counts_of(system: SystemFile | None) -> dict[str, Any]:
    """Return the numbers of a description by fields of ``PublishedSet``."""
    contents = (system and system.contents) or {}
    return {name: whole_number(contents.get(field)) for name, field in COUNTS.items()}


def differences(system: SystemFile, published: PublishedSet) -> list[str]:
    """Return the fields that differ from the description of a published set.

    Its empty fields are not compared. Rounds spell the same availability in different ways.
    """
    now = {**texts_of(system), **counts_of(system)}
    before = {name: getattr(published, name) for name in now}
    fields = [
        {**TEXTS, **COUNTS}[name] for name in now if before[name] and before[name] != now[name]
    ]
    old, new = category(published.status), category(system.status or "")
    return [*fields, *(["status"] if old and old != new else [])]


def category(status: str) -> str | None:
    """Return the name of an availability in logs, for any round; None for other text."""
    return next(iter(logged_statuses(status)), None)
