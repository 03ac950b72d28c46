"""Who submits a result set: the companies, by the descriptions of their systems.

``companies`` says it of all entries of a round, ``is_same_submitter`` whether two entries have a
company in common; nothing else compares submitters.
"""

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import cache
from itertools import product, starmap
from typing import NamedTuple

from mlperf_pkg.infra.text import letters

_SEPARATORS = ("-", "_", "/", "&", ",", r"\band\b")  # of names that are known to be two
_WORD = r"[^\W_]+"


class SubmitterNames(NamedTuple):
    """How the submitter of an entry is named: by the folder, and in the description, if there."""

    folder: str
    described: str = ""


def spellings(names: Iterable[str]) -> dict[str, list[str]]:
    """Return names by the first that differs in nothing but case, spaces and punctuation."""
    by_letters: dict[str, list[str]] = {}
    for name in sorted({*names}):
        by_letters.setdefault(_key(name), []).append(name)
    return {alike[0]: alike for alike in by_letters.values()}


def companies(entries: Iterable[SubmitterNames]) -> dict[SubmitterNames, tuple[str, ...]]:
    """Return the companies that submit each entry of a round; each of them is a submitter.

    The company is the one that the description names, so that several folders may be of one. A
    name that only descriptions of one folder have is a spelling of the one that most of them have.
    An entry is joint if its description, or its folder where it has none, is ``A+B``, or ``A-B``
    (``A_B``, ``A & B``) where other entries name both; so are all entries of a folder ``A+B`` of
    which no description names several. A company is spelt like a folder of its own, if it has one.
    """
    times = Counter(entries)
    parts = _joint_parts(times)
    owners = _owners({entry: times[entry] for entry in times if not parts[entry]})
    submitters = {*owners.values(), *(_key(entry.folder) for entry in times)}
    for of_entry in parts.values():
        submitters.update(map(_key, of_entry))
    spelt = _spelt(parts, owners)
    submitted = {}
    for entry, of_entry in parts.items():
        keys = set(map(_key, of_entry))
        if not keys:
            own = _key(entry.described)
            keys = {own if own in submitters else owners[entry.folder]}
        submitted[entry] = tuple(sorted(spelt[key] for key in keys))
    return submitted


def _joint_parts(entries: Collection[SubmitterNames]) -> dict[SubmitterNames, list[str]]:
    """Return the companies that each joint entry names, none of the others."""
    named = _keys_of_all(entries)
    parts = {entry: _parts(entry.described or entry.folder, named) for entry in entries}
    joint_folders = {entry.folder for entry in entries if parts[entry]}
    for entry in entries:
        if entry.folder not in joint_folders:
            parts[entry] = _names_between(r"\+", entry.folder)
    return parts


def _key(name: str) -> str:
    """Return what all spellings of a name have in common."""
    return letters(name) or name


def _keys_of_all(entries: Iterable[SubmitterNames]) -> set[str]:
    """Return the keys of all names of a round, and of their parts between plus signs."""
    keys = set[str]()
    for entry in entries:
        for text in filter(None, entry):
            keys.update(map(_key, [text, *text.split("+")]))
    return keys


def _parts(text: str, named: Container[str]) -> list[str]:
    """Return the companies that a name of several has; none if it is the name of one."""
    parts = _names_between(r"\+", text)
    if parts:
        return parts
    for separator in _SEPARATORS:
        parts = _names_between(separator, text)
        if parts and all(_key(part) in named for part in parts):
            return parts
    return []


def _names_between(separator: str, text: str) -> list[str]:
    """Return the names between separators; none if they are not several."""
    names = [part.strip() for part in re.split(separator, text) if letters(part)]
    return names if len(set(map(_key, names))) > 1 else []


def _owners(single: Mapping[SubmitterNames, int]) -> dict[str, str]:
    """Return the key of the company that owns each folder with entries that are not joint.

    It is the name of the folder if any description has it, or if none names a submitter.
    """
    described: dict[str, Counter[str]] = {}
    for entry, number in single.items():
        names = described.setdefault(entry.folder, Counter())
        if entry.described:
            names[_key(entry.described)] += number
    owners = {}
    for folder, names in described.items():
        own = _key(folder)
        if names and own not in names:
            own = min(names, key=lambda name: (-names[name], name))
        owners[folder] = own
    return owners


def _spelt(
    parts: Mapping[SubmitterNames, Sequence[str]], owners: Mapping[str, str]
) -> dict[str, str]:
    """Return how a company is spelt: as a folder, the only folder that it owns, or described."""
    spelt: dict[str, str] = {}
    entries = sorted(parts)
    for entry in entries:
        spelt.setdefault(_key(entry.folder), entry.folder)
    joint_folders = {entry.folder for entry in entries if parts[entry]}
    owned = Counter(owners.values())
    for folder, key in sorted(owners.items()):
        is_of_another = _key(folder) in owners.values()
        if owned[key] == 1 and folder not in joint_folders and not is_of_another:
            spelt.setdefault(key, folder)
    for entry in entries:
        for name in (*parts[entry], entry.described):
            spelt.setdefault(_key(name), name)
    return spelt


# ---- two entries, perhaps of different rounds ---------------------------------------------


@cache
def is_same_submitter(one: SubmitterNames, other: SubmitterNames) -> bool:
    """Return whether two entries, perhaps of different rounds, have a company in common.

    Its name may be longer in one of them, or abbreviated.
    """
    if one == other:
        return True
    of_entry = companies((one, other))
    names = []
    for entry in (one, other):
        entry_names = {*of_entry[entry]}
        if len(entry_names) == 1:
            entry_names.add(entry.described or entry.folder)
        names.append(entry_names)
    return any(starmap(_are_related, product(*names)))


def are_same(name: str, other: str) -> bool:
    """Return whether two names differ in nothing but case, punctuation and order of words."""
    return sorted(_words(name)) == sorted(_words(other)) or letters(name) == letters(other)


def _are_related(name: str, other: str) -> bool:
    """Return whether one name begins a word of the other, abbreviates it, or has all its words.

    ``Habana`` is part of ``Intel-HabanaLabs``; ``Eta`` and ``Beta`` are two organisations.
    """
    one = letters(name)
    another = letters(other)
    words = _words(name)
    other_words = _words(other)
    is_part = set(words) <= set(other_words) or set(other_words) <= set(words)
    begins = _begins_within(one, other_words) or _begins_within(another, words)
    abbreviates = another == _initials(words) or one == _initials(other_words)
    return is_part or begins or abbreviates


def _begins_within(name: str, words: Sequence[str]) -> bool:
    """Return whether some of these words, together, begin with a name."""
    return any("".join(words[start:]).startswith(name) for start in range(len(words)))


def _words(name: str) -> list[str]:
    return re.findall(_WORD, name.lower())


def _initials(words: Iterable[str]) -> str:
    return "".join(word[0] for word in words)
