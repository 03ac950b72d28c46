"""Find the system that a run was made on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct

from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.infra.archive_names import stem_of
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.run.model import Run

OPEN = "open"
FOLDER_NAME = re.compile(r"\w[\w.+@,=&()-]*")
"""Names of systems, benchmarks and submitters, which name folders in git."""
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
    runs: Iterable[Run], systems: Sequence[SystemFile], config: Config, *, as_open: bool = False
) -> list[Mapped | Unmapped]:
    """Find the system of each run.

    These decide, in this order: the patterns and then the platforms of ``mlperf-pkg.yaml``; a
    folder on the log's path with the name of a system; a ``submission_platform`` that is the id,
    or else the ``system_name``, of a system; the only system of the division. The first of these
    that names any system decides, and of the systems it names those of the run's division count;
    with ``as_open`` those of the Open division, too, if there is none.
    """
    mapper = _Mapper({system.id: system for system in systems}, config, as_open=as_open)
    return [mapper.map(run) for run in runs]


class _Mapper:
    def __init__(self, systems: Mapping[str, SystemFile], config: Config, *, as_open: bool) -> None:
        self._systems = systems
        self._as_open = as_open
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
            fitting = self._fitting(named, run)
            if len(fitting) == 1:
                return Mapped(run, fitting[0], why)
            if named:
                return Unmapped(run, tuple(fitting or named), why)
        return Unmapped(run, (), "")

    def _fitting(self, systems: Iterable[SystemFile], run: Run) -> list[SystemFile]:
        candidates = list(systems)
        own = [system for system in candidates if system.division == run.division]
        if own or not self._as_open:
            return own
        return [system for system in candidates if system.division == OPEN]

    def _by_id(self, run: Run) -> list[str]:
        platform = run.text("platform").casefold()
        return [name for name in self._systems if name.casefold() == platform]

    def _by_name(self, run: Run) -> list[str]:
        platform = run.text("platform").casefold()
        names = {s.id: (s.system_name or "").casefold() for s in self._systems.values()}
        return [name for name, title in names.items() if title and title == platform]

    def _by_division(self, run: Run) -> list[str]:
        ids = [system.id for system in self._fitting(self._systems.values(), run)]
        return ids if len(ids) == 1 else []


def _by_patterns(run: Run, config: Config) -> list[str]:
    return [
        name
        for name, system in config.systems.items()
        if any(fnmatchcase(run.path, pattern) for pattern in system.logs)
    ]


def _by_platforms(run: Run, config: Config) -> list[str]:
    return [
        name
        for name, system in config.systems.items()
        if any(is_platform(run, pattern) for pattern in system.platforms)
    ]


def is_platform(run: Run, pattern: str) -> bool:
    """Return whether a pattern of ``platforms`` is the platform of a run, or matches it."""
    platform, folded_pattern = run.text("platform").casefold(), pattern.casefold()
    return platform == folded_pattern or fnmatchcase(platform, folded_pattern)


def likeliest(unmapped: Unmapped, systems: Sequence[SystemFile]) -> SystemFile | None:
    """Return the system whose id or name is most like the platform of a run.

    Of those that the run may belong to, if there are any, else of all of its division; None if
    no system has its division.
    """
    run = unmapped.run
    fitting = [s for s in unmapped.systems or systems if s.division == run.division]
    return max(fitting, key=lambda system: _likeness(run, system), default=None)


def _likeness(run: Run, system: SystemFile) -> float:
    """Return how similar the platform of a run and a name of a system are, at most 1."""
    platform = run.text("platform").casefold()
    names = [name.casefold() for name in (system.id, system.system_name) if name]
    return max(SequenceMatcher(None, platform, name).ratio() for name in names)


# ---- messages -----------------------------------------------------------------------------


def complaints(unmapped: Sequence[Unmapped], systems: Sequence[SystemFile]) -> Iterator[str]:
    """Yield a message for all logs with the same problem, with the lines to add to fix it."""
    unread = {system.id for system in systems if system.contents is None}  # reported as such
    for division in DIVISIONS:
        strangers = [u.run for u in unmapped if not u.systems and u.run.division == division]
        own = [s for s in systems if s.division == division]
        if strangers and (own or not unread):
            yield _no_system(strangers, own)
    groups: dict[_Problem, list[Unmapped]] = {}
    for candidate in unmapped:
        if unread.isdisjoint(ids := [system.id for system in candidate.systems]) and ids:
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


def _no_system(runs: Sequence[Run], systems: Sequence[SystemFile]) -> str:
    division = runs[0].division
    if not systems:
        return (
            f"{folded([run.path for run in runs])}: no system description of the {division}"
            f' division: add a file systems/<system>.json with "division": "{division}"'
        )
    lines = [f"no folder or platform names the {division} system of these logs:"]
    by_platform: dict[str, list[Run]] = {}
    for run in runs:
        by_platform.setdefault(run.text("platform"), []).append(run)
    for platform, group in sorted(by_platform.items()):
        logs = folded([run.path for run in group])
        lines.append(f"  submission_platform {platform!r}: {logs}")
    ids = ", ".join(system.id for system in systems)
    lines.append(f"Name it in {CONFIG_NAME}; the systems are {ids}. By the likeness of names:")
    return "\n".join([*lines, *_likely_lines(by_platform, systems)])


def _likely_lines(
    by_platform: Mapping[str, Sequence[Run]], systems: Sequence[SystemFile]
) -> Iterator[str]:
    """Yield the lines that give each platform the system most like it."""
    platforms: dict[str, list[str]] = {}
    for platform, runs in sorted(by_platform.items()):
        system = likeliest(Unmapped(runs[0], (), ""), systems) if platform else None
        platforms.setdefault((system or systems[0]).id, []).extend([platform] if platform else [])
    yield "  systems:"
    for name, values in platforms.items():
        yield f"    {name}:"
        yield (
            f"      platforms: {json.dumps(values)}  # or {_SOME_LOGS}"
            if values
            else (f"      {_SOME_LOGS}")
        )


def _other_division(first: Unmapped) -> str:
    system, division = first.systems[0], first.run.division
    if system.division not in DIVISIONS:
        return (
            f"by {_why(first)} they belong to {visible(system.path)}, whose division is"
            f" {visible(system.division or 'missing')}; expected {division}"
        )
    second = f"{system.id}-{division}"
    instead = "; or build them as Open with --as-open" if system.division == OPEN else ""
    return (
        f"runs of the {division} division, but by {_why(first)} they belong to"
        f" {visible(system.path)}, whose division is {system.division}. A"
        f" description has one division: a system that is submitted in both needs a second file,"
        f" such as systems/{second}.json with"
        f' "division": "{division}", and in {CONFIG_NAME} the logs of each:\n'
        f"{_lines([system.id, second])}{instead}"
    )


def _why(unmapped: Unmapped) -> str:
    platform = f" {unmapped.run.text('platform')!r}" if "platform" in unmapped.why else ""
    return f"{unmapped.why}{platform}"


def _lines(ids: Sequence[str]) -> str:
    """Return the lines to add to the configuration."""
    return "\n".join(["  systems:", *(f"    {name}:\n      {_SOME_LOGS}" for name in ids)])


def folded(paths: Sequence[str]) -> str:
    """Return the number of paths and the first of them: ``20 logs (a, b, c and 17 more)``."""
    shown, more = ", ".join(map(visible, paths[:_NAMED_LOGS])), len(paths) - _NAMED_LOGS
    if len(paths) == 1:
        return f"1 log ({shown})"
    return f"{len(paths)} logs ({shown}{f' and {more} more' if more > 0 else ''})"
