"""What changed between two versions, for people and for programs."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mlperf_pkg.commands.diff.changes import (
    Change,
    Comparison,
    FindingChange,
    Names,
    Set,
    SetChange,
    SettingChange,
    SystemChange,
)
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import tables
from mlperf_pkg.render.markdown import section
from mlperf_pkg.render.terminal import PLAIN, Column, Group, Terminal
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording as words

FORMAT = "mlperf-pkg/diff/1"

_COLUMNS = (Column("Changed"), Column("Old", 18), Column("New", 22))
_TITLES = {"Changed": False, "Old": False, "New": False}
_SHOWN = 200  # characters of a value; the whole of it is in the JSON
_LISTED = 5  # names, or values of a setting, in a line
_VERDICTS = {verdict.value: said for verdict, said in words.VERDICTS.items()}
_WORDED = {"official": "official verdict", "rules": "rules verdict", "rcp": "RCP test"}
_MINUTES = ("score_minutes", "official_minutes")


def text(found: Comparison, view: View) -> str:
    """For a terminal or a pipe."""
    terminal = Terminal(view)
    for line in _gone_and_new(found):
        terminal.line((line, PLAIN))
    if groups := list(_groups(found, view)):
        terminal.table(_COLUMNS, groups, apart=True)
    terminal.paragraph((_summary(found), PLAIN))
    return terminal.text()


def _gone_and_new(found: Comparison) -> Iterator[str]:
    for word, systems, sets in (
        ("removed", found.removed_systems, found.removed_sets),
        ("added", found.added_systems, found.added_sets),
    ):
        yield from (f"{word}: system {system.place}" for system in systems)
        yield from (f"{word}: result set {_described(each)}" for each in sets)


def _described(each: Set) -> str:
    runs = words.counted(each.row.runs_found, "run")
    score = f"{words.minutes(each.row.score_minutes)} minutes"
    return f"{_name(each)}, {runs}, {score}"


def _name(each: Set) -> str:
    """The path of a submission's result set tells all; loose logs tell what they are."""
    row = each.row
    division = row.division or "no division"
    if row.submitter is not None:
        return f"{each.place} ({division})"
    place = "" if each.place == "." else f", in {each.place}"
    return f"{row.benchmark}: {row.system or 'no system'} ({division}{place})"


def _groups(found: Comparison, view: View) -> Iterator[Group]:
    rows = [*map(_result, found.verdicts), *map(_finding, found.findings)]
    remarks = [*_messages(found.findings), *_names("file", found.files, view)]
    if rows or remarks:
        yield _group("as a whole", rows, remarks)
    for system in found.systems:
        yield _system_group(system)
    for each in found.sets:
        if each.any:
            yield _set_group(each, view)


def _group(title: str, rows: Iterable[Sequence[str]], remarks: Sequence[str]) -> Group:
    return Group(title, [[(cell, PLAIN) for cell in row] for row in rows], remarks)


def _system_group(system: SystemChange) -> Group:
    renamed = system.old.digest == system.new.digest
    same = "renamed, the same to the byte" if renamed else "the same fields, written differently"
    title = f"system {_to(system.old.place, system.new.place)}"
    return _group(title, map(_change, system.fields), [] if system.fields else [same])


def _set_group(each: SetChange, view: View) -> Group:
    rows = [
        *map(_result, each.results),
        *map(_setting, each.settings),
        *map(_finding, each.findings),
    ]
    remarks = [*_messages(each.findings), *_names("run", each.runs, view)]
    return _group(_to(_name(each.old), _name(each.new)), rows, remarks)


def _to(old: str, new: str) -> str:
    return old if old == new else f"{old} -> {new}"


# ---- rows ---------------------------------------------------------------------------------


def _change(change: Change) -> list[str]:
    """A field of a system description."""
    return [change.name, _plain(change.old), _plain(change.new)]


def _result(change: Change) -> list[str]:
    """A field of a result set, or a verdict of the whole."""
    name = _WORDED.get(change.name, change.name.replace("_", " "))
    if change.name in _MINUTES:
        return [name, words.minutes(change.old), words.minutes(change.new) + _percent(change)]
    return [name, *(_VERDICTS.get(each) or _plain(each) for each in (change.old, change.new))]


def _plain(value: Any) -> str:
    if value is None:
        return words.NOTHING
    if isinstance(value, float):
        return f"{value:.6g}"
    return _cut(value if isinstance(value, str) else jsonlib.dumps(value, ensure_ascii=False))


def _cut(value: str) -> str:
    return value if len(value) <= _SHOWN else f"{value[: _SHOWN - 3]}..."


