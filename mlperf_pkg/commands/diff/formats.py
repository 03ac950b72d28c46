"""The formats of a comparison: text, JSON, Markdown."""

import json as jsonlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.resubmission import RULE
from mlperf_pkg.commands.diff import changes
from mlperf_pkg.commands.diff.runs import EditedRun
from mlperf_pkg.infra.json_values import digits
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render.findings import View, sentence
from mlperf_pkg.render.table import PLAIN, Column, RowGroup, Table, by_key, document, json_text
from mlperf_pkg.render.table import markdown as markdown_table
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording

FORMAT = "mlperf-pkg/diff/1"

_COLUMNS = (Column("Changed"), Column("Old", 18), Column("New", 22))
_SUBMITTERS = (
    Column("Submitter"),
    Column("Changed", numbers=True),
    Column("Removed", numbers=True),
    Column("Added", numbers=True),
)
_SCREEN = 23  # lines of a terminal, without that of the prompt
_WHOLE = 2 * _SCREEN  # lines that are shown with their details
_FEW = 2  # names in a line of the summary
_MOST_SUBMITTERS = 12  # in the summary
_ALLOWED = {False: "against the rules", None: "to be decided", True: "allowed"}
_VERDICTS = {verdict.value: word for verdict, word in wording.VERDICTS.items()}
_LABELS = {"official": "official verdict", "rules": "rules verdict", "rcp": "RCP test"}
_MINUTES = ("score_minutes", "official_minutes")


class _VerdictsOfKind(Struct, frozen=True):
    """The names of the entries with verdicts of one kind, by their texts."""

    kind: changes.ChangeKind
    title: str
    names: dict[str, list[str]]

    def lines(self, most: int) -> list[str]:
        """Return a line for each text, with the names of ``most`` entries."""
        lines = []
        for text, names in self.names.items():
            number = f"{len(names)} entries: " if len(names) > 1 else ""
            lines.append(f"{text}: {number}{wording.shortened(names, most)}")
        return lines


def text(comparison: changes.VersionComparison, view: View) -> str:
    """Return the changes for a terminal or a pipe; nothing in them is cut, but wrapped.

    If all is more than two screens of lines, it is the summary, which fits on one screen, unless
    the view is verbose.
    """
    whole = _whole(comparison, view)
    lines = whole.count("\n")
    if view.verbose or lines <= _WHOLE:
        return whole
    ending = f"-v shows all changes ({lines:,} lines)"
    if not comparison.entries:
        return _brief(comparison, view, _submitters(comparison), ending)
    # The verdicts of each kind in turn, as many as fit on the screen.
    kinds = _of_kinds(comparison.entries)
    shown: list[list[str]] = [[] for _ in kinds]
    brief = _brief(comparison, view, _entry_table(kinds, shown), ending)
    for row in zip_longest(*(of_kind.lines(_FEW)[:_SCREEN] for of_kind in kinds)):
        for place, line in enumerate(row):
            shown[place] += filter(None, [line])
            longer = _brief(comparison, view, _entry_table(kinds, shown), ending)
            if longer.count("\n") <= _SCREEN:
                brief = longer
            elif line:
                shown[place].pop()
    return brief


def _whole(comparison: changes.VersionComparison, view: View) -> str:
    terminal = Terminal(view)
    for line in _summary(comparison):
        terminal.paragraph((line, PLAIN))
    terminal.line()
    entries = list(_entry_groups(comparison.entries))
    if entries:
        terminal.table(Table((Column("Entries in the review"),), entries), apart=True)
    gone = list(_removed_and_added(comparison))
    for line in gone:
        terminal.paragraph((line, PLAIN))
    groups = list(_groups(comparison))
    if groups:
        terminal.table(Table(_COLUMNS, groups), apart=True)
    return terminal.text()


def _brief(comparison: changes.VersionComparison, view: View, table: Table, ending: str) -> str:
    terminal = Terminal(view)
    for line in _summary(comparison, _FEW):
        terminal.paragraph((line, PLAIN))
    terminal.line()
    if table.groups:
        terminal.table(table)
    terminal.paragraph((ending, PLAIN))
    return terminal.text()


def _entry_table(kinds: Sequence[_VerdictsOfKind], shown: Sequence[Sequence[str]]) -> Table:
    """Return the table of these lines of verdicts of each kind."""
    groups = []
    for of_kind, lines in zip(kinds, shown, strict=True):
        title = of_kind.title
        if len(lines) < len(of_kind.names):
            title += f" ({len(lines)} of {len(of_kind.names)} lines)"
        if lines:
            groups.append(RowGroup(title, [], lines))
    return Table((Column("Entries in the review"),), groups)


