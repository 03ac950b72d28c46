"""Find the system that a run was made on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct

from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.infra.archive_names import stem_of
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.run.model import Run

_NAMED_LOGS = 3
_SOME_LOGS = 'logs: ["logs/..."]'

_Match = Callable[[Run], Iterable[str]]


class Mapped(Struct, frozen=True):
    """A run with its system, and the reason for it."""

    run: Run
    system: SystemFile
    why: str


class Unmapped(Struct, frozen=True):
    """A run that fits no system of its division, or more than one (``systems``, for ``why``)."""

    run: Run
    systems: tuple[SystemFile, ...]
    why: str


def map_runs(
    runs: Iterable[Run], systems: Sequence[SystemFile], config: Config
) -> list[Mapped | Unmapped]:
    """Find the system of each run.

    These decide, in this order: the patterns and then the platforms of ``mlperf-pkg.yaml``; a
    folder on the log's path with the name of a system; a ``submission_platform`` that is the id,
    or else the ``system_name``, of a system; the only system of the division. The first of these
    that names any system decides, and of the systems it names those of the run's division count.
    """
    mapper = _Mapper({system.id: system for system in systems}, config)
    return [mapper.map(run) for run in runs]


class _Mapper:
    def __init__(self, systems: Mapping[str, SystemFile], config: Config) -> None:
        self._systems = systems
        self._rules: tuple[tuple[str, _Match], ...] = (
            (f"a pattern in {CONFIG_NAME}", lambda run: _by_patterns(run, config)),
            (f"a platform in {CONFIG_NAME}", lambda run: _by_platforms(run, config)),
            ("its folder", lambda run: map(stem_of, run.path.split("/")[:-1])),
            ("submission_platform", self._by_id),
            ("submission_platform, a system_name", self._by_name),
            ("the only system of the division", self._by_division),
        )

    def map(self, run: Run) -> Mapped | Unmapped:
        for why, matching in self._rules:
            names = dict.fromkeys(name for name in matching(run) if name in self._systems)
            named = [self._systems[name] for name in names]
            fitting = [system for system in named if system.division == run.division]
            if len(fitting) == 1:
                return Mapped(run, fitting[0], why)
            if named:
                return Unmapped(run, tuple(fitting or named), why)
        return Unmapped(run, (), "")

    def _by_id(self, run: Run) -> list[str]:
        platform = run.text("platform").casefold()
        return [name for name in self._systems if name.casefold() == platform]

    def _by_name(self, run: Run) -> list[str]:
        platform = run.text("platform").casefold()
        names = {s.id: (s.system_name or "").casefold() for s in self._systems.values()}
        return [name for name, title in names.items() if title and title == platform]

    def _by_division(self, run: Run) -> list[str]:
        ids = [s.id for s in self._systems.values() if s.division == run.division]
        return ids if len(ids) == 1 else []


def _by_patterns(run: Run, config: Config) -> list[str]:
    return [
        name
        for name, system in config.systems.items()
        if any(fnmatchcase(run.path, pattern) for pattern in system.logs)
    ]


def _by_platforms(run: Run, config: Config) -> list[str]:
    platform = run.text("platform").casefold()
    return [
        name
        for name, system in config.systems.items()
        if platform in map(str.casefold, system.platforms)
    ]


# ---- messages -----------------------------------------------------------------------------


def complaints(unmapped: Sequence[Unmapped], systems: Sequence[SystemFile]) -> Iterator[str]:
    """Yield a message for all logs with the same problem, with the lines to add to fix it."""
    for division in DIVISIONS:
        strangers = [u.run for u in unmapped if not u.systems and u.run.division == division]
        if strangers:
            yield _no_system(strangers, [s.id for s in systems if s.division == division])
    groups: dict[_Problem, list[Unmapped]] = {}
    for candidate in filter(lambda candidate: candidate.systems, unmapped):
        groups.setdefault(_problem(candidate), []).append(candidate)
    for group in groups.values():
        yield f"{folded([candidate.run.path for candidate in group])}: {_text(group[0])}"


class _Problem(NamedTuple):
    """What messages about unmapped runs have in common if they are one message."""

    ids: tuple[str, ...]
    why: str
    platform: str
    division: str


def _problem(unmapped: Unmapped) -> _Problem:
    run, ids = unmapped.run, tuple(system.id for system in unmapped.systems)
    return _Problem(ids, unmapped.why, run.text("platform"), run.division)


def _text(first: Unmapped) -> str:
    if first.systems[0].division != first.run.division:
        return _other_division(first)
    ids = [system.id for system in first.systems]
    return (
        f"by {_why(first)} they may belong to {' or '.join(ids)}."
        f" Assign the logs in {CONFIG_NAME}:\n{_lines(ids)}"
    )


def _no_system(runs: Sequence[Run], ids: Sequence[str]) -> str:
    division = runs[0].division
    if not ids:
        return (
            f"{folded([run.path for run in runs])}: no system description of the {division}"
            f' division: add a file systems/<system>.json with "division": "{division}"'
        )
    lines = [f"no folder or platform names the {division} system of these logs:"]
    platforms = sorted({run.text("platform") for run in runs})
    for platform in platforms:
        logs = folded([run.path for run in runs if run.text("platform") == platform])
        lines.append(f"  submission_platform {platform!r}: {logs}")
    named = next(filter(None, platforms), None)
    setting = f"platforms: [{json.dumps(named)}]  # or {_SOME_LOGS}" if named else _SOME_LOGS
    lines.append(f"Name it in {CONFIG_NAME}; the systems are {', '.join(ids)}:")
    return "\n".join([*lines, _lines(ids[:1], setting)])


def _other_division(first: Unmapped) -> str:
    system, division = first.systems[0], first.run.division
    second = f"{system.id}-{division}"
    return (
        f"runs of the {division} division, but by {_why(first)} they belong to {system.path}, whose"
        f" division is {system.division or 'missing'}. A description has one division: a system"
        f" that is submitted in both needs a second file, such as systems/{second}.json with"
        f' "division": "{division}", and in {CONFIG_NAME} the logs of each:\n'
        f"{_lines([system.id, second])}"
    )


def _why(unmapped: Unmapped) -> str:
    platform = f" {unmapped.run.text('platform')!r}" if "platform" in unmapped.why else ""
    return f"{unmapped.why}{platform}"


def _lines(ids: Sequence[str], setting: str = _SOME_LOGS) -> str:
    """Return the lines to add to the configuration."""
    return "\n".join(["  systems:", *(f"    {name}:\n      {setting}" for name in ids)])


def folded(paths: Sequence[str]) -> str:
    """Return the number of paths and the first of them: ``20 logs (a, b, c and 17 more)``."""
    shown, more = ", ".join(map(visible, paths[:_NAMED_LOGS])), len(paths) - _NAMED_LOGS
    if len(paths) == 1:
        return f"1 log ({shown})"
    return f"{len(paths)} logs ({shown}{f' and {more} more' if more > 0 else ''})"
