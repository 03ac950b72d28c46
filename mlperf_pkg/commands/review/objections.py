"""Objections: the findings of one code against one submitter, their states, what settles them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review.calendar import Calendar
from mlperf_pkg.commands.review.evidence import (
    ObjectionEvidence,
    changed_files,
    evidence_of,
    in_words,
    outcome_of,
    read_evidence,
)
from mlperf_pkg.commands.review.examined import Examined, ResultName, examine
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.plain_yaml import LARGEST, compose, key, kind, value
from mlperf_pkg.infra.text import did_you_mean, unused, visible
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.results.wording import counted, minutes

if TYPE_CHECKING:
    import yaml

ALL = "all"
"""Instead of codes: all errors by the rules."""

NAME = "objections.yaml"
_LONGEST = 100  # characters of an id


class Objection(Struct, frozen=True):
    """An objection against a submitter: its findings of one code.

    ``about`` are the subjects of the findings, as paths that begin with the submitter; ``name`` is
    that of the result of the first.
    """

    id: str
    against: str
    code: str
    findings: tuple[Finding, ...]
    about: tuple[str, ...]
    name: ResultName

    @property
    def title(self) -> str:
        """The result and the message of the first finding, and the number of others."""
        text = f"{self.name.result}: {self.findings[0].text}"
        more = len(self.findings) - 1
        if more:
            return f"{text} (and {counted(more, 'more finding')})"
        return text


def find_objections(
    examined: Examined, prefixes: Sequence[str], filed: Collection[tuple[str, str]] = ()
) -> list[Objection]:
    """Return the objections for these prefixes of codes, by submitter and code.

    ``ALL`` selects all errors by the rules. Findings that are waived, unchecked, or ``filed`` by
    code and subject are left out.
    """
    groups: dict[tuple[str, str], list[Finding]] = {}
    for submitter, finding in examined.findings:
        is_filed = (finding.code, finding.about) in filed
        if _is_chosen(finding, prefixes) and _is_within(finding, examined) and not is_filed:
            groups.setdefault((submitter, finding.code), []).append(finding)
    objections: dict[str, Objection] = {}
    for (submitter, code), findings in sorted(groups.items()):
        text = f"{submitter}-{code}-{examined.within}".lower()
        stem = re.sub(r"[^a-z0-9]+", "-", text).strip("-")[:_LONGEST] or "objection"
        name = unused(stem, objections)  # also the stem of a file
        about = dict.fromkeys(finding.about for finding in findings)
        first = examined.name_of(findings[0])
        objections[name] = Objection(name, submitter, code, tuple(findings), tuple(about), first)
    return list(objections.values())


def _is_chosen(finding: Finding, prefixes: Sequence[str]) -> bool:
    if finding.code.startswith(tuple(prefixes)):
        return True
    return ALL in prefixes and finding.fails(Basis.RULES)


def _is_within(finding: Finding, examined: Examined) -> bool:
    """Return whether a finding concerns the part of the submission that is searched."""
    if not examined.within:
        return True
    within = f"{examined.named(examined.within)}/"
    paths = (finding.about, *(place.path for place in finding.occurrences))
    return any(f"{path}/".startswith(within) for path in paths)


# ---- what a corrected tree settles --------------------------------------------------------


class ObjectionStanding(StrEnum):
    """The standing of an objection in a tree. REMOVED: its subjects are not in the tree."""

    SETTLED = "settled"
    STANDS = "stands"
    REMOVED = "removed"


class Judged(Struct, frozen=True):
    """An objection in the file, and its ``standing`` in a tree, with the reason.

    ``standing`` is None if there is no tree, or only one of another submitter. ``left`` are the
    subjects that still have the finding, ``undecided`` those that lost it without a fix, such as
    by edited logs. Of a waiver, ``measured`` is the difference in percent, and ``doubt`` why it
    does not hold.
    """

    entry: ObjectionEntry
    standing: ObjectionStanding | None = None
    left: tuple[str, ...] = ()
    measured: float | None = None
    doubt: str = ""
    undecided: tuple[str, ...] = ()
    why: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it stands, and is neither withdrawn, rejected nor rightly waived.

        A decision that it is settled holds unless a subject still has the finding.
        """
        state = self.entry.state
        is_waived = state is ObjectionState.WAIVED and not self.doubt
        if is_waived or state in (ObjectionState.WITHDRAWN, ObjectionState.REJECTED):
            return False
        if state is ObjectionState.SETTLED:
            return bool(self.left)
        return self.standing is ObjectionStanding.STANDS


