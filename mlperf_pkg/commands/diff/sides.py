"""The two sides of a comparison: what each argument holds, checked, with the bytes of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.scores import scores
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.commands.diff.changes import Comparison, Log, Set, Side, System, compare
from mlperf_pkg.commands.diff.settings import read_settings, settings_named
from mlperf_pkg.infra.source import source_of
from mlperf_pkg.infra.stores import StoredPath
from mlperf_pkg.submission.model import Input

_UNREADABLE = "cannot be read"


def compare_paths(old: str, new: str, options: Options) -> Comparison:
    """What changed from one path to another, each as for ``check``.

    Raises:
        UserError: as ``check``.
    """
    both = [check([path], options) for path in (old, new)]
    rounds = {(run.usage, run.round) for each in both for run in each.runs}
    names = frozenset[str]().union(*(settings_named(*each) for each in rounds))
    logs = _Logs(names)
    return compare(*(_side(each, logs) for each in both))


class _Logs:
    """Reads logs; of those with equal bytes only one is parsed."""

    def __init__(self, names: frozenset[str]) -> None:
        """``names`` are the keys to be read."""
        self._names = names
        self._settings: dict[str, dict[str, str]] = {}

    def read(self, path: Path | StoredPath) -> Log:
        """The digest of a log and its settings."""
        digest = _digest(path)
        if digest == _UNREADABLE:
            return Log(path.name, digest, {})
        if digest not in self._settings:
            self._settings[digest] = read_settings(source_of(path, path.name), self._names)
        return Log(path.name, digest, self._settings[digest])


def _digest(path: Path | StoredPath) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return _UNREADABLE


def _side(checked: Checked, logs: _Logs) -> Side:
    given = checked.inputs[0]
    # A single submission may have another name on the other side; several go by theirs.
    label = given.submissions[0].place.label if len(given.submissions) == 1 else ""
    listed = scores(checked).sets
    found = given.places
    sets = tuple(
        Set(
            place=_within(label, scored.row.path),
            row=scored.row,
            logs=tuple(logs.read(found[run.path].path) for run in scored.runs),
            findings=(*result.findings, *result.run_findings),
        )
        for scored, result in zip(listed, checked.sets, strict=True)
    )
    told = {system.path for system in checked.systems}
    told |= {run.path for scored in listed for run in scored.runs}
    of_sets = {id(finding) for each in sets for finding in each.findings}  # the same objects
    return Side(
        verdict=checked.report.verdict,
        systems=tuple(_system(each, label, found[each.path].path) for each in checked.systems),
        sets=sets,
        findings=tuple(f for f in checked.report.findings if id(f) not in of_sets),
        files={_within(label, path): digest for path, digest in _others(given, told)},
    )


def _system(system: SystemFile, label: str, path: Path | StoredPath) -> System:
    return System(_within(label, system.path), system.id, _digest(path), system.contents or {})


def _others(given: Input, told: Collection[str]) -> Iterator[tuple[str, str]]:
    """Path and digest of all files that are not ``told`` elsewhere."""
    for log in given.logs:
        if log.label not in told:
            yield log.label, _digest(log.path)
    for submission in given.submissions:
        for entry in submission.entries:
            place = submission.place.child(entry.path)
            if place.label not in told and not (entry.folder and entry.link is None):
                # Links are not followed; a pipe or a device would never end.
                link = None if entry.link is None else f"link to {entry.link}"
                yield place.label, link or (_digest(place.path) if place.path.is_file() else "")


def _within(label: str, path: str) -> str:
    return path.removeprefix(f"{label}/") if label else path
