"""What an objection is about, as it was when the objection was written: runs and files.

Editing the logs of a run does not fix what the run did: a fix to a run is another run. So the runs
of a corrected tree are compared with those that were objected to, by ``run/relations.py``.
Source: submission_rules, Fixing objections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from math import nan
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.commands.review.examined import Examined
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import verdicts_of
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import printable, shown
from mlperf_pkg.published.model import digests_of
from mlperf_pkg.results.report import as_json, name
from mlperf_pkg.results.wording import counted, shortened
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.relations import relation_of

_LARGEST = 1 << 28  # bytes of a file
_MOST_RECORDS = 200_000  # of a log; the others are not compared
_VALUES = 60  # characters of the values of a key
_SHOWN = 5  # edits
_SECOND_MS = 1000  # the unit of some clocks


class LoggedRecords(NamedTuple):
    """The first different values of a key in a log, and the digest of all its records."""

    values: str
    digest: str


class LoggedRun(Struct, frozen=True):
    """A run as it was logged: what it is known by, and its records by key.

    The fields after ``keys`` are those of ``Run``; a time that is not known is None.
    """

    digest: str
    keys: Mapping[str, LoggedRecords]
    path: str
    fingerprint: bytes | None
    start_ms: float | None
    stop_ms: float | None
    evaluated: tuple[float, ...]
    evaluated_ms: tuple[float | None, ...]
    losses: tuple[float, ...]

    @property
    def run(self) -> Run:
        """The run, as far as it is compared with others."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in _IDENTIFYING}
        fields["evaluated_ms"] = [nan if time is None else time for time in self.evaluated_ms]
        verdicts = verdicts_of(())
        return Run(usage="", round="", round_reason="", findings=(), verdicts=verdicts, **fields)


_IDENTIFYING = LoggedRun.__struct_fields__[2:]


class ObjectionEvidence(Struct, frozen=True):
    """The runs of result sets by the path of the set, and the SHA-256 of other files by path."""

    runs: Mapping[str, tuple[LoggedRun, ...]] = {}
    files: Mapping[str, str] = {}
    format: Literal["mlperf-pkg/evidence/1"] = "mlperf-pkg/evidence/1"

    def sets_of(self, subject: str) -> list[str]:
        """Return the result sets that a subject is, or is in."""
        return [path for path in self.runs if f"{subject}/".startswith(f"{path}/")]


def evidence_of(about: Collection[str], files: Iterable[str], examined: Examined) -> str:
    """Return the evidence on these subjects, and on ``files`` of the submissions, as JSON."""
    recorded = {*about, *files}
    runs = {}
    for path, context in examined.contexts.items():
        if any(f"{subject}/".startswith(f"{path}/") for subject in about):
            runs[path] = tuple(_logged_runs(context, examined))
            if context.system is not None:
                recorded.add(examined.named(context.system.path))
    digests = {}
    for path, digest in sorted(digests_of(examined.files(recorded)).items()):
        digests[path] = digest.hex()
    evidence = msgspec.to_builtins(ObjectionEvidence(runs, digests))
    return msgspec.json.encode(as_json(evidence)).decode() + "\n"


def read_evidence(path: Path) -> ObjectionEvidence:
    """Return the evidence in a file; there is none if the file does not exist.

    Raises:
        UserError: the file cannot be read, or is not evidence.
    """
    try:
        evidence = msgspec.json.decode(read_file(path, _LARGEST), type=ObjectionEvidence)
    except FileNotFoundError:
        return ObjectionEvidence()
    except (OSError, ValueError, RecursionError, msgspec.DecodeError) as error:
        raise UserError(f"{path}: not the evidence of an objection: {error}") from error
    return evidence


def _logged_runs(context: SetContext, examined: Examined) -> Iterator[LoggedRun]:
    """Yield the runs of a set whose logs can be read."""
    digests = digests_of(context.sources)
    for run in context.runs:
        if run.path in digests:
            fields: dict[str, Any] = {name: getattr(run, name) for name in _IDENTIFYING}
            fields["path"] = examined.named(run.path)
            keys = _logged_keys(context.sources[run.path])
            yield LoggedRun(digests[run.path].hex(), keys, **fields)


def _logged_keys(source: Source) -> dict[str, LoggedRecords]:
    values: dict[str, dict[str, None]] = {}
    hashes: dict[str, Any] = {}
    with suppress(OSError, UserError), source.open() as stream:
        reader = LogReader(stream, source.label, lambda _: None, first_line=source.first_line)
        for record in islice(filter(None, reader), _MOST_RECORDS):
            key = str(printable(record.key))
            value = shown(record.value)
            hashed = hashes.setdefault(key, sha256())
            words = f"{value} {shown(record.metadata)} {record.time_ms}\n"
            hashed.update(words.encode("utf-8", "backslashreplace"))
            values.setdefault(key, {})[value] = None
    logged = {}
    for key, texts in values.items():
        words = ", ".join(texts)[:_VALUES]
        logged[key] = LoggedRecords(words, hashes[key].hexdigest())
    return logged


# ---- what became of it --------------------------------------------------------------------


