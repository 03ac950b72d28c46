"""The formats of a comparison: text, JSON, Markdown."""

import json as jsonlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mlperf_pkg.commands.diff import changes
from mlperf_pkg.commands.diff.runs import EditedRun
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render.findings import View, sentence
from mlperf_pkg.render.table import PLAIN, Column, RowGroup, Table, by_key, document, json_text
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
_BETWEEN = ("across_rounds", "entries")


def text(comparison: changes.Comparison, view: View) -> str:
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
    details = len(gone) + sum(2 + len(group.rows) + len(group.remarks) for group in groups)
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


def _verdict_changes(comparison: changes.Comparison) -> Iterator[str]:
    """Yield a line for each kind of change of a verdict, of the whole and of result sets."""
    for row in map(_result, comparison.verdicts):
        yield "{}: {} -> {}".format(*row)
    sets = ((change.new.name, result) for change in comparison.sets for result in change.results)
    names = by_key((tuple(_result(r)), name) for name, r in sets if r.name in ("official", "rules"))
    for kind, of_kind in names.items():
        number = wording.counted(len(of_kind), "result set")
        few = wording.shortened(of_kind, _FEW)
        yield "{}: {} -> {} of {}: {}".format(*kind, number, few)


def _short(entries: Sequence[changes.EntryVerdict], view: View) -> Iterator[RowGroup]:
    """Yield the verdicts of each kind, a line each, as many as are shown on a screen."""
    groups = list(_of_kinds(entries))
    most = max(1, (_SCREEN - _OTHERS - len(groups)) // len(groups))
    for (title, _, _), lines in groups:
        number = f" ({most} of {len(lines)})" if len(lines) > most else ""
        names = (line.replace("/results/", "/") for line in lines[:most])
        shown = [_cut(line, view.width - _INDENT) for line in names]
        yield RowGroup(f"{title}{number}", [], shown)


def _removed_and_added(comparison: changes.Comparison) -> Iterator[str]:
    for word, systems, sets in (
        ("removed", comparison.removed_systems, comparison.removed_sets),
        ("added", comparison.added_systems, comparison.added_sets),
    ):
        yield from (f"{word}: system {system.path}" for system in systems)
        yield from (f"{word}: result set {_name(one)}, {one.in_short}" for one in sets)


def _name(result_set: changes.ResultSet) -> str:
    """Return the path of a submission's result set; for raw logs, what they are and where."""
    row = result_set.row
    path = result_set.path
    division = row.division or "no division"
    if row.submitter is not None and not result_set.is_raw:
        return f"{path} ({division})"
    folder = "" if path == "." else f", in {path}"
    return f"{row.benchmark}: {row.system or 'no system'} ({division}{folder})"


def _groups(comparison: changes.Comparison, view: View) -> Iterator[RowGroup]:
    rows = [*map(_result, comparison.verdicts), *map(_finding, comparison.findings)]
    between = [
        f"{finding.severity} {finding.code}: {finding.about}: {sentence(finding)}"
        for finding in comparison.across_rounds
    ]
    remarks = [
        *_messages(comparison.findings),
        *_first(between, _LISTED, "more between the rounds", view),
        *_names("file", comparison.files, view),
    ]
    if rows or remarks:
        yield RowGroup("as a whole", rows, remarks)
    for system in comparison.systems:
        yield _system_group(system)
    for change in comparison.sets:
        if change.any:
            yield _set_group(change, view)


def _entry_groups(entries: Sequence[changes.EntryVerdict], view: View) -> Iterator[RowGroup]:
    """Yield the verdicts of each kind, below what the rules require."""
    for (title, rule, source), lines in _of_kinds(entries):
        yield RowGroup(
            title, [], [f"Rule: {rule} ({source})", *_first(lines, _ENTRIES, "more", view)]
        )


def _of_kinds(
    entries: Sequence[changes.EntryVerdict],
) -> Iterable[tuple[tuple[str, str, str], list[str]]]:
    """Return the lines of each kind by its title, rule and source, the worst first."""
    worst_first = tuple(_ALLOWED)
    kinds = tuple(changes.Kind)
    ranked = sorted(entries, key=lambda e: (worst_first.index(e.allowed), kinds.index(e.kind)))
    return by_key(
        ((f"{e.kind} - {_ALLOWED[e.allowed]}", e.rule, e.source), f"{e.entry}: {e.text}")
        for e in ranked
    ).items()


def _system_group(system: changes.SystemChange) -> RowGroup:
    renamed = system.old.digest == system.new.digest
    same = "renamed, identical bytes" if renamed else "the same fields, written differently"
    title = f"system {_to(system.old.path, system.new.path)}"
    rows = [[field.name, _plain(field.old), _plain(field.new)] for field in system.fields]
    return RowGroup(title, rows, [] if rows else [same])


def _set_group(change: changes.SetChange, view: View) -> RowGroup:
    rows = [
        *map(_result, change.results),
        *([setting.key, _values(setting.old), _values(setting.new)] for setting in change.settings),
        *map(_finding, change.findings),
    ]
    edited = change.same.edited if view.verbose else change.same.edited[:_LISTED]
    remarks = [
        *_messages(change.findings),
        *_names("run", change.runs, view),
        *(f"edited: {_to(run.old, run.new)}: {_edits(run)}" for run in edited),
    ]
    more = len(change.same.edited) - len(edited)
    if more:
        remarks.append(f"and {wording.counted(more, 'more edited log')}; -v shows them")
    return RowGroup(_to(_name(change.old), _name(change.new)), rows, remarks)


def _edits(run: EditedRun) -> str:
    return "; ".join(f"{e.what} ({e.details})" if e.details else e.what for e in run.edits)


def _to(old: str, new: str) -> str:
    return old if old == new else f"{old} -> {new}"


# ---- rows ---------------------------------------------------------------------------------


def _result(change: changes.Change) -> list[str]:
    """Return the row of a field of a result set, or of a verdict of the whole."""
    name = _LABELS.get(change.name, change.name.replace("_", " "))
    if change.name in _MINUTES:
        by = changes.percent(change.old, change.new)
        share = "" if by is None else f" ({by:+.2f} %)"
        return [name, wording.minutes(change.old), wording.minutes(change.new) + share]
    return [name, *(_VERDICTS.get(value) or _plain(value) for value in (change.old, change.new))]


def _plain(value: Any) -> str:
    if value is None:
        return wording.NOTHING
    if isinstance(value, float):
        return f"{value:.6g}"
    return _cut(value if isinstance(value, str) else jsonlib.dumps(value, ensure_ascii=False))


def _cut(value: str, most: int = _SHOWN) -> str:
    return value if len(value) <= most else f"{value[: most - 3]}..."


def _values(values: Iterable[changes.Setting]) -> str:
    """Return each value with its number of runs; only the most frequent if there are many."""
    texts = [
        f"{'not logged' if s.value is None else _cut(s.value)} ({wording.counted(s.runs, 'run')})"
        for s in values
    ]
    more = len(texts[_LISTED:])
    if more:
        texts[_LISTED:] = [f"and {more} other values"]
    return "; ".join(texts)


def _finding(change: changes.FindingChange) -> list[str]:
    old, new = (wording.counted(n, "finding") if n else "none" for n in (change.old, change.new))
    return [change.code, old, new]


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
            shown = wording.shortened(files, len(files) if view.verbose else _LISTED)
            yield f"{wording.counted(len(files), noun)} {word}: {shown}"


def _summary(comparison: changes.Comparison) -> str:
    changed = sum(change.any for change in comparison.sets)
    same = wording.counted(len(comparison.sets) - changed, "result set")
    if not comparison.any:
        runs = wording.counted(sum(change.runs.unchanged for change in comparison.sets), "run")
        return f"nothing changed: {same}, {runs} with identical bytes"
    return (
        f"result sets: {changed} changed, {len(comparison.sets) - changed} unchanged,"
        f" {len(comparison.removed_sets)} removed, {len(comparison.added_sets)} added"
    )


# ---- other formats ------------------------------------------------------------------------


def json(comparison: changes.Comparison, _: View) -> str:
    """Return JSON; values of settings are JSON within JSON, each with its number of runs."""
    systems = {
        "removed": [system.path for system in comparison.removed_systems],
        "added": [system.path for system in comparison.added_systems],
        "changed": [
            {"old": change.old.path, "new": change.new.path, "fields": change.fields}
            for change in comparison.systems
        ],
    }
    sets = {
        "removed": [_set_json(result_set) for result_set in comparison.removed_sets],
        "added": [_set_json(result_set) for result_set in comparison.added_sets],
        "changed": [_changed_json(change) for change in comparison.sets if change.any],
        "unchanged": [change.new.name for change in comparison.sets if not change.any],
    }
    return json_text(
        {
            "format": FORMAT,
            "changed": comparison.any,
            "verdicts": comparison.verdicts,
            "systems": systems,
            "result_sets": sets,
            **{n: getattr(comparison, n) for n in ("findings", "files", *_BETWEEN)},
        }
    )


def _set_json(result_set: changes.ResultSet) -> dict[str, Any]:
    names = ("id", "submitter", "system", "benchmark", "division", "round", "score_minutes")
    return {"path": result_set.path, **{name: getattr(result_set.row, name) for name in names}}


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


def markdown(comparison: changes.Comparison, view: View) -> str:
    """Return Markdown with a section per system and result set that changed, for a review."""
    gone = "\n".join(f"- {escape_markdown(line)}" for line in _removed_and_added(comparison))
    groups = [*_entry_groups(comparison.entries, view), *_groups(comparison, view)]
    changes = markdown_table(Table(_COLUMNS, groups))
    ending = escape_markdown(_summary(comparison))
    return document("## MLPerf changes", gone, changes, ending)


DIFF_FORMATS = {"text": text, "json": json, "markdown": markdown}
