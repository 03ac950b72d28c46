"""Objections: the findings of one code against one submitter, their states, what settles them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.commands.review.calendar import Calendar
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Unchecked
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.plain_yaml import LARGEST, compose, key, kind, value
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.stores import is_url
from mlperf_pkg.infra.text import did_you_mean, unused, visible
from mlperf_pkg.results.report import ResultSetRow, description_path
from mlperf_pkg.results.wording import counted, minutes
from mlperf_pkg.submission.model import Submission

if TYPE_CHECKING:
    import yaml

ALL = "all"
"""Instead of codes: all errors by the rules."""

NAME = "objections.yaml"
_LONGEST = 100  # characters of an id
_PARTS = ("results", "systems", "benchmarks")  # of a submission


class Objection(Struct, frozen=True):
    """An objection against a submitter: its findings of one code.

    ``about`` are the subjects of the findings, as paths that begin with the submitter.
    """

    id: str
    against: str
    code: str
    findings: tuple[Finding, ...]
    about: tuple[str, ...]

    @property
    def title(self) -> str:
        """The message of the first finding, and the number of others."""
        text = self.findings[0].text
        more = len(self.findings) - 1
        if more:
            return f"{text} (and {counted(more, 'more finding')})"
        return text


class Examined(Struct, frozen=True, dict=True):
    """The check of a round or of a submission, to be searched for objections.

    ``within`` is a path in the submission; findings elsewhere are ignored.
    """

    checked: Checked
    within: str = ""

    @cached_property
    def rows(self) -> dict[str, ResultSetRow]:
        """The result sets by path."""
        return {self.named(row.path): row for row in self.checked.report.result_sets}

    def scored(self, about: Sequence[str]) -> dict[str, ResultSetRow]:
        """Return the result sets with a score that findings ``about`` these subjects concern."""
        above = set[str]()
        for name in about:
            above.update(accumulate(name.split("/"), "{}/{}".format))
        scored = {}
        for path, row in self.rows.items():
            description = self.named(description_path(row))
            if row.score_minutes is not None and (path in above or description in above):
                scored[path] = row
        return scored

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The files on this machine by path."""
        sources = {}
        for place in self.checked.places.values():
            if not place.source.stored:
                sources[self.named(place.label)] = place.source
        return sources

    @property
    def subjects(self) -> set[str]:
        """The subjects of findings: submissions, descriptions, result sets and logs."""
        report = self.checked.report
        rows: Any = (*report.result_sets, *report.systems, *report.runs)
        named = {self.named(row.path) for row in rows}
        return named.union(item.name for item in self.checked.submissions)

    @property
    def findings(self) -> Iterator[tuple[str, Finding]]:
        """The findings that are not waived, with their submitters; paths begin with these."""
        submissions = self.checked.submissions
        submitters = {item.place.label or item.name: item.name for item in submissions}
        for finding in self.checked.report.findings:
            if finding.waiver is not None or isinstance(finding, Unchecked):
                continue
            about = self.named(finding.about)
            submitter = submitters.get(about.partition("/")[0])
            if submitter:
                places = []
                for place in finding.occurrences:
                    places.append(replace(place, path=self.named(place.path)))
                path = self.named(finding.path)
                yield submitter, replace(finding, path=path, subject=about, places=tuple(places))

    @cached_property
    def alone(self) -> Submission | None:
        """The submission if it was checked without its round."""
        return next((item for item in self.checked.submissions if item.place.label == ""), None)

    def named(self, path: str) -> str:
        """Return a path of the report that begins with the name of its submission."""
        alone = self.alone
        if alone is None:
            return path
        if path in ("", "."):
            return alone.name
        return f"{alone.name}/{path}"


def examine(path: str, options: Options) -> Examined:
    """Check a round, a submission, or the submission of which ``path`` is a part.

    Raises:
        UserError: as ``check``, or there is no submission.
    """
    top, within = _submission_and_part(path)
    if within and not Path(path).exists():
        raise UserError(f"{path}: no such file or folder")
    examined = Examined(check([top], options), within)
    if not examined.checked.submissions:
        raise UserError(f"{path}: no submission; expected a round, a submission or a part of one")
    return examined


