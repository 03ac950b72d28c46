"""The result set that a log belongs to: submitter, system, benchmark, division, scaling.

These are the identity of a set, whatever folders its logs are in. The system is found by
evidence; if the evidence is not conclusive, it stays open.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.infra.source import stem_of, words_of_lines
from mlperf_pkg.infra.text import letters, visible
from mlperf_pkg.submission.model import SCALINGS, set_name

OPEN = "open"
WEAK = "weak"
_UNKNOWN = "unknown"
_DIVISION = re.compile(r"[-_ .]?(closed|open)$", re.IGNORECASE)  # at the end of an id
_COUNTED = re.compile(r"(\d{1,9}) ?x ?(?=[^\W\d])")  # 8xNVIDIA DGX A100


class Described(Struct, frozen=True):
    """The identity of a described system; ``accelerators`` are those of all nodes."""

    id: str
    name: str
    division: str
    nodes: int | None = None
    accelerators: int | None = None


class Stated(Struct, frozen=True):
    """What a log says about its identity; ``place`` is its path from the workspace.

    ``lines`` are its first and last line in a file of several runs, with which ``place`` ends.
    ``nodes`` and ``accelerators`` (of all nodes) are None if the log does not state them.
    """

    place: str
    usage: str
    round: str
    benchmark: str
    division: str
    platform: str
    organization: str
    nodes: int | None = None
    accelerators: int | None = None
    lines: tuple[int, int] | None = None

    @property
    def file(self) -> str:
        """The path of its file from the workspace."""
        return self.place.removesuffix(words_of_lines(self.lines))

    @property
    def count(self) -> int | None:
        """The number of nodes or accelerators before the name of the platform."""
        match = _COUNTED.match(self.platform)
        return int(match[1]) if match else None

    @property
    def platforms(self) -> tuple[str, str]:
        """The platform, and the platform without the number before it."""
        return self.platform, _COUNTED.sub("", self.platform, count=1)

    @property
    def platform_letters(self) -> str:
        """The letters and digits of the platform without that number; empty if none is named."""
        return letters(self.platforms[1]) if self.names_platform else ""

    @property
    def names_platform(self) -> bool:
        """Whether it names a platform; reference implementations log a placeholder."""
        return bool(self.platform) and not is_placeholder(self.platform)

    @property
    def scaling(self) -> str | None:
        """The scaling that a folder names, else ``strong``; None outside of MLPerf HPC."""
        if self.usage != "hpc":
            return None
        folders = self.place.split("/")[:-1]
        return next((name for name in folders if name in SCALINGS), SCALINGS[0])

    def fits(self, system: Described) -> bool:
        """Return whether all numbers in the log are those of a system; False if there are none.

        A log of weak scaling is of one of several models, each of which uses a part of the nodes.
        """
        if self.states_nothing or not system.nodes:
            return False
        count = self.count
        if count is not None and count not in (system.nodes, system.accelerators):
            return False
        if self.scaling == WEAK:
            if not self.nodes:
                return True
            return self.nodes < system.nodes and system.nodes % self.nodes == 0
        if self.nodes not in (None, system.nodes):
            return False
        return self.accelerators in (None, system.accelerators)

    @property
    def states_nothing(self) -> bool:
        """Whether it states no number of nodes or accelerators."""
        return self.nodes is None and self.accelerators is None and self.count is None


class LogGroup(Struct, frozen=True):
    """The logs of one result set, the id of their ``system``, and ``why`` it is that system.

    If the system is unknown, ``candidates`` are the ids of possible ones, perhaps of the other
    division; ``of_other_division`` is the number of the logs of that platform and benchmark that
    name the other division.
    """

    logs: tuple[Stated, ...]
    system: str | None
    candidates: tuple[str, ...]
    why: str
    of_other_division: int = 0

    @property
    def first(self) -> Stated:
        """The first log."""
        return self.logs[0]

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of the logs, from the workspace."""
        return tuple(sorted({log.place.rpartition("/")[0] or "." for log in self.logs}))