def _submitters(comparison: changes.VersionComparison) -> Table:
    """Return how many result sets of each submitter changed, were removed, and were added."""
    kinds = (
        [change.new for change in comparison.sets if change.any],
        comparison.removed_sets,
        comparison.added_sets,
    )
    counts: dict[str, list[int]] = {}
    for place, result_sets in enumerate(kinds):
        for result_set in result_sets:
            submitter = result_set.submitter or "no submitter"
            counts.setdefault(submitter, [0, 0, 0])[place] += 1
    rows = []
    for submitter, numbers in sorted(counts.items(), key=lambda item: (-sum(item[1]), item[0])):
        rows.append([submitter, *numbers])
    more = len(rows) - _MOST_SUBMITTERS
    remarks = [f"and {wording.counted(more, 'more submitter')}"] if more > 0 else []
    return Table(_SUBMITTERS, [RowGroup("", rows[:_MOST_SUBMITTERS], remarks)])


def _summary(comparison: changes.VersionComparison, most: int | None = None) -> Iterator[str]:
    """Yield the rounds, the numbers of what changed, changed verdicts, and those on entries.

    ``most`` is the number of result sets that are named with a verdict, of all if there is none.
    """
    if comparison.old_rounds or comparison.new_rounds:
        yield _to(comparison.old_rounds or "nothing", comparison.new_rounds or "nothing")
    if not comparison.any:
        sets = wording.counted(len(comparison.sets), "result set")
        number = sum(change.runs.unchanged for change in comparison.sets)
        runs = wording.counted(number, "run")
        yield f"nothing changed: {sets}, {runs} with identical bytes"
        return
    yield from _numbers(comparison)
    yield from _verdict_changes(comparison, most or len(comparison.sets))
    for allowed, words in _ALLOWED.items():
        numbers = Counter(entry.kind for entry in comparison.entries if entry.allowed is allowed)
        if numbers:
            texts = [f"{kind} ({number})" for kind, number in numbers.most_common()]
            yield f"{words}: {', '.join(texts)}"


def _numbers(comparison: changes.VersionComparison) -> Iterator[str]:
    changed = sum(change.any for change in comparison.sets)
    unchanged = len(comparison.sets) - changed
    removed = len(comparison.removed_sets)
    added = len(comparison.added_sets)
    yield (
        f"result sets: {changed} changed, {unchanged} unchanged, {removed} removed, {added} added"
    )
    removed = len(comparison.removed_systems)
    added = len(comparison.added_systems)
    yield f"systems: {len(comparison.systems)} changed, {removed} removed, {added} added"


def _verdict_changes(comparison: changes.VersionComparison, most: int) -> Iterator[str]:
    """Yield a line for each kind of change of a verdict, of the whole, of result sets or both."""
    whole = [_verdict_change(change) for change in comparison.verdicts]
    names: dict[str, list[str]] = {}  # of result sets by the change of a verdict
    for set_change in comparison.sets:
        for change in set_change.results:
            if change.name in ("official", "rules"):
                line = _verdict_change(change)
                names.setdefault(line, []).append(set_change.new.name)
    for line in whole:
        if line not in names:
            yield line
    for line, set_names in names.items():
        number = wording.counted(len(set_names), "result set")
        few = wording.shortened(set_names, most)
        extent = "all together, and " if line in whole else ""
        yield f"{line} ({extent}{number}: {few})"


def _verdict_change(change: changes.FieldChange) -> str:
    name, old, new = _result(change)
    return f"{name}: {old} -> {new}"


def _removed_and_added(comparison: changes.VersionComparison) -> Iterator[str]:
    for system in comparison.removed_systems:
        yield f"removed: system {system.path}"
    for result_set in comparison.removed_sets:
        yield f"removed: {_name(result_set)}, round {result_set.row.round}, {result_set.in_short}"
    for system in comparison.added_systems:
        yield f"added: system {system.path}"
    for result_set in comparison.added_sets:
        yield f"added: {_name(result_set)}, round {result_set.row.round}, {result_set.in_short}"


def _name(result_set: changes.ComparedSet) -> str:
    """Return the path of a submission's result set; for raw logs, what they are and where."""
    row = result_set.row
    path = result_set.path
    division = row.division or "no division"
    if row.submitter is not None and not result_set.is_raw:
        return f"{path} ({division})"
    folder = "" if path == "." else f", in {path}"
    return f"{row.benchmark}: {row.system or 'no system'} ({division}{folder})"