def _submission_and_part(path: str) -> tuple[str, str]:
    """Return the submission and the path in it, for a path in a submission; else the path."""
    if not is_url(path):
        here = Path(path).absolute()
        for folder in (here, *here.parents):
            parent = folder.parent
            if folder.name in _PARTS and all((parent / name).is_dir() for name in _PARTS[:2]):
                return str(parent), here.relative_to(parent).as_posix()
    return path, ""


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
        objections[name] = Objection(name, submitter, code, tuple(findings), tuple(about))
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
    """An objection in the file, and its ``standing`` in a tree.

    ``standing`` is None if there is no tree, or only one of another submitter. ``left`` are the
    subjects that still have the finding. Of a waiver, ``measured`` is the difference in percent,
    and ``doubt`` why it does not hold.
    """

    entry: ObjectionEntry
    standing: ObjectionStanding | None = None
    left: tuple[str, ...] = ()
    measured: float | None = None
    doubt: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it stands, and is neither withdrawn nor rightly waived."""
        is_waived = self.entry.state is ObjectionState.WAIVED and not self.doubt
        is_dropped = is_waived or self.entry.state is ObjectionState.WITHDRAWN
        return self.standing is ObjectionStanding.STANDS and not is_dropped


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
        """Whether no objection stands, except withdrawn and waived ones."""
        return not any(item.is_open for item in self.objections)


def judge(
    entries: Sequence[ObjectionEntry], examined: Examined, options: Options
) -> ObjectionOutcome:
    """Return the standing of the objections in a checked tree, and the errors without one.

    The corrected rounds that waivers name are checked with the same ``options``.
    """
    finding_keys = {(finding.code, finding.about) for _, finding in examined.findings}
    subjects = examined.subjects
    rounds = {"": examined}
    judged = []
    filed = set[tuple[str, str]]()
    for entry in entries:
        filed.update((entry.code, path) for path in entry.about)
        left = tuple(path for path in entry.about if (entry.code, path) in finding_keys)
        if examined.alone is not None and examined.alone.name != entry.against:
            judged.append(Judged(entry))
        elif left:
            item = Judged(entry, ObjectionStanding.STANDS, left)
            if entry.state is ObjectionState.WAIVED:
                item = _with_share(item, rounds, options)
            judged.append(item)
        elif subjects.isdisjoint(entry.about):
            judged.append(Judged(entry, ObjectionStanding.REMOVED))
        else:
            judged.append(Judged(entry, ObjectionStanding.SETTLED))
    new = find_objections(replace(examined, within=""), (ALL,), filed)
    return ObjectionOutcome(tuple(judged), tuple(new))


# ---- objections.yaml ----------------------------------------------------------------------
#
# The file may be edited by hand: a change of state replaces only the values that it changes.

WAIVED_BELOW = 2.0  # percent
_OF_FACTORS = ("RCP", "SET120")  # codes of findings that normalisation answers
_SOURCE = "submission_rules, Fixing objections"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./+-]*")
_HEAD = """# The objections of a review. States: {states}.
# The state waived requires percent: the total difference, below 2.
# "mlperf-pkg review objections FILE TREE" shows which are settled in a corrected tree.
objections:
"""


class ObjectionState(StrEnum):
    """The state of an objection. DRAFTED: written, but not yet filed as an issue."""

    DRAFTED = "drafted"
    FILED = "filed"
    ACKNOWLEDGED = "acknowledged"
    FIX_REQUIRED = "fix_required"
    FIXED = "fixed"
    WITHDRAWN = "withdrawn"
    WAIVED = "waived"

    @property
    def words(self) -> str:
        """The state in words: ``fix required``."""
        return self.value.replace("_", " ")


class ObjectionEntry(Struct, frozen=True):
    """An objection in the file, without its text.

    ``scores`` are those of its result sets, in minutes by path, when it was written. ``percent`` is
    by how much the correction changed them in the round of the folder ``corrected``.
    """

    id: str
    against: str
    code: str
    state: ObjectionState
    about: tuple[str, ...]
    by: str = ""
    title: str = ""
    issue: str = ""
    percent: float | None = None
    corrected: str = ""
    note: str = ""
    scores: Mapping[str, float] = {}

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to act on it."""
        return self.state in DUE


_FIELDS = ObjectionEntry.__struct_fields__
_REQUIRED = _FIELDS[: -len(ObjectionEntry.__struct_defaults__)]
DUE = {
    ObjectionState.DRAFTED: "objections",
    ObjectionState.FILED: "answers",
    ObjectionState.ACKNOWLEDGED: "final",
    ObjectionState.FIX_REQUIRED: "final",
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
    if kind(root) != "mapping" or [key(name) for name, _ in root.value] != ["objections"]:
        raise UserError(f"{path}:1: expected one key, objections, with a list of objections")
    items: yaml.SequenceNode = root.value[0][1]
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
    fields = value(node)
    _require_known(fields, where)
    about = fields.pop("about")
    scores = fields.pop("scores", None) or {}
    if not isinstance(scores, dict):
        raise UserError(f"{where}: scores is not a mapping of paths to minutes")
    if not isinstance(about, list) or not all(isinstance(item, str) for item in about):
        raise UserError(f"{where}: about is not a list of paths")
    for name, text in fields.items():
        if not isinstance(text, str):
            raise UserError(f"{where}: {name} is not text")
    fields["state"] = state_of(fields["state"], where)
    if "percent" in fields:
        fields["percent"] = _number(fields["percent"].removesuffix("%"), f"{where}: percent")
    if fields["state"] is ObjectionState.WAIVED:
        _require_share(fields.get("percent"), where)
    numbers = {}
    for file, score in scores.items():
        numbers[file] = _number(score, f"{where}: the score of {file}")
    return ObjectionEntry(about=tuple(about), scores=numbers, **fields)


def _require_known(fields: Mapping[str, Any], where: str) -> None:
    """Check that an objection has all fields that it needs, and no unknown ones."""
    unknown = next((name for name in fields if name not in _FIELDS), None)
    if unknown:
        raise UserError(f"{where}: unknown key {unknown!r}{did_you_mean(unknown, _FIELDS)}")
    missing = [name for name in _REQUIRED if not fields.get(name)]
    if missing:
        raise UserError(f"{where}: the objection lacks {', '.join(missing)}")


def _number(text: Any, where: str) -> float:
    try:
        return float(text)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where} is {text!r}; expected a number") from error


