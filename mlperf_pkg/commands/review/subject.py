"""A submission with its result sets, systems, findings and outliers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.commands.review.hyperparameters import groups_of, outliers_of
from mlperf_pkg.commands.review.model import Round
from mlperf_pkg.commands.review.outliers import Outlier
from mlperf_pkg.findings import Finding
from mlperf_pkg.results.report import ResultSetRow, description_path
from mlperf_pkg.results.wording import counted

_MOST_NAMES = 3
_Item = TypeVar("_Item")


class Tested(Struct, frozen=True):
    """A result set: its row in the report, and the context in which it was checked."""

    row: ResultSetRow
    context: SetContext

    @property
    def name(self) -> str:
        """The set within its submission: ``dgx/bert``."""
        return short(self.row.path)


class Subject(Struct, frozen=True):
    """A submission: its ``name``, and its ``label`` in reports.

    ``systems`` are those with results; ``findings`` are all those about the submission.
    """

    name: str
    label: str
    sets: tuple[Tested, ...]
    systems: tuple[SystemFile, ...]
    findings: tuple[Finding, ...]
    outliers: tuple[tuple[str, Outlier], ...]


def subjects(reviewed: Round) -> Iterator[Subject]:
    """Yield the submissions of a round by name."""
    labels = {submission.place.label for submission in reviewed.submissions}
    tested = zip(reviewed.report.result_sets, reviewed.checked.contexts, strict=True)
    sets = _by_label(labels, ((row.path, Tested(row, context)) for row, context in tested))
    findings = _by_label(labels, ((f.about, f) for f in reviewed.report.findings))
    unlike = outliers_of(groups_of(reviewed.checked.contexts), reviewed.report.findings)
    outliers = _by_label(labels, ((o.entry.path, (g.benchmark, o)) for g, o in unlike))
    systems = {system.path: system for system in reviewed.checked.systems}
    for submission in reviewed.submissions:
        label = submission.place.label
        own = sets.get(label, [])
        paths = dict.fromkeys(description_path(item.row) for item in own)
        yield Subject(
            submission.name,
            label,
            tuple(own),
            tuple(systems[path] for path in paths if path in systems),
            tuple(findings.get(label, ())),
            tuple(outliers.get(label, ())),
        )


def _by_label(labels: set[str], items: Iterable[tuple[str, _Item]]) -> dict[str, list[_Item]]:
    """Return items by the submission that contains their path."""
    by_label: dict[str, list[_Item]] = {}
    for path, item in items:
        folder = path
        while folder and folder not in labels:
            folder = folder.rpartition("/")[0]
        by_label.setdefault(folder, []).append(item)
    return by_label


def short(path: str) -> str:
    """Return the path of a set, a description or a log without what all of a submission share."""
    before, kind, rest = path.partition("/results/")
    if kind:
        return rest
    before, kind, rest = path.partition("/systems/")
    return rest.removesuffix(".json") if kind else before.rpartition("/")[2]


def listed(names: Iterable[str], most: int = _MOST_NAMES) -> str:
    """Return at most ``most`` different names, separated by commas, and the number of others."""
    different = list(dict.fromkeys(names))
    rest = len(different) - most
    return ", ".join([*different[:most], *([f"{rest} more"] if rest > 0 else [])])


def grouped(pairs: Sequence[tuple[str, str]]) -> str:
    """Return values with their systems, the most frequent first: ``1.2 (2 systems), 1.1 (dgx)``.

    ``pairs`` are values and the names of their systems.
    """
    by_value: dict[str, list[str]] = {}
    for value, name in pairs:
        by_value.setdefault(value, []).append(name)
    ordered = sorted(by_value.items(), key=lambda item: -len(item[1]))
    return listed(
        f"{value} ({names[0] if len(names) == 1 else counted(len(names), 'system')})"
        for value, names in ordered
    )
