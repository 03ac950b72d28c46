"""Whether the runs of one result set may be those of another one, of an earlier round.

This is the one judgement that ``check``, ``review`` and ``diff`` report.
Source: training_rules, Results Resubmission; submission_rules, Preview Systems
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import (
    COUNTS,
    PREVIEW,
    TEXTS,
    SystemFile,
    category,
    different_fields,
    published_fields,
)
from mlperf_pkg.findings import Verdict, Verdicts, in_words
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.load import codes, load_round
from mlperf_pkg.rulebook.rounds import first_name
from mlperf_pkg.submission.submitters import SubmitterNames, is_same_submitter

RULE = "SET151"
"""The code of the rule, which is newer than most rounds."""


_CATEGORIES = ("division", "status")  # fields of which rounds have spellings of their own


class Outcome(StrEnum):
    """Whether the rules allow a resubmission, the worst last.

    UNKNOWN: what is at hand does not show it; the record of published results lacks most fields of
    a description. LATER: not by the rules of later rounds; those of its round did not say.
    """

    ALLOWED = "allowed"
    UNKNOWN = "not known"
    LATER = "not allowed since round 5.1"
    NOT_ALLOWED = "not allowed"


class SubmittedSet(Struct, frozen=True):
    """What decides whether runs may be submitted again: the facts of the old or the new set.

    ``fields`` are those of its system description that the published results have, too, by their
    names in descriptions; ``contents`` is all of it, None where only those are at hand.
    ``names`` are those of the submitter, None if it is not known.
    ``official`` says whether the logs pass the official checker of the round, None: not known.
    """

    usage: str
    round: str
    names: SubmitterNames | None
    benchmark: str
    fields: Mapping[str, Any]
    contents: Mapping[str, Any] | None = None
    official: Verdict | None = None

    @property
    def status(self) -> str | None:
        """The category of its availability."""
        return category(self.fields["status"])


def submitted_set(context: SetContext) -> SubmittedSet:
    """Return the facts of a checked set."""
    system = context.system
    is_named = context.submitter or context.origin.has_folder
    contents = (system and system.contents) or {}
    more = {name: str(contents.get(name, "")) for name in _CATEGORIES}
    return SubmittedSet(
        usage=context.round.usage,
        round=context.round.name,
        names=context.submitter_names if is_named else None,
        benchmark=context.files.benchmark,
        fields=_fields(published_fields(system) | more),
        contents=system.contents if system else None,
        official=Verdicts.worst(run.verdicts for run in context.runs).official,
    )


def published_set(
    row: PublishedSet, system: SystemFile | None = None, official: Verdict | None = None
) -> SubmittedSet:
    """Return the facts of a published set, or of a checked one as it would be published."""
    described = system.submitter if system else None
    return SubmittedSet(
        usage=row.usage,
        round=row.round,
        names=SubmitterNames(row.submitter, described or ""),
        benchmark=row.benchmark,
        fields=_fields(asdict(row)),
        contents=system.contents if system else None,
        official=official,
    )


def _fields(published: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of ``PublishedSet`` by their names in descriptions."""
    names = {**TEXTS, **COUNTS, **dict(zip(_CATEGORIES, _CATEGORIES, strict=True))}
    return {field: published[name] for name, field in names.items()}