def is_placeholder(text: str) -> bool:
    """Return whether text is a placeholder, as reference implementations log it."""
    return "PLACEHOLDER" in text.upper()


def set_id(
    submitter: str | None,
    system: str | None,
    benchmark: str,
    division: str | None,
    scaling: str | None = None,
) -> str:
    """Return the identity of a result set: ``tinycorp/tinybox_red/resnet/closed``."""
    names = []
    for part in (submitter, system, benchmark, (division or "").lower()):
        names.append(visible(part.replace("/", "_")) if part else _UNKNOWN)
    if scaling:
        names.append(scaling)
    return "/".join(names)


def groups_of(
    logs: Iterable[Stated], systems: Sequence[Described], config: Config, *, as_open: bool = False
) -> list[LogGroup]:
    """Group logs into result sets; those without a benchmark are in none.

    The evidence for a system is, in this order: the place of the log in a submission tree;
    ``systems:`` of ``mlperf-pkg.yaml``; a folder with the name of a description;
    ``submission_platform``, if it is the name of a description or, otherwise, similar to a name or
    a ``system_name``; the nodes and accelerators that the log states, and of several systems with
    these the only one whose name has the words of the platform. The first evidence that names a
    system decides. Of the systems that it names, only those of the log's division count; if there
    are none, with ``as_open``, those of the Open division. Of several, the one with these numbers
    counts.
    """
    finder = _SystemFinder(systems, config, as_open=as_open)
    identified = [log for log in logs if log.benchmark]
    named = {log.place: finder.by_name(log) for log in identified}
    claims = _claims(identified, named)
    only = _only_names(identified)
    groups: dict[_Key, list[tuple[Stated, _Evidence]]] = {}
    for log in identified:
        evidence = named[log.place] or finder.by_numbers(log, claims)
        key = _key(log, evidence, only)
        groups.setdefault(key, []).append((log, evidence))
    sets = [_group(key, members) for key, members in sorted(groups.items(), key=_order)]
    return list(_with_other_divisions(sets))


def _with_other_divisions(groups: Sequence[LogGroup]) -> Iterator[LogGroup]:
    """Yield groups with the number of logs that differ from theirs in nothing but the division."""
    logs = Counter(_same_but_division(log) for group in groups for log in group.logs)
    of_division = Counter(
        (_same_but_division(log), log.division) for group in groups for log in group.logs
    )
    for group in groups:
        same = _same_but_division(group.first)
        number = logs[same] - of_division[same, group.first.division]
        yield replace(group, of_other_division=number)


def _same_but_division(log: Stated) -> tuple[str | None, ...]:
    return log.usage, log.round, log.benchmark, log.scaling, log.platform_letters


class _Evidence(NamedTuple):
    """The ids of the systems that evidence names; ``is_sure`` if only one of them is possible."""

    why: str
    ids: tuple[str, ...]
    is_sure: bool


class _Key(NamedTuple):
    """What the logs of a set have in common; ``others`` is empty if the system is known."""

    usage: str
    round: str
    system: str | None
    benchmark: str
    scaling: str | None
    others: tuple[object, ...]


def _key(log: Stated, evidence: _Evidence, only: Mapping[str, str]) -> _Key:
    """Return the key of a log; a missing name is the only one in the logs of its benchmark."""
    system = None
    others: tuple[object, ...] = ()
    if evidence.is_sure:
        system = evidence.ids[0]
    else:
        platform = log.platform_letters or only[f"{log.benchmark} platform"]
        organization = letters(log.organization) or only[f"{log.benchmark} organization"]
        numbers = (log.nodes, log.accelerators, log.count)
        others = (log.division, platform, organization, numbers, evidence.ids)
    return _Key(log.usage, log.round, system, log.benchmark, log.scaling, others)


def _order(group: tuple[_Key, list[tuple[Stated, _Evidence]]]) -> tuple[str, ...]:
    """Return the key by which groups are sorted."""
    key, members = group
    first, _ = members[0]
    name = key.system or first.platform
    return (name, key.scaling or "", key.benchmark, first.division, first.place)


