"""The formats of a comparison: text, JSON, Markdown."""

import json as jsonlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.resubmission import RULE
from mlperf_pkg.commands.diff import changes
from mlperf_pkg.commands.diff.runs import EditedRun
from mlperf_pkg.infra.json_values import digits
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render.findings import View, sentence
from mlperf_pkg.render.table import PLAIN, Column, RowGroup, Table, document, json_text
from mlperf_pkg.render.table import markdown as markdown_table
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording

FORMAT = "mlperf-pkg/diff/1"

_COLUMNS = (Column("Changed"), Column("Old", 18), Column("New", 22))
_SHOWN = 200  # characters of a value; the JSON has all of it
_LISTED = 5  # names, or values of a setting, in a line
_ENTRIES = 10  # of one kind
_FEW = 2  # result sets with another verdict
_SCREEN = 50  # lines
_OTHERS = 10  # lines of a screen that are not about entries
_INDENT = 2  # columns before a remark
_ALLOWED = {False: "against the rules", None: "to be decided", True: "allowed"}
_VERDICTS = {verdict.value: word for verdict, word in wording.VERDICTS.items()}
_LABELS = {"official": "official verdict", "rules": "rules verdict", "rcp": "RCP test"}
_MINUTES = ("score_minutes", "official_minutes")


def text(comparison: changes.VersionComparison, view: View) -> str:
    """Return the changes for a terminal or a pipe.

    What the review decides comes first. If all is more than a screen of lines, the details are left
    out unless the view is verbose.
    """
    terminal = Terminal(view)
    for line in (_summary(comparison), *_verdict_changes(comparison)):
        terminal.paragraph((line, PLAIN))
    entries = list(_entry_groups(comparison.entries, view))
    groups = list(_groups(comparison, view))
    gone = list(_removed_and_added(comparison))
    details = len(gone)
    for group in groups:
        details += 2 + len(group.rows) + len(group.remarks)
    is_whole = not entries or view.verbose or len(entries) * 3 + details < _SCREEN
    if entries:
        terminal.line()
        shown = entries if is_whole else list(_short(comparison.entries, view))
        terminal.table(Table((Column("Entries in the review"),), shown), apart=is_whole)
    if not is_whole:
        terminal.paragraph((f"{details} lines of details: -v shows them", PLAIN))
        return terminal.text()
    terminal.line()
    for line in gone:
        terminal.line((line, PLAIN))
    if groups:
        terminal.table(Table(_COLUMNS, groups), apart=True)
    return terminal.text()


def _verdict_changes(comparison: changes.VersionComparison) -> Iterator[str]:
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
        few = wording.shortened(set_names, _FEW)
        extent = "of all together, and of" if line in whole else "of"
        yield f"{line} {extent} {number}: {few}"


def _verdict_change(change: changes.FieldChange) -> str:
    name, old, new = _result(change)
    return f"{name}: {old} -> {new}"


