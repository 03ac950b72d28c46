"""The system description of a machine, from its sources and from values of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.names import FIELDS as NAME_FIELDS
from mlperf_pkg.checks.names import published_spelling
from mlperf_pkg.checks.system_schema import (
    FILL_IN,
    SIMILAR,
    meaning,
    needing_answer,
    required_fields,
    spelled_statuses,
    status_of_round,
    statuses,
)
from mlperf_pkg.commands.system.machine import Sources, detected, frameworks
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.rulebook.rounds import TRAINING

ONE_NODE = "N/A, one node"
"""The network topology of a system with one node."""


class UserValues(Struct, frozen=True):
    """Values that only the user knows; their spelling depends on ``usage`` and ``round``.

    ``status`` is an availability in the words of any round. ``name`` is the system's name in the
    results table, never that of the host.
    """

    round: str
    submitter: str | None = None
    division: str | None = None
    status: str | None = None
    name: str | None = None
    nodes: int | None = None
    usage: str = TRAINING


def describe(sources: Sources, user_values: UserValues) -> dict[str, Any]:
    """Return the completed description of a machine, with names as published.

    Raises:
        UserError: the round has no such availability.
    """
    installed = frameworks(sources)
    values = detected(sources, installed)
    names = {field: values.get(field) or "" for field in NAME_FIELDS}
    spellings = {field: published_spelling(field, name) or name for field, name in names.items()}
    return completed({**values, **spellings}, user_values, installed)


def completed(
    values: Mapping[str, Any], user_values: UserValues, installed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return every required field, in order, then others, and those that need an answer.

    The value of an unknown field begins with ``FILL IN`` where the rules require an answer, and is
    empty where they do not; ``installed`` are the frameworks to choose from.

    Raises:
        UserError: the round has no such availability.
    """
    values = {**values, **user_fields(user_values)}
    required = {name: values.get(name) or "" for name in required_fields()}
    fields = required | {name: value for name, value in values.items() if value}
    for group in needing_answer():
        if not any(fields.get(name) for name in group):
            fields[group[0]] = f"{FILL_IN}: {_question(group[0], user_values, installed)}"
    return fields


def user_fields(user_values: UserValues) -> dict[str, str]:
    """Return the fields that the user gives.

    Raises:
        UserError: the round has no such availability.
    """
    values = {
        "submitter": user_values.submitter,
        "division": user_values.division,
        "status": _status(user_values),
        "system_name": user_values.name,
        "number_of_nodes": str(user_values.nodes) if user_values.nodes else None,
        "host_networking_topology": ONE_NODE if user_values.nodes == 1 else None,
    }
    return {name: value for name, value in values.items() if value}


def _status(user_values: UserValues) -> str | None:
    if user_values.status is None:
        return None
    status = status_of_round(user_values.status, user_values.usage, user_values.round)
    if status is None:
        raise UserError(
            f"unknown status of round {user_values.round}: {user_values.status!r}"
            f"{did_you_mean(user_values.status, spelled_statuses(), SIMILAR)}"
            f" (known: {'; '.join(statuses(user_values.usage, user_values.round))})"
        )
    return status


def _question(field: str, user_values: UserValues, installed: Sequence[str]) -> str:
    """Return what the user must fill in, or the possible answers."""
    choices = {
        "status": statuses(user_values.usage, user_values.round),
        "division": DIVISIONS,
        "framework": installed,
    }.get(field)
    return " or ".join(choices) if choices else meaning(field)