class Resubmission(Struct, frozen=True):
    """The judgement on runs that were submitted before.

    ``problems`` are the violations of the rules, ``unknown`` is what is not known. The ``fields``
    of the descriptions differ. Runs of another submitter or benchmark (``is_foreign``) were never
    allowed; ``is_written`` says whether the rules of the round had the other conditions. The
    problems only count if it ``is_certain`` that some of the runs are the same.
    """

    problems: tuple[str, ...]
    unknown: tuple[str, ...]
    fields: tuple[str, ...]
    is_foreign: bool
    is_written: bool
    is_certain: bool

    @property
    def outcome(self) -> Outcome:
        """Whether the rules allow it."""
        if self.is_open:
            is_rule = self.is_foreign or self.is_written
            return Outcome.NOT_ALLOWED if is_rule else Outcome.LATER
        return Outcome.UNKNOWN if self.unknown else Outcome.ALLOWED

    @property
    def is_open(self) -> bool:
        """Whether it certainly has a problem, by the rules of any round."""
        return self.is_certain and bool(self.problems)

    @property
    def subject(self) -> str:
        """What the runs are."""
        if self.is_certain:
            return "runs of this set were already published"
        return "runs of this set have the values of runs that were published"

    @property
    def text(self) -> str:
        """The outcome in words, with its reasons."""
        if self.outcome is Outcome.ALLOWED:
            reason = "because the system description is the same"
            return f"the rules allow submitting these runs again, {reason}"
        problems = " and ".join(self.problems)
        if self.is_open:
            if self.outcome is Outcome.LATER:
                return f"{problems} (the rules forbid such changes only from round 5.1 on)"
            return f"{problems}, so the rules forbid submitting these runs again"
        unknown = "; ".join(self.unknown)
        words = (
            f"the rules allow this under certain conditions; not all could be checked, as {unknown}"
        )
        return f"{words}; if the runs are the same, {problems}" if problems else words


def judge(
    old: SubmittedSet, new: SubmittedSet, *, runs: int, rewritten: int = 0, unsure: int = 0
) -> Resubmission:
    """Judge that ``runs`` of an old set are in a new one.

    ``rewritten`` of their logs have other bytes. Of ``unsure`` only the values are equal, as the
    record has no clock: a deterministic training repeats its values.
    """
    foreign = list(_foreign(old, new))
    fields = tuple(_different_fields(old, new))
    problems = [*foreign]
    if old.status == PREVIEW and new.status not in (PREVIEW, None):
        problems.append("a former Preview needs new runs")
    elif fields:
        problems.append(f"the description differs in {in_words(fields, 's', ' and ')}")
    if rewritten:
        verb = "has" if rewritten == 1 else "have"
        problems.append(f"{rewritten} of the logs {verb} been changed since then")
    if new.official is Verdict.FAIL:
        problems.append(f"the logs fail the official checker of round {new.round}")
    round_ = load_round(new.usage, new.round)
    return Resubmission(
        problems=tuple(problems),
        unknown=tuple(_unknown(old, new, unsure)),
        fields=fields,
        is_foreign=bool(foreign),
        is_written=codes()[RULE].applies_in(round_),
        is_certain=unsure < runs,
    )


def _foreign(old: SubmittedSet, new: SubmittedSet) -> Iterator[str]:
    """Yield what the rules of no round allow; nothing if the submitter is not known."""
    if old.names is None or new.names is None:
        return
    if not is_same_submitter(old.names, new.names):
        yield f"the runs are of the submitter {old.names.folder}"
    old_benchmark = first_name(old.usage, old.round, old.benchmark)
    new_benchmark = first_name(new.usage, new.round, new.benchmark)
    if old_benchmark != new_benchmark:
        yield f"the runs are of the benchmark {old.benchmark}"


def _unknown(old: SubmittedSet, new: SubmittedSet, unsure: int) -> Iterator[str]:
    """Yield what is not known."""
    if unsure:
        runs = wording.counted(unsure, "run")
        yield f"it is not known whether {runs} with published values are copies or repetitions"
    if old.names is None or new.names is None:
        yield "it is not known whether the submitter is the same"
    is_described = all(submitted.fields["system_name"] for submitted in (old, new))
    if not is_described:
        yield "it is not known whether the system description is the same"
    elif old.contents is None or new.contents is None:
        yield "some values of the published system description are unknown"
    if new.official in (None, Verdict.NOT_CHECKED):
        yield f"it is not known whether the logs pass the official checker of round {new.round}"


# ---- descriptions -------------------------------------------------------------------------


def _different_fields(old: SubmittedSet, new: SubmittedSet) -> list[str]:
    """Return the fields in which two descriptions differ, as far as both are known.

    Who the submitter is, is not compared here. Of the record, empty fields are not compared.
    """
    if old.contents is not None and new.contents is not None:
        fields = different_fields(old.contents, new.contents)
        return [field for field in fields if field != "submitter"]
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for name, value in old.fields.items():
        if value and new.fields[name]:
            before[name] = value
            after[name] = new.fields[name]
    return different_fields(before, after)