def _groups(comparison: changes.VersionComparison) -> Iterator[RowGroup]:
    rows = [_result(change) for change in comparison.verdicts]
    rows += [_finding(change) for change in comparison.findings]
    judged = {
        entry.entry for entry in comparison.entries if entry.kind is changes.ChangeKind.RESUBMITTED
    }
    remarks = list(_messages(comparison.findings))
    for finding in comparison.across_rounds:
        if finding.code == RULE and finding.about.endswith(tuple(judged)):
            continue  # named among the entries
        remarks.append(f"{finding.severity} {finding.code}: {sentence(finding)}: {finding.about}")
    remarks += _names("file", comparison.files)
    if rows or remarks:
        yield RowGroup("as a whole", rows, remarks)
    for system in comparison.systems:
        yield _system_group(system)
    for set_change in comparison.sets:
        if set_change.any:
            yield _set_group(set_change)


def _entry_groups(entries: Sequence[changes.EntryVerdict]) -> Iterator[RowGroup]:
    """Yield the verdicts of each kind, below what the rules require."""
    for of_kind in _of_kinds(entries):
        rule = f"Rule: {of_kind.kind.rule} ({of_kind.kind.source})"
        yield RowGroup(of_kind.title, [], [rule, *of_kind.lines(len(entries))])


def _of_kinds(entries: Sequence[changes.EntryVerdict]) -> list[_VerdictsOfKind]:
    """Return the verdicts of each kind, the worst first."""
    worst_first = tuple(_ALLOWED)
    kinds = tuple(changes.ChangeKind)
    of_kinds: dict[tuple[int, int], _VerdictsOfKind] = {}
    for verdict in entries:
        rank = (worst_first.index(verdict.allowed), kinds.index(verdict.kind))
        if rank not in of_kinds:
            title = f"{verdict.kind} - {_ALLOWED[verdict.allowed]}"
            of_kinds[rank] = _VerdictsOfKind(verdict.kind, title, {})
        of_kinds[rank].names.setdefault(verdict.text, []).append(verdict.entry)
    return [of_kinds[rank] for rank in sorted(of_kinds)]


def _system_group(system: changes.SystemChange) -> RowGroup:
    title = f"system {_to(system.old.path, system.new.path)}"
    if system.fields:
        rows = [[field.name, _plain(field.old), _plain(field.new)] for field in system.fields]
        return RowGroup(title, rows)
    if system.old.digest == system.new.digest:
        remark = "renamed, identical bytes"
    else:
        remark = "the same fields, written differently"
    return RowGroup(title, [], [remark])


def _set_group(change: changes.SetChange) -> RowGroup:
    title = _to(_name(change.old), _name(change.new))
    rows = [_result(result) for result in change.results if not _is_factor(change, result)]
    for setting in change.settings:
        rows.append([setting.key, _values(setting.old), _values(setting.new)])
    rows += [_finding(finding) for finding in change.findings]

    remarks = list(_messages(change.findings))
    remarks += _names("run", change.runs)
    edited = by_key((_edits(run), _to(run.old, run.new)) for run in change.same.edited)
    for edits, names in edited.items():
        remarks.append(f"edited {', '.join(names)}: {edits}")
    return RowGroup(title, rows, remarks)


def _edits(run: EditedRun) -> str:
    texts = []
    for edit in run.edits:
        text = edit.what
        if edit.details:
            text += f" ({edit.details})"
        texts.append(text)
    return "; ".join(texts)


def _to(old: str, new: str) -> str:
    return old if old == new else f"{old} -> {new}"


# ---- rows ---------------------------------------------------------------------------------


def _is_factor(change: changes.SetChange, result: changes.FieldChange) -> bool:
    """Return whether a score of a set that moved to another division lost or got its factor."""
    is_moved = change.minutes.name not in _MINUTES
    is_same = change.minutes.old == change.minutes.new
    is_score = result.name in _MINUTES and None not in (result.old, result.new)
    return is_moved and is_same and is_score


def _result(change: changes.FieldChange) -> list[str]:
    """Return the row of a field of a result set, or of a verdict of the whole."""
    name = _LABELS.get(change.name, change.name.replace("_", " "))
    if change.name in _MINUTES:
        old = wording.minutes(change.old)
        new = wording.minutes(change.new)
        percent = changes.percent(change.old, change.new)
        if percent is not None:
            new += f" ({percent:+.2f} %)"
        return [name, old, new]
    return [name, _verdict_or_value(change.old), _verdict_or_value(change.new)]