def _group(key: _Key, members: Sequence[tuple[Stated, _Evidence]]) -> LogGroup:
    logs = []
    reasons = set()
    for log, evidence in members:
        logs.append(log)
        reasons.add(evidence.why)
    candidates = () if key.system else members[0][1].ids
    return LogGroup(tuple(logs), key.system, candidates, ", ".join(sorted(reasons)))


def _only_names(logs: Iterable[Stated]) -> dict[str, str]:
    """Return the platform and organisation of each benchmark; empty if it has several."""
    names: dict[str, set[str]] = {}
    for log in logs:
        platforms = names.setdefault(f"{log.benchmark} platform", set())
        platforms.add(log.platform_letters)
        organizations = names.setdefault(f"{log.benchmark} organization", set())
        organizations.add(letters(log.organization))
    only = {}
    for key, values in names.items():
        values.discard("")
        only[key] = min(values) if len(values) == 1 else ""
    return only


def _claims(logs: Iterable[Stated], named: Mapping[str, _Evidence | None]) -> dict[str, set[str]]:
    """Map systems to the platforms of logs that name them: other platforms are other systems."""
    claims: dict[str, set[str]] = {}
    for log in logs:
        evidence = named[log.place]
        if evidence and evidence.is_sure and log.names_platform:
            claims.setdefault(evidence.ids[0], set()).add(log.platform_letters)
    return claims


