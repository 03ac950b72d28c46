"""Read the two sides of a comparison: check each path and compute the digests of its files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.scores import scores
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.commands.diff.across_rounds import across_rounds
from mlperf_pkg.commands.diff.changes import compare
from mlperf_pkg.commands.diff.model import Comparison, Log, ResultSet, Side, System
from mlperf_pkg.commands.diff.settings import read_settings, settings_named
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.listed_path import AnyPath
from mlperf_pkg.submission.model import Input, Place

_UNREADABLE = "cannot be read"


def compare_paths(old: str, new: str, options: Options) -> Comparison:
    """Return what changed from one path to another; each path is as for ``check``.

    Raises:
        UserError: as ``check``.
    """
    checks = [check([path], options) for path in (old, new)]
    rounds = {(run.usage, run.round) for checked in checks for run in checked.runs}
    keys = frozenset[str]().union(*(settings_named(usage, round_) for usage, round_ in rounds))
    logs = _Logs(keys)
    comparison = compare(*(_side(checked, logs) for checked in checks))
    return replace(comparison, across_rounds=across_rounds((old, new), checks))


class _Logs:
    """Reads logs; of those with equal bytes only one is parsed."""

    def __init__(self, keys: frozenset[str]) -> None:
        """``keys`` are those of the settings to read."""
        self._keys = keys
        self._settings: dict[str, dict[str, str]] = {}

    def read(self, log: Place) -> Log:
        """Return the digest of a log and its settings."""
        digest = _digest(log.path)
        if digest == _UNREADABLE:
            return Log(log.name, digest, {})
        if digest not in self._settings:
            self._settings[digest] = read_settings(log.source, self._keys)
        return Log(log.name, digest, self._settings[digest])


def _digest(path: AnyPath) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return _UNREADABLE


def _side(checked: Checked, logs: _Logs) -> Side:
    contents = checked.inputs[0]
    # A single submission may have another name on the other side; several go by their names.
    label = contents.submissions[0].place.label if len(contents.submissions) == 1 else ""
    places = contents.places
    scored_sets = scores(checked).sets
    sets = tuple(
        ResultSet(
            path=_within(label, scored.row.path),
            row=scored.row,
            logs=tuple(logs.read(places[run.path]) for run in scored.runs),
            findings=tuple(result.observations),
        )
        for scored, result in zip(scored_sets, checked.sets, strict=True)
    )
    compared = {system.path for system in checked.systems}
    compared |= {run.path for scored in scored_sets for run in scored.runs}
    return Side(
        verdict=checked.report.verdict,
        systems=tuple(
            _system(system, label, places[system.path].path) for system in checked.systems
        ),
        sets=sets,
        findings=tuple(_outside(checked.report.findings, sets)),
        files={_within(label, path): digest for path, digest in _others(contents, compared)},
    )


def _outside(findings: Iterable[Finding], sets: Iterable[ResultSet]) -> Iterator[Finding]:
    """Yield the findings of a report without those of its result sets, which it repeats."""
    repeated = Counter(finding.sort_key for result_set in sets for finding in result_set.findings)
    for finding in findings:
        if repeated[finding.sort_key]:
            repeated[finding.sort_key] -= 1
        else:
            yield finding


def _system(system: SystemFile, label: str, path: AnyPath) -> System:
    return System(_within(label, system.path), system.id, _digest(path), system.contents or {})


def _others(contents: Input, compared: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield path and digest of the files that are not ``compared`` in another way."""
    for log in contents.logs:
        if log.label not in compared:
            yield log.label, _digest(log.path)
    for submission in contents.submissions:
        for entry in submission.entries:
            place = submission.place.child(entry.path)
            if place.label not in compared and not (entry.folder and entry.link is None):
                # Links are not followed; a pipe or a device would never end.
                link = None if entry.link is None else f"link to {entry.link}"
                yield place.label, link or (_digest(place.path) if place.path.is_file() else "")


def _within(label: str, path: str) -> str:
    return path.removeprefix(f"{label}/") if label else path