def _short(entries: Sequence[changes.EntryVerdict], view: View) -> Iterator[RowGroup]:
    """Yield the verdicts of each kind, a line each, as many as are shown on a screen."""
    kinds = _of_kinds(entries)
    most = max(1, (_SCREEN - _OTHERS - len(kinds)) // len(kinds))
    for of_kind in kinds:
        title = of_kind.title
        lines = of_kind.lines
        if len(lines) > most:
            title += f" ({most} of {len(lines)})"
        shown = []
        for line in lines[:most]:
            short_line = line.replace("/results/", "/")
            shown.append(_cut(short_line, view.width - _INDENT))
        yield RowGroup(title, [], shown)


def _removed_and_added(comparison: changes.VersionComparison) -> Iterator[str]:
    for system in comparison.removed_systems:
        yield f"removed: system {system.path}"
    for result_set in comparison.removed_sets:
        yield f"removed: result set {_name(result_set)}, {result_set.in_short}"
    for system in comparison.added_systems:
        yield f"added: system {system.path}"
    for result_set in comparison.added_sets:
        yield f"added: result set {_name(result_set)}, {result_set.in_short}"


def _name(result_set: changes.ComparedSet) -> str:
    """Return the path of a submission's result set; for raw logs, what they are and where."""
    row = result_set.row
    path = result_set.path
    division = row.division or "no division"
    if row.submitter is not None and not result_set.is_raw:
        return f"{path} ({division})"
    folder = "" if path == "." else f", in {path}"
    return f"{row.benchmark}: {row.system or 'no system'} ({division}{folder})"


def _groups(comparison: changes.VersionComparison, view: View) -> Iterator[RowGroup]:
    rows = [_result(change) for change in comparison.verdicts]
    rows += [_finding(change) for change in comparison.findings]
    between = []
    judged = {
        entry.entry for entry in comparison.entries if entry.kind is changes.ChangeKind.RESUBMITTED
    }
    for finding in comparison.across_rounds:
        if finding.code == RULE and finding.about.endswith(tuple(judged)):
            continue  # named among the entries
        about = f"{finding.severity} {finding.code}: {finding.about}"
        between.append(f"{about}: {sentence(finding)}")
    remarks = list(_messages(comparison.findings))
    remarks += _first(between, _LISTED, "more between the rounds", view)
    remarks += _names("file", comparison.files, view)
    if rows or remarks:
        yield RowGroup("as a whole", rows, remarks)
    for system in comparison.systems:
        yield _system_group(system)
    for set_change in comparison.sets:
        if set_change.any:
            yield _set_group(set_change, view)


def _entry_groups(entries: Sequence[changes.EntryVerdict], view: View) -> Iterator[RowGroup]:
    """Yield the verdicts of each kind, below what the rules require."""
    for of_kind in _of_kinds(entries):
        remarks = [f"Rule: {of_kind.rule} ({of_kind.source})"]
        remarks += _first(of_kind.lines, _ENTRIES, "more", view)
        yield RowGroup(of_kind.title, [], remarks)


class _VerdictsOfKind(Struct, frozen=True):
    """The lines of the verdicts on one kind of change, with its rule and the rule's source."""

    title: str
    rule: str
    source: str
    lines: list[str]


def _of_kinds(entries: Sequence[changes.EntryVerdict]) -> list[_VerdictsOfKind]:
    """Return the lines of each kind, the worst first."""
    worst_first = tuple(_ALLOWED)
    kinds = tuple(changes.ChangeKind)
    of_kinds: dict[tuple[int, int], _VerdictsOfKind] = {}
    for verdict in entries:
        rank = (worst_first.index(verdict.allowed), kinds.index(verdict.kind))
        if rank not in of_kinds:
            title = f"{verdict.kind} - {_ALLOWED[verdict.allowed]}"
            of_kinds[rank] = _VerdictsOfKind(title, verdict.rule, verdict.source, [])
        of_kinds[rank].lines.append(f"{verdict.entry}: {verdict.text}")
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


def _set_group(change: changes.SetChange, view: View) -> RowGroup:
    title = _to(_name(change.old), _name(change.new))
    rows = [_result(result) for result in change.results if not _is_factor(change, result)]
    for setting in change.settings:
        rows.append([setting.key, _values(setting.old), _values(setting.new)])
    rows += [_finding(finding) for finding in change.findings]

    remarks = list(_messages(change.findings))
    remarks += _names("run", change.runs, view)
    remarks += _edited_runs(change.same.edited, view)
    return RowGroup(title, rows, remarks)


def _edited_runs(runs: Sequence[EditedRun], view: View) -> Iterator[str]:
    shown = runs if view.verbose else runs[:_LISTED]
    for run in shown:
        yield f"edited: {_to(run.old, run.new)}: {_edits(run)}"
    more = len(runs) - len(shown)
    if more:
        yield f"and {wording.counted(more, 'more edited log')}; -v shows them"


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
    if not isinstance(value, str):
        value = jsonlib.dumps(value, ensure_ascii=False)
    return _cut(value)


def _cut(value: str, most: int = _SHOWN) -> str:
    return value if len(value) <= most else f"{value[: most - 3]}..."


def _values(values: Iterable[changes.SettingValue]) -> str:
    """Return each value with its number of runs; only the most frequent if there are many."""
    texts = []
    for setting in values:
        value = "not logged" if setting.value is None else _cut(setting.value)
        texts.append(f"{value} ({wording.counted(setting.runs, 'run')})")
    more = len(texts) - _LISTED
    if more > 0:
        texts[_LISTED:] = [f"and {more} other values"]
    return "; ".join(texts)


def _finding(change: changes.FindingChange) -> list[str]:
    return [change.code, _number_of_findings(change.old), _number_of_findings(change.new)]


def _number_of_findings(number: int) -> str:
    return wording.counted(number, "finding") if number else "none"


def _messages(changes: Iterable[changes.FindingChange]) -> Iterator[str]:
    """Yield the messages of findings that appeared or disappeared."""
    for change in changes:
        if not (change.old and change.new):
            word = "disappeared" if change.old else "appeared"
            yield f"{word}: {change.severity} {change.code}: {change.message}"


def _first(lines: list[str], most: int, others: str, view: View) -> list[str]:
    """Return the lines, or only the first if there are many, and how many ``others`` there are."""
    if view.verbose or len(lines) <= most:
        return lines
    return [*lines[:most], f"and {len(lines) - most} {others}; -v shows them"]


def _names(noun: str, names: changes.NameChanges, view: View) -> Iterator[str]:
    if not names.any:
        return
    if names.unchanged:
        yield f"{wording.counted(names.unchanged, noun)} unchanged"
    for word in ("changed", "removed", "added"):
        files: Sequence[str] = getattr(names, word)
        if files:
            most = len(files) if view.verbose else _LISTED
            shown = wording.shortened(files, most)
            yield f"{wording.counted(len(files), noun)} {word}: {shown}"


def _summary(comparison: changes.VersionComparison) -> str:
    changed = sum(change.any for change in comparison.sets)
    unchanged = len(comparison.sets) - changed
    if not comparison.any:
        sets = wording.counted(unchanged, "result set")
        number = sum(change.runs.unchanged for change in comparison.sets)
        runs = wording.counted(number, "run")
        return f"nothing changed: {sets}, {runs} with identical bytes"
    removed = len(comparison.removed_sets)
    added = len(comparison.added_sets)
    return (
        f"result sets: {changed} changed, {unchanged} unchanged, {removed} removed, {added} added"
    )


# ---- other formats ------------------------------------------------------------------------


def json(comparison: changes.VersionComparison, _: View) -> str:
    """Return JSON; values of settings are JSON within JSON, each with its number of runs."""
    content = {
        "format": FORMAT,
        "changed": comparison.any,
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


def markdown(comparison: changes.VersionComparison, view: View) -> str:
    """Return Markdown with a section per system and result set that changed, for a review."""
    gone = [f"- {escape_markdown(line)}" for line in _removed_and_added(comparison)]
    groups = [*_entry_groups(comparison.entries, view), *_groups(comparison, view)]
    table = markdown_table(Table(_COLUMNS, groups))
    ending = escape_markdown(_summary(comparison))
    return document("## MLPerf changes", "\n".join(gone), table, ending)


DIFF_FORMATS = {"text": text, "json": json, "markdown": markdown}
