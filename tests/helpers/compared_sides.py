"""Sides of a comparison of two versions, without files."""

from typing import Any

from mlperf_pkg.checks.resubmission import SubmittedSet
from mlperf_pkg.commands.diff.changes import ComparedSet, ComparedSide
from tests.helpers.reports import PASS, result_set

NOTHING = SubmittedSet("training", "2.0", None, "bert", {})
"""The facts of a set of which nothing is known."""


def a_set(
    path: str = "results/dgx/bert", logs: Any = (), findings: Any = (), **row: Any
) -> ComparedSet:
    return ComparedSet(path, result_set(**row), tuple(logs), tuple(findings), NOTHING)


def a_side(*sets: ComparedSet, **changes: Any) -> ComparedSide:
    fields: dict[str, Any] = {"verdict": PASS, "systems": (), "findings": (), "files": {}}
    return ComparedSide(sets=sets, **{**fields, **changes})