class SubjectOutcome(Struct, frozen=True):
    """What became of a subject without its finding: ``is_settled``, and why in words.

    ``edits`` are what was edited in logs, with the number of these.
    """

    is_settled: bool
    why: str
    edits: Mapping[str, int] = {}


_NEW_RUNS = SubjectOutcome(True, "by new runs")
_NEW_DESCRIPTION = SubjectOutcome(True, "by a new description")
_OTHER_FILES = SubjectOutcome(True, "by other files")
_UNTIL = "the objection stands until the committee decides"
_UNKNOWN = SubjectOutcome(False, f"the runs of the objection were not recorded; {_UNTIL}")
_FEWER = SubjectOutcome(False, f"the runs are the same, but some were removed; {_UNTIL}")


def outcome_of(
    subject: str, evidence: ObjectionEvidence, examined: Examined
) -> SubjectOutcome | None:
    """Return what became of a subject without its finding, None if it was removed."""
    sets = evidence.sets_of(subject)
    for path in sets:
        outcome = _of_runs(path, evidence.runs[path], examined)
        if outcome is not None:
            return outcome
    if sets and not any(path in examined.contexts for path in sets):
        return None
    if subject not in examined.subjects:
        return None
    if subject in examined.contexts and not sets:
        return _UNKNOWN
    descriptions = [subject]
    for path in sets:
        system = examined.contexts[path].system
        if system is not None:
            descriptions.append(examined.named(system.path))
    if changed_files(descriptions, evidence, examined):
        return _NEW_DESCRIPTION
    return _OTHER_FILES


def changed_files(
    paths: Iterable[str], evidence: ObjectionEvidence, examined: Examined
) -> list[str]:
    """Return the files that are others than they were; those that were not recorded are not."""
    recorded = [path for path in paths if path in evidence.files]
    digests = digests_of(examined.files(recorded))
    changed = []
    for path in recorded:
        digest = digests.get(path, b"").hex()
        if digest != evidence.files[path]:
            changed.append(path)
    return changed


def _of_runs(path: str, runs: Sequence[LoggedRun], examined: Examined) -> SubjectOutcome | None:
    """Return what became of the runs of a set; None if their logs are as they were, or gone."""
    submission = path.partition("/")[0]
    edits = Counter[str]()
    places = set[str]()
    missing = 0
    for run in runs:
        twin = _twin(run, submission, examined)
        if twin is None:
            missing += 1
            continue
        context, log = twin
        places.add(examined.named(context.path))
        source = context.sources[log.path]
        if digests_of({path: source}).get(path, b"").hex() != run.digest:
            edits.update(_edits(run.keys, _logged_keys(source)))
    if edits:
        return SubjectOutcome(
            False, f"the runs are the same, but logs were edited; {_UNTIL}", edits
        )
    if places - {path}:
        return SubjectOutcome(False, f"the same runs are in {', '.join(sorted(places))}; {_UNTIL}")
    if path not in examined.contexts:
        return None
    added = len(examined.contexts[path].runs) - len(runs) + missing
    if added:
        return _NEW_RUNS
    return _FEWER if missing else None


def _twin(logged: LoggedRun, submission: str, examined: Examined) -> tuple[SetContext, Run] | None:
    """Return a log of a run in its submission, with its set; first one of the same name."""
    run = logged.run
    same = []
    for path, context in examined.contexts.items():
        if path.partition("/")[0] == submission:
            for log in context.runs:
                if log.path in context.sources and _is_same(run, log):
                    same.append((context, log))
    return min(same, key=lambda pair: name(pair[1].path) != name(run.path), default=None)


def _is_same(run: Run, log: Run) -> bool:
    """Return whether a log is of a run, whatever was edited in it: also its values.

    Runs that start at one time, or take the same time to a part of a second, are the same.
    """
    if run.start_ms is not None and run.start_ms == log.start_ms:
        is_namesake = name(run.path) == name(log.path)
        if is_namesake or run.evaluated_ms[:1] == log.evaluated_ms[:1]:
            return True
    span_ms = _span_ms(run)
    if span_ms % _SECOND_MS and abs(span_ms - _span_ms(log)) < 1:
        return True
    relation = relation_of(run, log)
    return relation is not None and relation.is_one_run


def _span_ms(run: Run) -> float:
    return (run.stop_ms or 0) - (run.start_ms or 0)


def _edits(old: Mapping[str, LoggedRecords], new: Mapping[str, LoggedRecords]) -> Iterator[str]:
    """Yield the keys whose records differ: each with its values, then those with other times."""
    rest = []
    for key in sorted(old.keys() | new.keys()):
        before = old.get(key)
        after = new.get(key)
        if before is None:
            yield f"{key} added"
        elif after is None:
            yield f"{key} removed"
        elif before.values != after.values:
            yield f"{key} {before.values} is now {after.values}"
        elif before.digest != after.digest:
            rest.append(key)
    if rest:
        yield f"times, metadata or later values changed in {shortened(rest, _SHOWN)}"
    elif old == new:
        yield "text outside the records changed"


def in_words(edits: Mapping[str, int]) -> str:
    """Return what was edited, the most frequent first: ``seed 1 is now 2 (10 logs)``."""
    ranked = Counter(edits).most_common()
    return shortened([f"{text} ({counted(number, 'log')})" for text, number in ranked], _SHOWN)