class ObjectionOutcome(Struct, frozen=True):
    """All objections in the ``file``, and those to errors by the rules that it does not name."""

    objections: tuple[Judged, ...]
    new: tuple[Objection, ...] = ()
    file: Path = Path(NAME)
    calendar: Calendar | None = None

    def due(self, entry: ObjectionEntry) -> str | None:
        """Return the date on which an objection must have its next state, if it is known."""
        if not self.calendar or not entry.is_open:
            return None
        return self.calendar[DUE[entry.state]].date().isoformat()

    @property
    def is_settled(self) -> bool:
        """Whether no objection is open."""
        return not any(item.is_open for item in self.objections)

    @property
    def possible(self) -> int:
        """The number of objections that nobody has filed yet."""
        drafted = [item for item in self.objections if item.entry.state is ObjectionState.DRAFTED]
        return len(drafted) + len(self.new)


def judge(
    entries: Sequence[ObjectionEntry], examined: Examined, options: Options, file: Path
) -> ObjectionOutcome:
    """Return the standing of the objections in a checked tree, and the errors without one.

    What they were about is in the files beside ``file``. The corrected rounds that waivers name
    are checked with the same ``options``.

    Raises:
        UserError: as ``read_evidence``.
    """
    finding_keys = {(finding.code, finding.about) for _, finding in examined.findings}
    rounds = {"": examined}
    judged = []
    filed = set[tuple[str, str]]()
    for entry in entries:
        filed.update((entry.code, path) for path in entry.about)
        alone = examined.checked.alone
        if alone is not None and alone.name != entry.against:
            judged.append(Judged(entry))
            continue
        evidence = read_evidence(file.parent / evidence_file(entry))
        if entry.code:
            item = _standing(entry, finding_keys, evidence, examined)
        else:
            item = _of_people(entry, evidence, examined)
        if entry.state is ObjectionState.WAIVED and item.standing is ObjectionStanding.STANDS:
            item = _with_share(item, rounds, options)
        judged.append(item)
    new = find_objections(replace(examined, within=""), (ALL,), filed)
    return ObjectionOutcome(tuple(judged), tuple(new), file)


def _standing(
    entry: ObjectionEntry,
    finding_keys: Collection[tuple[str, str]],
    evidence: ObjectionEvidence,
    examined: Examined,
) -> Judged:
    """Return the standing of an objection to findings."""
    left = []
    undecided = []
    reasons = dict[str, None]()
    edits = Counter[str]()
    for path in entry.about:
        if (entry.code, path) in finding_keys:
            left.append(path)
            continue
        outcome = outcome_of(path, evidence, examined)
        if outcome is not None:
            reasons[outcome.why] = None
            edits.update(outcome.edits)
            if not outcome.is_settled:
                undecided.append(path)
    standing = ObjectionStanding.REMOVED
    if left or undecided:
        standing = ObjectionStanding.STANDS
    elif reasons:
        standing = ObjectionStanding.SETTLED
    if edits:
        reasons[in_words(edits)] = None
    why = "; ".join(reasons)
    return Judged(entry, standing, tuple(left), undecided=tuple(undecided), why=why)


def _of_people(entry: ObjectionEntry, evidence: ObjectionEvidence, examined: Examined) -> Judged:
    """Return the standing of an objection without a code, on which people decide."""
    changed = changed_files(entry.files, evidence, examined)
    why = f"files changed since the objection was written: {', '.join(changed)}" if changed else ""
    return Judged(entry, ObjectionStanding.STANDS, why=why)


# ---- objections.yaml ----------------------------------------------------------------------
#
# The file may be edited by hand: a change of state replaces only the values that it changes.

