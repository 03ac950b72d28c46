"""The software of a submission: differences between its systems, and older versions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.commands.review.subject import Subject, grouped
from mlperf_pkg.findings import word
from mlperf_pkg.infra.text import letters
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.published.results import PublishedResults, usable_results
from mlperf_pkg.rulebook.model import is_round_name, version_of

_MOST_KEYS = 4
_TEXT = ""  # the part of a stack that is a string
_VERSION = re.compile(
    r"([A-Za-z][A-Za-z _+-]{0,60}?)[ ,:_-]{0,4}v?([0-9]{1,6}(?:\.[0-9]{1,6}){1,4})"
)
_MOST_TEXT = 500  # characters of a description in which versions are looked for


def software(subject: Subject) -> Iterator[str]:
    """Yield the points to look at in the software of a submission."""
    if not subject.systems:
        return
    frameworks = [(_text(system, "framework") or "none", system.id) for system in subject.systems]
    yield f"framework: {grouped(frameworks)}"
    yield from _differing_stack(subject.systems)
    yield from _older(subject)


def _text(system: SystemFile, field: str) -> str:
    value = (system.contents or {}).get(field)
    return " ".join(value.split())[:_MOST_TEXT] if isinstance(value, str) else ""


# ---- within the submission ----------------------------------------------------------------


def _differing_stack(systems: Iterable[SystemFile]) -> Iterator[str]:
    """Yield the parts of the software stack that have several versions, in one line."""
    by_part: dict[str, list[tuple[str, str]]] = {}
    stacks = {system.id: _stack(system) for system in systems}
    texts = [set(stack[_TEXT]) for stack in stacks.values() if _TEXT in stack]
    common = set.intersection(*texts) if texts else set()
    for name, stack in stacks.items():
        for part, versions in stack.items():
            own = ", ".join(version for version in versions if version not in common)
            by_part.setdefault(part, []).append((own or "none of these", name))
    differing = [
        f"{part} {grouped(versions)}".strip()
        for part, versions in by_part.items()
        if len({version for version, _ in versions}) > 1
    ]
    if differing:
        more = len(differing) - _MOST_KEYS
        rest = f"; {more} more" if more > 0 else ""
        yield f"differs between systems: {'; '.join(differing[:_MOST_KEYS])}{rest}"


def _stack(system: SystemFile) -> Mapping[str, list[str]]:
    """Return the versions of each part; a stack in one string is one part without a name."""
    stack = (system.contents or {}).get("other_software_stack")
    versions: dict[str, list[str]] = {}
    for item in stack if isinstance(stack, list) else [stack]:
        if isinstance(item, dict):
            versions.update({str(key): [_version(value)] for key, value in item.items() if value})
        elif item:
            versions[_TEXT] = [*versions.get(_TEXT, ()), *_version(item).split(", ")]
    return versions


def _version(value: Any) -> str:
    return " ".join((value if isinstance(value, str) else word(value)).split())[:_MOST_TEXT]


# ---- since the previous round -------------------------------------------------------------


def _older(subject: Subject) -> Iterator[str]:
    """Yield the frameworks that are older than the submitter's in its last published round."""
    previous = previous_sets(subject)
    before = _newest(row.framework for row in previous)
    now = _newest(_text(system, "framework") for system in subject.systems)
    for name, (version, text) in now.items():
        if name in before and version < before[name][0]:
            yield f"older than in {previous[0].round}: {text}; before {before[name][1]}"


def previous_sets(subject: Subject) -> list[PublishedSet]:
    """Return the sets of the last round before this one in which the submitter is published."""
    results = usable_results()
    if results is None or not subject.sets:
        return []
    round_ = subject.sets[0].context.round
    rows = _by_submitter(results, round_.usage).get(letters(subject.name), ())
    earlier = [row for row in rows if version_of(row.round) < round_.version]
    last = max((version_of(row.round) for row in earlier), default=())
    return [row for row in earlier if version_of(row.round) == last]


@lru_cache(maxsize=2)
def _by_submitter(results: PublishedResults, usage: str) -> Mapping[str, list[PublishedSet]]:
    rows: dict[str, list[PublishedSet]] = {}
    for row in results.sets:
        if row.usage == usage and is_round_name(row.round):
            rows.setdefault(letters(row.submitter), []).append(row)
    return rows


def _newest(texts: Iterable[str]) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the newest version of each name in strings, with the name and version as written."""
    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for text in dict.fromkeys(texts):
        for match in _VERSION.finditer(text):
            version = version_of(match[2])
            if version > newest.get(letters(match[1]), ((), ""))[0]:
                newest[letters(match[1])] = (version, match[0])
    return newest