def _verdict_or_value(value: Any) -> str:
    return _VERDICTS.get(value) or _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return wording.NOTHING
    if isinstance(value, float):
        return digits(value)
    if isinstance(value, str):
        return value
    return jsonlib.dumps(value, ensure_ascii=False)


def _values(values: Iterable[changes.SettingValue]) -> str:
    """Return each value with its number of runs."""
    texts = []
    for setting in values:
        value = "not logged" if setting.value is None else setting.value
        texts.append(f"{value} ({wording.counted(setting.runs, 'run')})")
    return "; ".join(texts)


def _finding(change: changes.FindingChange) -> list[str]:
    return [change.code, _number_of_findings(change.old), _number_of_findings(change.new)]


def _number_of_findings(number: int) -> str:
    return wording.counted(number, "finding") if number else "none"


def _messages(changes: Iterable[changes.FindingChange]) -> Iterator[str]:
    """Yield the messages of findings that are newly or no longer reported."""
    for change in changes:
        if not (change.old and change.new):
            word = "no longer reported" if change.old else "newly reported"
            yield f"{word}: {change.severity} {change.code} ({change.message})"


def _names(noun: str, names: changes.NameChanges) -> Iterator[str]:
    if not names.any:
        return
    if names.unchanged:
        yield f"{wording.counted(names.unchanged, noun)} unchanged"
    for word in ("changed", "removed", "added"):
        files: Sequence[str] = getattr(names, word)
        if files:
            yield f"{wording.counted(len(files), noun)} {word}: {', '.join(files)}"


# ---- other formats ------------------------------------------------------------------------


def json(comparison: changes.VersionComparison, _: View) -> str:
    """Return JSON; values of settings are JSON within JSON, each with its number of runs."""
    content = {
        "format": FORMAT,
        "changed": comparison.any,
        "rounds": {"old": comparison.old_rounds, "new": comparison.new_rounds},
        "summary": list(_summary(comparison)),
        "verdicts": comparison.verdicts,
        "systems": _systems_json(comparison),
        "result_sets": _sets_json(comparison),
        "findings": comparison.findings,
        "files": comparison.files,
        "across_rounds": comparison.across_rounds,
        "entries": comparison.entries,
    }
    return json_text(content)


def _systems_json(comparison: changes.VersionComparison) -> dict[str, Any]:
    changed = []
    for change in comparison.systems:
        paths = {"old": change.old.path, "new": change.new.path}
        changed.append({**paths, "fields": change.fields})
    return {
        "removed": [system.path for system in comparison.removed_systems],
        "added": [system.path for system in comparison.added_systems],
        "changed": changed,
    }


def _sets_json(comparison: changes.VersionComparison) -> dict[str, Any]:
    changed = []
    unchanged = []
    for change in comparison.sets:
        if change.any:
            changed.append(_changed_json(change))
        else:
            unchanged.append(change.new.name)
    return {
        "removed": [_set_json(result_set) for result_set in comparison.removed_sets],
        "added": [_set_json(result_set) for result_set in comparison.added_sets],
        "changed": changed,
        "unchanged": unchanged,
    }


_SET_FIELDS = ("id", "submitter", "system", "benchmark", "division", "round", "score_minutes")


def _set_json(result_set: changes.ComparedSet) -> dict[str, Any]:
    content = {"path": result_set.path}
    for name in _SET_FIELDS:
        content[name] = getattr(result_set.row, name)
    return content


def _changed_json(change: changes.SetChange) -> dict[str, Any]:
    return {
        "old": _set_json(change.old),
        "new": _set_json(change.new),
        "score_percent": change.percent,
        "results": change.results,
        "hyperparameters": change.settings,
        "findings": change.findings,
        "runs": change.runs,
        "edited": change.same.edited,
    }


def markdown(comparison: changes.VersionComparison, _: View) -> str:
    """Return Markdown, the summary first, with a section per kind of change, system and set."""
    summary = [f"- {escape_markdown(line)}" for line in _summary(comparison)]
    entries = markdown_table(Table(_COLUMNS, list(_entry_groups(comparison.entries))))
    gone = [f"- {escape_markdown(line)}" for line in _removed_and_added(comparison)]
    table = markdown_table(Table(_COLUMNS, list(_groups(comparison))))
    return document("## MLPerf changes", "\n".join(summary), entries, "\n".join(gone), table)


DIFF_FORMATS = {"text": text, "json": json, "markdown": markdown}