WAIVED_BELOW = 2.0  # percent
_OF_FACTORS = ("RCP", "SET120")  # codes of findings that normalisation answers
_SOURCE = "submission_rules, Fixing objections"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./+-]*")
_FORMAT = "mlperf-pkg/objections/2"
_HEAD = """# The objections of a review. States: {states}.
# The state waived requires percent, the total difference of the scores, which must be below 2.
# "mlperf-pkg review objections FILE TREE" shows which objections are settled in TREE.
format: {format}
objections:
"""


class ObjectionState(StrEnum):
    """The state of an objection. DRAFTED: written, but not yet filed as an issue.

    SUPPORTED: the committee requires a fix. SETTLED: the fix is confirmed.
    """

    DRAFTED = "drafted"
    OPEN = "open"
    SUPPORTED = "supported"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    SETTLED = "settled"
    WAIVED = "waived"

    @property
    def words(self) -> str:
        """The state in words: ``supported (fix required)``."""
        if self is ObjectionState.SUPPORTED:
            return f"{self.value} (fix required)"
        return self.value


_FORMER = {
    "filed": ObjectionState.OPEN,
    "acknowledged": ObjectionState.OPEN,
    "fix_required": ObjectionState.SUPPORTED,
    "fixed": ObjectionState.SETTLED,
}
"""Other names of states, which the first format of the file had."""


