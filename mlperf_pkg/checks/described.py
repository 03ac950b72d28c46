"""The fields of a system description that published results also have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mlperf_pkg.checks.system_schema import logged_statuses
from mlperf_pkg.checks.system_values import is_text, whole_number
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.rulebook.rounds import TRAINING
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import set_name

PREVIEW = "preview"

CATEGORIES = {  # in the order of the rules
    "cloud": "Available cloud",
    "onprem": "Available on-premise",
    PREVIEW: "Preview",
    "research": "Research, Development, or Internal (RDI)",
}
"""The titles of availabilities by ``category``. Source: submission_rules, Results categories"""

TEXTS = {
    "system_name": "system_name",
    "accelerator_model": "accelerator_model_name",
    "host_processor": "host_processor_model_name",
    "framework": "framework",
}
COUNTS = {"accelerators_per_node": "accelerators_per_node", "nodes": "number_of_nodes"}
"""Fields of ``PublishedSet`` and their names in a description."""


def texts_of(system: SystemFile | None) -> dict[str, Any]:
    """Return the strings of a description by fields of ``PublishedSet``; missing ones are empty."""
    contents = (system and system.contents) or {}
    values = {name: contents.get(field) for name, field in TEXTS.items()}
    return {name: value.strip() if is_text(value) else "" for name, value in values.items()}


def counts_of(system: SystemFile | None) -> dict[str, Any]:
    """Return the numbers of a description by fields of ``PublishedSet``."""
    contents = (system and system.contents) or {}
    return {name: whole_number(contents.get(field)) for name, field in COUNTS.items()}


def as_published(
    row: ResultSetRow, runs: Sequence[Run], system: SystemFile | None, batch_size: int | None = None
) -> PublishedSet:
    """Return a checked result set as if it were published."""
    contents = (system and system.contents) or {}
    return PublishedSet(
        usage=runs[0].usage if runs else TRAINING,
        round=row.round,
        submitter=row.submitter or "",
        system=row.system or "",
        benchmark=row.benchmark,
        division=_stripped(contents.get("division")),
        path=row.path if set_name(row.path) else row.id,  # the path of raw logs does not name a set
        status=_stripped(contents.get("status")),
        accelerators=system.accelerators if system else None,
        **texts_of(system),
        **counts_of(system),
        global_batch_size=batch_size,
        runs=len(runs),
        score_minutes=row.score_minutes,
        unscaled_minutes=row.unscaled_minutes,
        official_minutes=row.official_minutes,
        energy_joules=row.energy_joules,
    )


def batch_size_of(runs: Sequence[Run]) -> int | None:
    """Return the batch size of all runs, None if they differ or log none."""
    sizes = {size for run in runs for size in run.batch_sizes}
    try:
        return whole_number(json.loads(sizes.pop())) if len(sizes) == 1 else None
    except (ValueError, RecursionError):
        return None


def differences(system: SystemFile, published: PublishedSet) -> list[str]:
    """Return the fields of a description that differ from those of a published set.

    Its empty fields are not compared. Rounds spell the same availability in different ways.
    """
    now = {**texts_of(system), **counts_of(system), "status": system.status or ""}
    return published_differences(now, published)


def published_differences(now: Mapping[str, Any], before: PublishedSet) -> list[str]:
    """Return the fields of ``PublishedSet``, named as in descriptions, that differ from ``now``."""
    fields = [
        field
        for name, field in {**TEXTS, **COUNTS}.items()
        if getattr(before, name) and getattr(before, name) != now[name]
    ]
    old, new = category(before.status), category(now["status"])
    return [*fields, *(["status"] if old and old != new else [])]


def _stripped(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def category(status: str) -> str | None:
    """Return the name of an availability in logs, for any round; None for other text."""
    return next(iter(logged_statuses(status)), None)
