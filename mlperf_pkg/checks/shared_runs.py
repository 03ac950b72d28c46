"""Runs that may be in several of the result sets checked together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.run.model import Run

Members: TypeAlias = dict[int, list[Run]]  # the runs of sets, by the index of the set


def shared_runs(contexts: Sequence[SetContext]) -> list[Members]:
    """Return groups of runs that may be copies of one run, each in several sets.

    Runs with the same fingerprint are copies; runs without one are copies only if their bytes are
    the same. Placeholders, which have no start, are not in a group.
    """
    groups: dict[Hashable, Members] = {}
    for index, context in enumerate(contexts):
        for run in context.runs:
            if run.start_ms is not None:
                key = run.fingerprint or (run.records, run.start_ms, run.stop_ms)
                groups.setdefault(key, {}).setdefault(index, []).append(run)
    return [members for members in groups.values() if len(members) > 1]


def has_several_rounds(contexts: Sequence[SetContext]) -> bool:
    """Return whether sets of several rounds of one usage are checked together."""
    rounds = {(context.round.usage, context.round.name) for context in contexts}
    return len(rounds) > len({usage for usage, _ in rounds})