class ObjectionEntry(Struct, frozen=True):
    """An objection in the file, without its text.

    Without a ``code``, it is one of people. ``by`` are the organisations that object, ``lines`` the
    offending lines of code and ``reference`` those of the reference. ``scores`` are those of its
    result sets, in minutes by path, when it was written. ``percent`` is by how much the correction
    changed them in the round of the folder ``corrected``.
    """

    id: str
    against: str
    state: ObjectionState
    by: tuple[str, ...] = ()
    code: str = ""
    title: str = ""
    issue: str = ""
    note: str = ""
    percent: float | None = None
    corrected: str = ""
    about: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    scores: Mapping[str, float] = {}

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to act on it."""
        return self.state in DUE

    @property
    def files(self) -> list[str]:
        """The files of its lines."""
        return [re.sub(r":[0-9-]+$", "", line) for line in self.lines]


_FIELDS = ObjectionEntry.__struct_fields__
_REQUIRED = _FIELDS[: -len(ObjectionEntry.__struct_defaults__)]
_NEEDED = {"str": "text", "float": "a number", "array": "a list of texts", "object": "a mapping"}
DUE = {
    ObjectionState.DRAFTED: "objections",
    ObjectionState.OPEN: "answers",
    ObjectionState.SUPPORTED: "final",
}
"""The dates of the calendar on which objections must have left these states."""


def read_entries(path: Path) -> tuple[ObjectionEntry, ...]:
    """Return the objections in a file.

    Raises:
        UserError: the file cannot be read, or an objection is not valid. The message has the line.
    """
    items = _items(path)
    entries: dict[str, ObjectionEntry] = {}
    for node in items.value if items else ():
        entry = _entry(path, node)
        if entry.id in entries:
            raise UserError(f"{path}: the id {entry.id!r} is repeated")
        entries[entry.id] = entry
    return tuple(entries.values())


def _items(path: Path) -> yaml.SequenceNode | None:
    """Return the list of objections, None if there is none."""
    root: Any = compose(path)
    if root is None:
        return None
    nodes = {key(name): node for name, node in root.value} if kind(root) == "mapping" else {}
    if "objections" not in nodes or nodes.keys() - {"format", "objections"}:
        raise UserError(f"{path}:1: expected the key objections with a list of objections")
    format_ = nodes.get("format")
    if format_ and format_.value != _FORMAT:
        raise UserError(f"{_place(path, format_)}: the format is not {_FORMAT}")
    items: yaml.SequenceNode = nodes["objections"]
    if kind(items) != "sequence" and items.value:
        raise UserError(f"{_place(path, items)}: objections is not a list")
    if items.value:
        return items
    return None


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"


def _entry(path: Path, node: yaml.Node) -> ObjectionEntry:
    where = _place(path, node)
    if kind(node) != "mapping":
        raise UserError(f"{where}: expected an objection with {', '.join(_REQUIRED)}")
    fields = {name: content for name, content in value(node).items() if content != ""}
    unknown = next((name for name in fields if name not in _FIELDS), None)
    if unknown:
        raise UserError(f"{where}: unknown key {unknown!r}{did_you_mean(unknown, _FIELDS)}")
    required = (*_REQUIRED, "about") if fields.get("code") else _REQUIRED
    missing = [name for name in required if not fields.get(name)]
    if missing:
        raise UserError(f"{where}: the objection lacks {', '.join(missing)}")
    fields["state"] = state_of(str(fields["state"]), where)
    if isinstance(fields.get("by"), str):
        fields["by"] = [fields["by"]]
    if "percent" in fields:
        fields["percent"] = str(fields["percent"]).removesuffix("%").strip()
    try:
        entry = convert(fields, ObjectionEntry, strict=False)
    except ValidationError as error:
        needed, name = re.findall(r"^(?:Expected `(\w+))?.*\$\.(\w+)", str(error))[0]
        raise UserError(f"{where}: {name} is not {_NEEDED.get(needed, 'a number')}") from error
    if entry.state is ObjectionState.WAIVED:
        _require_share(entry.percent, where)
    return entry


def state_of(text: str, where: str) -> ObjectionState:
    """Return a state by its name, which may have spaces or hyphens instead of underscores.

    Raises:
        UserError: there is no such state; the message starts with ``where``.
    """
    name = re.sub("[ -]", "_", text)
    if name in _FORMER:
        return _FORMER[name]
    if name in list(ObjectionState):
        return ObjectionState(name)
    reason = f"unknown state {text!r}{did_you_mean(name, ObjectionState)}"
    raise UserError(f"{where}: {reason}; expected one of {', '.join(ObjectionState)}")


def _require_share(percent: float | None, where: str) -> None:
    if percent is None:
        raise UserError(
            f"{where}: the state waived lacks percent; expected the total difference"
            " of the scores, in percent"
        )
    if not 0 <= percent < WAIVED_BELOW:
        allowed = "that do not change the order of competitors may be waived"
        reason = f"only total differences below {WAIVED_BELOW:g} % {allowed} ({_SOURCE})"
        raise UserError(f"{where}: waived at {percent:g} %; {reason}")


def _with_share(item: Judged, rounds: dict[str, Examined], options: Options) -> Judged:
    """Return a waiver with its difference as measured, and why it does not hold.

    ``rounds`` are those that were checked before, by path; the one under review has none.
    """
    entry = item.entry
    try:
        if entry.corrected not in rounds:
            rounds[entry.corrected] = examine(entry.corrected, options)
        percent = measured(entry, rounds[entry.corrected], rounds[""])
    except UserError as error:
        return replace(item, doubt=str(error).removeprefix(f"{entry.id}: "))
    is_small = percent < WAIVED_BELOW
    doubt = (
        ""
        if is_small
        else (f"the measured difference is {percent:.3g} %, which is not below {WAIVED_BELOW:g} %")
    )
    return replace(item, measured=percent, doubt=doubt)


def evidence_file(entry: ObjectionEntry) -> str:
    """Return the name of the file that has what an objection is about, beside objections.yaml."""
    stem = re.sub(r"[^\w.+-]+", "-", entry.id)[:_LONGEST]
    return f"{stem}.json"


def measured(entry: ObjectionEntry, corrected: Examined, examined: Examined | None = None) -> float:
    """Return by how many percent the correction of an objection changes its scores.

    They are as recorded with it or, if another round with the objection is ``examined``, as there.
    If nothing is corrected, an objection to convergence or to a factor is measured by the scores
    with and without normalisation.

    Raises:
        UserError: nothing can be measured, or the order of competitors changes.
    """
    if corrected.checked.alone is not None:
        raise UserError(f"{entry.id}: expected the round with the correction, not one submission")
    scores = _scores_before(entry, corrected, examined)
    if not scores:
        raise UserError(f"{entry.id}: no score was recorded with the objection; nothing to measure")
    most = 0.0
    for path, before in scores.items():
        row = corrected.rows.get(path)
        after = row.score_minutes if row else None
        if row is None or after is None or not before:
            raise UserError(f"{entry.id}: {path} has no score in the corrected round")
        for other in corrected.rows.values():
            if _competes(row, other) and _is_between(other.score_minutes, before, after):
                change = f"{path} takes {minutes(after)} minutes, not {minutes(before)}"
                rival = f"{other.submitter} {other.system} takes {minutes(other.score_minutes)}"
                raise UserError(f"{entry.id}: the order of competitors changes: {change}; {rival}")
        most = max(most, 100 * abs(after / before - 1))
    return most


def _scores_before(
    entry: ObjectionEntry, corrected: Examined, examined: Examined | None
) -> Mapping[str, float | None]:
    """Return the scores, by path, that those of the corrected round are compared with."""
    left = {finding.about for _, finding in corrected.findings if finding.code == entry.code}
    if left.issuperset(entry.about):
        if not entry.code.startswith(_OF_FACTORS):
            reason = "the findings are not corrected in this round, so there is nothing to measure"
            raise UserError(f"{entry.id}: {reason}")
        scored = corrected.scored(entry.about)
        return {path: row.unscaled_minutes for path, row in scored.items()}
    if examined is not None and examined is not corrected:
        scored = examined.scored(entry.about)
        return {path: row.score_minutes for path, row in scored.items()}
    return entry.scores


def _competes(row: ResultSetRow, other: ResultSetRow) -> bool:
    names = attrgetter("benchmark", "division", "scaling", "round")
    return names(row) == names(other) and set(row.companies).isdisjoint(other.companies)


def _is_between(value: float | None, before: float, after: float) -> bool:
    low, high = sorted((before, after))
    return value is not None and low <= value <= high and low < high


def entry_of(objection: Objection, examined: Examined, by: str | None) -> ObjectionEntry:
    """Return an objection to findings as a draft, with the scores that it concerns."""
    scores = {}
    for path, row in examined.scored(objection.about).items():
        scores[path] = row.score_minutes or 0.0
    return ObjectionEntry(
        objection.id,
        objection.against,
        ObjectionState.DRAFTED,
        (by,) if by else (),
        objection.code,
        objection.title,
        about=objection.about,
        scores=scores,
    )


def with_new(path: Path, entries: Iterable[ObjectionEntry], text: str = "") -> str:
    """Return the ``text`` of the file, by default as it is, with these objections appended.

    Raises:
        UserError: as ``read_entries``, or the file would be too large to be read.
    """
    items = _items(path) if path.exists() else None
    indent = "  "
    if items is None:
        text = _HEAD.format(states=", ".join(ObjectionState), format=_FORMAT)
    elif items.flow_style:
        raise UserError(f"{_place(path, items)}: write every objection on lines of its own")
    else:
        text = text or read_file(path, LARGEST).decode("utf-8")
        text = text.rstrip() + "\n"
        indent = " " * items.start_mark.column
    for entry in entries:
        text += f"{indent}- " + f"\n{indent}  ".join(_written(entry)) + "\n"
    if len(text.encode()) > LARGEST:
        raise UserError(f"{path}: more than {LARGEST >> 10} KiB of objections; choose fewer CODES")
    return text


def _written(entry: ObjectionEntry) -> Iterator[str]:
    """Yield the lines of an objection in the file, without empty fields."""
    for name, content in asdict(entry).items():
        if not content:
            continue
        if name == "by" or isinstance(content, str):
            yield f"{name}: {_scalar(content)}"
        elif isinstance(content, tuple):
            yield f"{name}:"
            yield from (f"  - {_scalar(text)}" for text in content)
        else:
            yield f"{name}:"
            yield from (f"  {_scalar(path)}: {score:.9g}" for path, score in content.items())


def _scalar(content: str | Sequence[str]) -> str:
    if not isinstance(content, str):
        return f"[{', '.join(map(_scalar, content))}]"
    if _PLAIN.fullmatch(content):
        return content
    return json.dumps(visible(content), ensure_ascii=False)


ChangedFields: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""New values of fields of an objection."""


