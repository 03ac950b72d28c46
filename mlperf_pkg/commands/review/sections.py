"""The sections of a review, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from mlperf_pkg.checker.reading import guarded
from mlperf_pkg.commands.review import (
    assignments,
    checklist,
    convergence,
    hyperparameters,
    objections,
    previews,
    resubmitted,
    submitters,
)
from mlperf_pkg.commands.review.model import Round, Section

_Part: TypeAlias = Callable[[Round], Section]

PARTS: tuple[tuple[str, _Part], ...] = (
    ("submitters", submitters.section),
    ("assignments", assignments.section),
    ("hyperparameters", hyperparameters.section),
    ("convergence", convergence.section),
    ("previews", previews.section),
    ("resubmitted", resubmitted.section),
    ("checklist", checklist.section),
    ("objections", objections.section),
)


def sections(reviewed: Round, parts: Iterable[tuple[str, _Part]] = PARTS) -> Iterator[Section]:
    """Yield all sections; a section that fails has only the reason, and does not affect others."""
    for name, part in parts:
        yield guarded(
            ".",
            f"writing the section {name}",
            lambda part=part: part(reviewed),  # type: ignore[misc]
            lambda finding, name=name: Section(  # type: ignore[misc]
                name, name.capitalize(), (finding.text,), summary=(finding.text,)
            ),
        )