def state_of(text: str, where: str) -> ObjectionState:
    """Return a state by its name, which may have spaces or hyphens instead of underscores.

    Raises:
        UserError: there is no such state; the message starts with ``where``.
    """
    name = re.sub("[ -]", "_", text)
    if name in list(ObjectionState):
        return ObjectionState(name)
    reason = f"unknown state {text!r}{did_you_mean(name, ObjectionState)}"
    raise UserError(f"{where}: {reason}; expected one of {', '.join(ObjectionState)}")


def _require_share(percent: float | None, where: str) -> None:
    if percent is None:
        raise UserError(f"{where}: waived without percent; expected the total difference")
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
    doubt = "" if is_small else f"{percent:.3g} % as measured, not below {WAIVED_BELOW:g} %"
    return replace(item, measured=percent, doubt=doubt)


def measured(entry: ObjectionEntry, corrected: Examined, examined: Examined | None = None) -> float:
    """Return by how many percent the correction of an objection changes its scores.

    They are as recorded with it or, if another round with the objection is ``examined``, as there.
    If nothing is corrected, an objection to convergence or to a factor is measured by the scores
    with and without normalisation.

    Raises:
        UserError: nothing can be measured, or the order of competitors changes.
    """
    if corrected.alone is not None:
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
            reason = "not corrected in this round, so there is nothing to measure"
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


def with_new(
    path: Path, objections: Iterable[Objection], examined: Examined, by: str | None
) -> str:
    """Return the text of the file with these objections appended.

    Raises:
        UserError: as ``read_entries``, or the file would be too large to be read.
    """
    items = _items(path) if path.exists() else None
    indent = "  "
    if items is None:
        text = _HEAD.format(states=", ".join(ObjectionState))
    elif items.flow_style:
        raise UserError(f"{_place(path, items)}: write every objection on lines of its own")
    else:
        text = read_file(path, LARGEST).decode("utf-8").rstrip() + "\n"
        indent = " " * items.start_mark.column
    text += "".join(_item(objection, examined, by, indent) for objection in objections)
    if len(text.encode()) > LARGEST:
        raise UserError(f"{path}: more than {LARGEST >> 10} KiB of objections; choose fewer CODES")
    return text


def _item(objection: Objection, examined: Examined, by: str | None, indent: str) -> str:
    lines = [f"id: {_scalar(objection.id)}", f"against: {_scalar(objection.against)}"]
    if by:
        lines.append(f"by: {_scalar(by)}")
    lines.append(f"code: {_scalar(objection.code)}")
    lines.append(f"title: {_scalar(objection.title)}")
    lines.append(f"state: {ObjectionState.DRAFTED}")
    lines.append("about:")
    lines += [f"  - {_scalar(path)}" for path in objection.about]
    scored = examined.scored(objection.about)
    if scored:
        lines.append("scores:")
    for path, row in scored.items():
        lines.append(f"  {_scalar(path)}: {row.score_minutes:.9g}")
    return f"{indent}- " + f"\n{indent}  ".join(lines) + "\n"


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return json.dumps(visible(text), ensure_ascii=False)


def change_states(
    path: Path, ids: Sequence[str], fields: Mapping[str, str], corrected: Examined | None = None
) -> None:
    """Write values of fields into the objections with these ids, and keep comments and order.

    The ``percent`` of a waiver is measured in the ``corrected`` round.

    Raises:
        UserError: an id is unknown, the change is not allowed, or the file cannot be written.
    """
    entries = {entry.id: entry for entry in read_entries(path)}
    unknown = next((name for name in ids if name not in entries), None)
    if unknown:
        raise UserError(f"{path}: no objection {unknown!r}{did_you_mean(unknown, entries)}")
    new = dict.fromkeys(ids, fields)
    if corrected is not None:
        for name in ids:
            percent = measured(entries[name], corrected)
            _require_share(percent, name)
            new[name] = {**fields, "percent": f"{percent:.3g}"}
    text = read_file(path, LARGEST).decode("utf-8")
    items = _items(path)
    for node in reversed(items.value if items else ()):
        name = value(node)["id"]
        if name in new:
            text = _edited(path, text, node, new[name])
    write_whole(path, text, replace=True)


def _edited(path: Path, text: str, node: Any, fields: Mapping[str, str]) -> str:
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
        if item.style in ("|", ">"):
            raise UserError(f"{_place(path, item)}: write {field} on one line, in quotation marks")
        start = item.start_mark.index
        end = item.end_mark.index
        space = " " if start == end else ""  # after the colon of an empty value
        edits.append((start, end, space + _scalar(fields[field])))
    for start, end, words in sorted(edits, reverse=True):
        text = text[:start] + words + text[end:]
    return text


def _added(
    text: str, state: Any, fields: Mapping[str, str], items: Mapping[str, Any]
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
