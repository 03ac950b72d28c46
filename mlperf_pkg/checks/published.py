"""Logs that were published before, and whether the rules on resubmission are met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, TypeAlias

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.checks.described import PREVIEW, category, differences
from mlperf_pkg.checks.organisations import are_alike
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, in_words
from mlperf_pkg.published.model import PublishedName, digests_of, log_hash
from mlperf_pkg.published.results import (
    PublishedResultsError,
    published_results,
    usable_results,
)
from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import TRAINING

PublishedRuns: TypeAlias = Mapping[str, tuple[PublishedName, ...]]
"""The published sets that have the log of a run, by its path; the first first."""


def published_runs(context: SetContext, minutes: float | None) -> PublishedRuns | None:
    """Return which runs of a set were published; None if all were, first in this set.

    Only logs that may be published are hashed: those of runs as old as the published ones. Logs
    without a start are placeholders. The logs of a published set are not hashed: it has the same
    name, number of runs and mean in ``minutes``.
    """
    if (results := usable_results()) is None:
        return {}
    end_ms = results.provenance.end_ms
    runs = [run for run in context.runs if run.start_ms is not None and run.start_ms <= end_ms]
    if not runs:
        return {}
    own = context.round
    if context.origin.has_name and results.is_first_of_its_logs(
        own.usage,
        own.name,
        context.files.name_of(context.submitter or context.tree.name),
        len(context.runs),
        minutes,
    ):
        return None
    paths = [run.path for run in runs if run.path in context.sources]
    digests = digests_of({path: context.sources[path] for path in paths})
    return {path: results.names_with(log_hash(digest)) for path, digest in digests.items()}


def check_published(context: SetContext, published: PublishedRuns) -> Iterator[Finding]:
    """Note runs that were published before, and warn where the rules do not allow it.

    A set that is checked together with the one that had its runs is compared with that itself.
    """
    fields: dict[PublishedName, dict[str, Any]] = {}
    for run in context.runs:
        name = _published_as(context, published.get(run.path, ()))
        if name and (name.usage, name.round, name.name) not in context.together:
            fields[name] = fields.get(name) or _fields(context, name)
            yield set_finding(context, path=run.path, found=_words(name), **fields[name])


def check_readable() -> Iterator[Finding]:
    """Note that nothing is compared with the published results, as they cannot be read."""
    try:
        published_results().load()
    except PublishedResultsError as error:
        yield Finding(
            code="CHECK103",
            message="not compared with the published results: {found:s}",
            path=".",
            found=str(error),
            severity=Severity.NOTE,
            basis=Basis.ADVICE,
            source=codes()["CHECK103"].source,
        )


def _published_as(context: SetContext, names: Sequence[PublishedName]) -> PublishedName | None:
    """Return the published set that a run is from; None if it was first published in this set.

    Of several, it is the one of the same name, or else the first.
    """
    if context.origin.has_name:
        names = tuple(takewhile(partial(_is_before, context), names))
    namesakes = (name for name in names if _is_namesake(context, name))
    return next(namesakes, names[0] if names else None)


def _is_before(context: SetContext, name: PublishedName) -> bool:
    """Return whether a set was published before this one, or in the same round by another name."""
    own = context.round
    is_own = name.round == own.name and _is_namesake(context, name)
    return name.usage == own.usage and not is_own and version_of(name.round) <= own.version


def _is_namesake(context: SetContext, name: PublishedName) -> bool:
    """Return whether a published set has the submitter, the system and the benchmark of a set."""
    submitter = name.name.partition("/")[0]
    is_same = context.submitter in (None, submitter)
    return is_same and name.name == context.files.name_of(submitter)


def _fields(context: SetContext, name: PublishedName) -> dict[str, Any]:
    """Return the finding on runs of a published set."""
    if reasons := list(_reasons(context, name)):
        return {
            "code": "SET161",
            "message": f"published in {{found:s}}; expected {', and '.join(reasons)}",
            "severity": Severity.WARNING,
            "basis": Basis.RULES,
        }
    is_compared = context.system is not None and context.system.contents is not None
    same = " with the same system, as far as its description is published" if is_compared else ""
    return {
        "code": "SET160",
        "message": f"published in {{found:s}}{same}",
        "severity": Severity.NOTE,
        "basis": Basis.ADVICE,
    }


def _reasons(context: SetContext, name: PublishedName) -> Iterator[str]:
    """Yield what the rules expect of resubmitted runs that is not so."""
    if context.origin.has_name and name.name.rpartition("/")[2] != context.files.benchmark:
        yield f"runs of {context.files.benchmark}"
    if context.submitter and not are_alike(name.name.partition("/")[0], context.submitter):
        yield f"runs of {context.submitter}"
    if context.system is None or context.system.contents is None:
        return
    row = published_results().sets[name.index]
    is_preview = category(row.status) == PREVIEW
    if is_preview and category(context.system.status or "") != PREVIEW:
        yield "new runs, as these were of a Preview"
    elif fields := differences(context.system, row):
        yield f"the same system description, which differs in {in_words(fields, 's')}"
    if any(run.verdicts.official is Verdict.FAIL for run in context.runs):
        yield f"logs that pass the checker of {context.round.name}"


def _words(name: PublishedName) -> str:
    usage = "" if name.usage == TRAINING else f"{name.usage} "
    return f"{usage}{name.round} as {name.name}"