def changed_entries(path: Path, changes: Mapping[str, ChangedFields]) -> str:
    """Return the text of the file with other values of fields, by id; comments and order stay.

    Raises:
        UserError: an id is unknown, or a value cannot be replaced.
    """
    entries = {entry.id: entry for entry in read_entries(path)}
    unknown = next((name for name in changes if name not in entries), None)
    if unknown:
        raise UserError(f"{path}: no objection {unknown!r}{did_you_mean(unknown, entries)}")
    text = read_file(path, LARGEST).decode("utf-8")
    items = _items(path)
    for node in reversed(items.value if items else ()):
        name = value(node)["id"]
        if name in changes:
            text = _edited(path, text, node, changes[name])
    return text


def change_states(
    path: Path,
    ids: Sequence[str],
    fields: ChangedFields,
    examined: Examined | None,
    removed: Collection[str] = (),
) -> None:
    """Write values of fields into the objections with these ids.

    Of ``by``, organisations are added, and those ``removed`` are left out. Of a waiver, the
    ``percent`` is measured in the round that is ``examined``.

    Raises:
        UserError: as ``changed_entries``, the change is not allowed, or the file cannot be written.
    """
    entries = {entry.id: entry for entry in read_entries(path)}
    changes: dict[str, ChangedFields] = {}
    for name in ids:
        changes[name] = fields
        entry = entries.get(name)
        if entry is None:
            continue
        by = [*entry.by, *fields.get("by", ())]
        kept = tuple(text for text in dict.fromkeys(by) if text not in removed)
        if kept != entry.by:
            changes[name] = {**changes[name], "by": kept}
        if fields.get("state") == ObjectionState.WAIVED and examined is not None:
            percent = measured(entry, examined)
            _require_share(percent, name)
            changes[name] = {**changes[name], "percent": f"{percent:.3g}"}
    write_whole(path, changed_entries(path, changes), replace=True)


