"""Read the two sides of a comparison: check each path and compute the digests of its files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.scores import scores
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.system_values import is_text
from mlperf_pkg.commands.diff.across_rounds import across_rounds
from mlperf_pkg.commands.diff.changes import compare
from mlperf_pkg.commands.diff.entries import entry_verdicts
from mlperf_pkg.commands.diff.model import Comparison, Log, ResultSet, Side, System
from mlperf_pkg.commands.diff.settings import read_settings, settings_named
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.paths import AnyPath
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import Input, Place

_UNREADABLE = "cannot be read"


def compare_paths(
    old: str, new: str, options: Options, borrowed_from: str | None = None
) -> Comparison:
    """Return what changed from one path to another; each path is as for ``check``.

    If only the old side has several submissions, the one with the name of the new side is compared.
    Hyperparameters may have been borrowed from any submission of the old side, or of the round
    ``borrowed_from``.

    Raises:
        UserError: as ``check``.
    """
    before, after = (check([path], options) for path in (old, new))
    lending = check([borrowed_from], options) if borrowed_from else before
    if own := _counterpart(before, after):
        old = str(own.path)
        before = check(
            [old], replace(options, usage=before.report.usage, round=before.report.round)
        )
    checks = (before, after)
    rounds = {(run.usage, run.round) for checked in (*checks, lending) for run in checked.runs}
    keys = frozenset[str]().union(*(settings_named(usage, round_) for usage, round_ in rounds))
    logs = _Logs(keys)
    alone = all(len(checked.inputs[0].submissions) == 1 for checked in checks)
    first, second = (_side(checked, logs, alone=alone) for checked in checks)
    lenders = first.sets if lending is checks[0] else tuple(_sets(lending, logs))
    comparison = compare(first, second)
    return replace(
        comparison,
        across_rounds=across_rounds((old, new), checks),
        entries=entry_verdicts(comparison, first, second, lenders),
    )


def _counterpart(before: Checked, after: Checked) -> Place | None:
    """Return the submission of an old round for the single submission on the new side."""
    old, new = (checked.inputs[0].submissions for checked in (before, after))
    if any(item.place.label == "" for item in old) or [item.place.label for item in new] != [""]:
        return None
    return next((item.place for item in old if item.name == new[0].name), None)


class _Logs:
    """Reads logs; of those with equal bytes only one is parsed."""

    def __init__(self, keys: frozenset[str]) -> None:
        """``keys`` are those of the settings to read."""
        self._keys = keys
        self._settings: dict[str, dict[str, str]] = {}

    def read(self, log: Place, run: Run | None) -> Log:
        """Return the digest of a log, its settings and the fingerprint of its run."""
        digest = _digest(log.path)
        if digest == _UNREADABLE:
            return Log(log.name, digest, {})
        if digest not in self._settings:
            self._settings[digest] = read_settings(log.source, self._keys)
        return Log(log.name, digest, self._settings[digest], run.fingerprint if run else None)


def _digest(path: AnyPath) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return _UNREADABLE


def _side(checked: Checked, logs: _Logs, *, alone: bool) -> Side:
    contents = checked.inputs[0]
    # A single submission may have another name on the other side; several go by their names.
    label = contents.submissions[0].place.label if alone else ""
    sets = tuple(_sets(checked, logs, label, alone=alone))
    compared = {system.path for system in checked.systems}
    compared |= {run.path for scored in scores(checked).sets for run in scored.runs}
    return Side(
        verdict=checked.report.verdict,
        systems=tuple(_systems(checked, label).values()),
        sets=sets,
        findings=tuple(_outside(checked.report.findings, sets)),
        files={_within(label, path): digest for path, digest in _others(contents, compared)},
    )


def _sets(
    checked: Checked, logs: _Logs, label: str = "", *, alone: bool = False
) -> Iterator[ResultSet]:
    places = checked.inputs[0].places
    runs = {run.path: run for run in checked.runs}
    systems = _systems(checked, label)
    for scored, result, context in zip(
        scores(checked).sets, checked.sets, checked.contexts, strict=True
    ):
        system = systems.get(context.system.path) if context.system else None
        described = system.fields.get("submitter") if system and alone else None
        in_tree, path = context.origin.has_folder, _within(label, scored.row.path)
        name = (scored.row.submitter or "") if in_tree else ""
        yield ResultSet(
            path=path,
            row=scored.row,
            logs=tuple(logs.read(places[run.path], runs.get(run.path)) for run in scored.runs),
            findings=tuple(result.observations),
            system=system,
            submitter=described if name and is_text(described) else name,
            identity=context.identity,
            is_raw=not in_tree,
        )


def _systems(checked: Checked, label: str) -> dict[str, System]:
    """Return the system descriptions by their paths in the report."""
    places = checked.inputs[0].places
    return {
        system.path: System(
            _within(label, system.path),
            system.id,
            _digest(places[system.path].path),
            system.contents or {},
            system.accelerators,
        )
        for system in checked.systems
    }


def _outside(findings: Iterable[Finding], sets: Iterable[ResultSet]) -> Iterator[Finding]:
    """Yield the findings of a report without those of its result sets, which it repeats."""
    repeated = Counter(finding.sort_key for result_set in sets for finding in result_set.findings)
    for finding in findings:
        if repeated[finding.sort_key]:
            repeated[finding.sort_key] -= 1
        else:
            yield finding


def _others(contents: Input, compared: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield path and digest of the files that are not ``compared`` otherwise."""
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