def percent(old: float | None, new: float | None) -> float | None:
    """By how much ``new`` exceeds ``old``, in percent; None where that has no meaning."""
    return 100 * (new / old - 1) if old and new is not None else None


def _percent(change: Change) -> str:
    value = percent(change.old, change.new)
    return "" if value is None else f" ({value:+.2f} %)"


def _setting(change: SettingChange) -> list[str]:
    return [change.key, _values(change.old), _values(change.new)]


def _values(values: Iterable[tuple[str | None, int]]) -> str:
    """Each value with how many runs have it; of too many the most frequent."""
    several = [
        f"{'not logged' if value is None else _cut(value)} ({words.counted(number, 'run')})"
        for value, number in values
    ]
    more = len(several) - _LISTED
    return "; ".join(several[:_LISTED] + ([f"and {more} other values"] if more > 0 else []))


def _finding(change: FindingChange) -> list[str]:
    old, new = (words.counted(n, "finding") if n else "none" for n in (change.old, change.new))
    return [change.code, old, new]


def _messages(changes: Iterable[FindingChange]) -> Iterator[str]:
    """The words of findings that were not there, or are there no longer."""
    for change in changes:
        if not (change.old and change.new):
            word = "vanished" if change.old else "appeared"
            yield f"{word}: {change.severity} {change.code}: {change.message}"


def _names(noun: str, names: Names, view: View) -> Iterator[str]:
    if not names.any:
        return
    if names.unchanged:
        yield f"{words.counted(names.unchanged, noun)} unchanged"
    for word in ("changed", "removed", "added"):
        if listed := getattr(names, word):
            shown = listed if view.verbose else listed[:_LISTED]
            more = f" and {len(listed) - len(shown)} more" if len(listed) > len(shown) else ""
            yield f"{words.counted(len(listed), noun)} {word}: {', '.join(shown)}{more}"


def _summary(found: Comparison) -> str:
    changed = sum(each.any for each in found.sets)
    same = words.counted(len(found.sets) - changed, "result set")
    if not found.any:
        return f"nothing changed: {same}, {_runs(found)} to the byte"
    return (
        f"result sets: {changed} changed, {len(found.sets) - changed} unchanged,"
        f" {len(found.removed_sets)} removed, {len(found.added_sets)} added"
    )


def _runs(found: Comparison) -> str:
    return words.counted(sum(each.runs.unchanged for each in found.sets), "run")


# ---- other formats ------------------------------------------------------------------------


def json(found: Comparison, _: View) -> str:
    """For programs; values of settings are JSON within JSON, each with its number of runs."""
    systems = {
        "removed": [system.place for system in found.removed_systems],
        "added": [system.place for system in found.added_systems],
        "changed": [
            {"old": each.old.place, "new": each.new.place, "fields": each.fields}
            for each in found.systems
        ],
    }
    sets = {
        "removed": [_set_json(each) for each in found.removed_sets],
        "added": [_set_json(each) for each in found.added_sets],
        "changed": [_changed_json(each) for each in found.sets if each.any],
        "unchanged": [each.new.place for each in found.sets if not each.any],
    }
    return tables.json_text(
        {
            "format": FORMAT,
            "changed": found.any,
            "verdicts": found.verdicts,
            "systems": systems,
            "result_sets": sets,
            "findings": found.findings,
            "files": found.files,
        }
    )


def _set_json(each: Set) -> dict[str, Any]:
    named = ("submitter", "system", "benchmark", "division", "round", "score_minutes")
    return {"path": each.place, **{name: getattr(each.row, name) for name in named}}


def _changed_json(each: SetChange) -> dict[str, Any]:
    old, new = each.old.row.score_minutes, each.new.row.score_minutes
    return {
        "old": _set_json(each.old),
        "new": _set_json(each.new),
        "score_percent": percent(old, new),
        "results": each.results,
        "hyperparameters": [
            {"key": change.key, "old": _counted(change.old), "new": _counted(change.new)}
            for change in each.settings
        ],
        "findings": each.findings,
        "runs": each.runs,
    }


def _counted(values: Iterable[tuple[str | None, int]]) -> list[dict[str, Any]]:
    return [{"value": value, "runs": number} for value, number in values]


def markdown(found: Comparison, view: View) -> str:
    """For a comment in a review: a section per system and result set that changed."""
    gone = "\n".join(f"- {escape_markdown(line)}" for line in _gone_and_new(found))
    sections = [section(_TITLES, group) for group in _groups(found, view)]
    parts = ("## MLPerf changes", gone, *sections, escape_markdown(_summary(found)))
    return "\n\n".join(part for part in parts if part) + "\n"


DIFF_FORMATS: Mapping[str, Callable[[Comparison, View], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
}