def record_evidence(path: Path, entries: Iterable[ObjectionEntry], examined: Examined) -> None:
    """Write what objections are about into files beside theirs, unless these exist already.

    Raises:
        UserError: a file cannot be written.
    """
    for entry in entries:
        file = path.parent / evidence_file(entry)
        if not file.exists():
            write_whole(file, evidence_of(entry.about, entry.files, examined), replace=False)


def _edited(path: Path, text: str, node: Any, fields: ChangedFields) -> str:
    """Replace the values of fields in the node; add missing fields below its state."""
    if node.flow_style:
        raise UserError(f"{_place(path, node)}: write every field of the objection on its own line")
    names = {}
    items = {}
    for name, item in node.value:
        names[key(name)] = name
        items[key(name)] = item
    edits = [_added(text, names["state"], fields, items)]
    for field in fields.keys() & items.keys():
        item = items[field]
        if getattr(item, "style", None) in ("|", ">"):
            raise UserError(f"{_place(path, item)}: write {field} on one line, in quotation marks")
        if kind(item) == "sequence" and not item.flow_style:
            raise UserError(f"{_place(path, item)}: write {field} on one line, in brackets")
        start = item.start_mark.index
        end = item.end_mark.index
        space = " " if start == end else ""  # after the colon of an empty value
        edits.append((start, end, space + _scalar(fields[field])))
    for start, end, words in sorted(edits, reverse=True):
        text = text[:start] + words + text[end:]
    return text


def _added(
    text: str, state: Any, fields: ChangedFields, items: Mapping[str, Any]
) -> tuple[int, int, str]:
    """Return the edit that adds the fields without an item, as start, end and new text."""
    end = text.find("\n", state.start_mark.index)
    if end < 0:
        end = len(text)
    indent = " " * state.start_mark.column
    words = ""
    for field, content in fields.items():
        if field not in items:
            words += f"\n{indent}{field}: {_scalar(content)}"
    return end, end, words