class _SystemFinder:
    """Finds the system of a log."""

    def __init__(self, systems: Sequence[Described], config: Config, *, as_open: bool) -> None:
        self._systems = {system.id: system for system in systems}
        self._config = config
        self._as_open = as_open
        self._by_id: dict[str, list[str]] = {}
        self._by_id_letters: dict[str, list[str]] = {}
        self._by_any_letters: dict[str, list[str]] = {}
        self._words: dict[str, set[str]] = {}
        for system in systems:
            id_ = system.id
            names = {id_, _DIVISION.sub("", id_)} - {""}  # of both divisions, if each has a file
            id_letters = set(map(letters, names))
            for name in names:
                self._by_id.setdefault(name.casefold(), []).append(id_)
            for text in id_letters - {""}:
                self._by_id_letters.setdefault(text, []).append(id_)
            for text in id_letters.union([letters(system.name)]) - {""}:
                self._by_any_letters.setdefault(text, []).append(id_)
            self._words[id_] = _runs_of_words(id_) | _runs_of_words(system.name)

    def by_name(self, log: Stated) -> _Evidence | None:
        """Return the first evidence that names any system; None if none does."""
        for why, ids in self._names(log):
            named = [self._systems[id_] for id_ in dict.fromkeys(ids) if id_ in self._systems]
            if not named:
                continue
            possible = self._of_division(named, log)
            if len(possible) > 1:
                possible = _fitting(possible, log) or possible
            candidates = tuple(system.id for system in possible or named)
            return _Evidence(why, candidates, len(possible) == 1)
        return None

    def by_numbers(self, log: Stated, claims: Mapping[str, set[str]]) -> _Evidence:
        """Return the systems that fit the numbers that a log states.

        A system that logs of another platform name does not fit. A log that states neither a number
        nor a platform fits all systems. Of several systems, the only one counts whose name has the
        words of the platform.
        """
        platform = log.platform_letters
        possible = []
        of_division = self._of_division(self._systems.values(), log)
        for system in of_division:
            other_platforms = claims.get(system.id, set()) - {platform}
            if not platform or not other_platforms:
                possible.append(system)
        why = "the division"
        if not log.states_nothing or log.names_platform:
            why = "the number of nodes or accelerators"
            possible = _fitting(possible, log)
        named = [system for system in of_division if platform in self._words[system.id]]
        if len(possible) > 1 and len(named) == 1 and named[0] in possible:
            why = f"{why}, and words of submission_platform (inferred)"
            possible = named
        return _Evidence(why, tuple(system.id for system in possible), len(possible) == 1)

    def _names(self, log: Stated) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield each kind of evidence with the ids that it names, which may be of no system."""
        folder, _, _ = log.place.rpartition("/")
        name = set_name(folder)
        if name:
            yield "the place in the submission tree", [name.system]
        yield f"a pattern in {CONFIG_NAME}", self._configured(log, "logs")
        yield f"a platform in {CONFIG_NAME}", self._configured(log, "platforms")
        folders = [letters(stem_of(part)) for part in folder.split("/")]
        yield "the folder name", _named(self._by_id_letters, folders)
        platforms = []
        if log.names_platform:
            platforms = [platform.casefold() for platform in log.platforms]
        yield "submission_platform", _named(self._by_id, platforms)
        alike = _named(self._by_any_letters, map(letters, platforms))
        yield "a similar submission_platform", alike

    def _configured(self, log: Stated, field: str) -> Iterator[str]:
        """Yield the systems of which the configuration has a pattern that matches a log."""
        for id_, system in self._config.systems.items():
            if any(matches(log, field, pattern) for pattern in getattr(system, field)):
                yield id_

    def _of_division(self, systems: Iterable[Described], log: Stated) -> list[Described]:
        candidates = list(systems)
        same = [system for system in candidates if system.division == log.division]
        if self._as_open and not same:
            return [system for system in candidates if system.division == OPEN]
        return same


def _runs_of_words(name: str) -> set[str]:
    """Return the letters of all words of a name that follow each other, but for plain numbers."""
    words = re.findall(r"[^\W_]+", name.lower())
    runs: set[str] = set()
    for start in range(len(words)):
        for end in range(start, len(words)):
            runs.add("".join(words[start : end + 1]))
    return {run for run in runs if not run.isdecimal()}


def _named(index: Mapping[str, Sequence[str]], names: Iterable[str]) -> list[str]:
    return [id_ for name in names for id_ in index.get(name, ())]


def _fitting(systems: Iterable[Described], log: Stated) -> list[Described]:
    """Return the systems that fit the numbers of a log; prefer those with ``count`` nodes."""
    fitting = [system for system in systems if log.fits(system)]
    return [system for system in fitting if system.nodes == log.count] or fitting


def matches(log: Stated, field: str, pattern: str) -> bool:
    """Return whether a pattern under ``systems:`` matches a log: its path, or its platform."""
    if field == "logs":
        return fnmatchcase(log.place, pattern) or fnmatchcase(log.file, pattern)
    platform = log.platform.casefold()
    folded = pattern.casefold()
    return platform == folded or fnmatchcase(platform, folded)


def log_patterns(paths: Iterable[str], foreign: Iterable[str]) -> Iterator[str]:
    """Yield patterns under ``systems:`` that match these paths of logs, and no ``foreign`` ones.

    They are as few as folders and the common beginnings of names allow.
    """
    by_folder: dict[str, list[str]] = {}
    for path in sorted(paths):
        folder = path[: path.rfind("/") + 1]
        by_folder.setdefault(folder, []).append(path)
    others = list(foreign)
    for folder, logs in by_folder.items():
        starts = [folder, _common_start(logs)] if len(logs) > 1 else []
        patterns = [f"{_escaped(start)}*" for start in starts if start]
        suitable = (pattern for pattern in patterns if not _matches_any(others, pattern))
        pattern = next(suitable, None)
        if pattern:
            yield pattern
        else:
            yield from map(_escaped, logs)


def _escaped(path: str) -> str:
    """Return a pattern that matches this path alone; importing glob for it takes a moment."""
    return re.sub(r"([*?[])", r"[\1]", path)


def _common_start(texts: Sequence[str]) -> str:
    """Return the beginning that all texts have, which are sorted."""
    length = 0
    for first, last in zip(texts[0], texts[-1], strict=False):
        if first != last:
            break
        length += 1
    return texts[0][:length]


def _matches_any(paths: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(path, pattern) for path in paths)
