"""Private ids: unique names of rows that reveal nothing about them.

The ids of a round are in one file, by row. Its entries have the form of ``privateid.json`` of the
official summarizer, which writes one file per system:

    {"ACME/dgx": {"private_id": "table-sodium-kilo-orange"}}

An entry is never changed or removed: a row that is withdrawn keeps its id, and has it again when it
is submitted again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import count
from operator import xor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.json_values import MAX_BYTES, JsonSyntaxError, parse_json, read_json
from mlperf_pkg.infra.paths import read_file

if TYPE_CHECKING:
    from mlperf_pkg.commands.results.systems import System

FIELD = "private_id"
_LONGEST = 100  # characters of an id
_HASHED = (
    "division",
    "submitter",
    "system_name",
    "number_of_nodes",
    "host_processor_model_name",
    "host_processors_per_node",
    "accelerator_model_name",
    "accelerators_per_node",
    "framework",
)
"""Fields of a description from which the official summarizer makes an id."""


class PrivateIds(Struct, frozen=True):
    """The entries of a file of ids, by row; ``exists`` says whether the file exists."""

    path: Path
    entries: Mapping[str, Mapping[str, Any]]
    exists: bool = False

    def __getitem__(self, key: str) -> str:
        """Return the id of a row."""
        private_id: str = self.entries[key][FIELD]
        return private_id

    def extended(self, systems: Iterable[System]) -> PrivateIds:
        """Return these ids and those of new systems, whose order does not matter."""
        new = sorted((s for s in systems if s.key not in self.entries), key=lambda s: s.key)
        entries = dict(self.entries)
        taken = {self[key] for key in entries}
        # The ids of trees come first, so that new ids differ from them.
        for system in sorted(new, key=lambda system: own_id(system) is None):
            private_id = next(name for name in _choices(system) if name not in taken)
            taken.add(private_id)
            entries[system.key] = {FIELD: private_id}
        return PrivateIds(self.path, entries, self.exists)

    def text(self) -> str:
        """Return the contents of the file.

        Raises:
            UserError: they are too large.
        """
        text = json.dumps(self.entries, indent=4, sort_keys=True) + "\n"
        if len(text) > MAX_BYTES:
            raise UserError(f"{self.path}: more than {MAX_BYTES} bytes of private ids")
        return text

    def write(self) -> None:
        """Write the file, completely or not at all.

        Raises:
            UserError: the file cannot be written, is too large, or was created since it was read.
        """
        write_whole(self.path, self.text(), replace=self.exists)


def read_ids(path: Path) -> PrivateIds:
    """Return the ids in a file, empty if it does not exist.

    Raises:
        UserError: the file cannot be read or is not a file of ids.
    """
    try:
        document = read_json(read_file(path, MAX_BYTES))
    except FileNotFoundError:
        return PrivateIds(path, {})
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except JsonSyntaxError as error:
        raise UserError(f"{path}:{error.line}: {error.message}") from error
    for problem in document.problems:
        raise UserError(f"{path}:{problem.line}: {problem.message}")
    entries: dict[str, Any] = document.value if isinstance(document.value, dict) else {"": None}
    rows: dict[str, str] = {}
    for key, entry in entries.items():
        private_id = _usable(entry.get(FIELD)) if isinstance(entry, dict) else None
        line = document.line([key])
        if private_id is None:
            raise UserError(
                f'{path}:{line}: expected private ids by row: {{"ACME/dgx": {{"{FIELD}": "..."}}}}'
            )
        if private_id in rows:
            raise UserError(f"{path}:{line}: {key} has the private id of {rows[private_id]}")
        rows[private_id] = key
    return PrivateIds(path, entries, exists=True)


def own_id(system: System) -> str | None:
    """Return the id in the ``privateid.json`` of a system; None if it is not usable."""
    try:
        contents = parse_json(system.folder.private_id or "")
    except ValueError:
        return None
    return _usable(contents.get(FIELD)) if isinstance(contents, dict) else None


def _usable(private_id: Any) -> str | None:
    """Return an id if it can be shown and compared, else None."""
    if not isinstance(private_id, str) or not private_id.isprintable():
        return None
    return private_id if 0 < len(private_id.strip()) <= len(private_id) <= _LONGEST else None


def _choices(system: System) -> Iterator[str]:
    """Yield ids, the preferred one first.

    The official summarizer adds the name of the system if an earlier system has the same text.
    """
    if own := own_id(system):
        yield own
    description = system.description
    text = "".join(str(description.get(n, "")) for n in _HASHED) if description else system.key
    yield in_words(text)
    text += system.name
    yield in_words(text)
    yield from (in_words(f"{text}{number}") for number in count(2))


_LIST = """
    ack alabama alanine alaska alpha angel apart april arizona arkansas artist asparagus aspen
    august autumn avocado bacon bakerloo batman beer berlin beryllium black blossom blue
    bluebird bravo bulldog burger butter california carbon cardinal carolina carpet cat
    ceiling charlie chicken coffee cola cold colorado comet connecticut crazy cup dakota
    december delaware delta diet don double early earth east echo edward eight eighteen eleven
    emma enemy equal failed fanta fifteen fillet finch fish five fix floor florida football
    four fourteen foxtrot freddie friend fruit gee georgia glucose golf green grey hamper
    happy harry hawaii helium high hot hotel hydrogen idaho illinois india indigo ink iowa
    island item jersey jig johnny juliet july jupiter kansas kentucky kilo king kitten lactose
    lake lamp lemon leopard lima lion lithium london louisiana low magazine magnesium maine
    mango march mars maryland massachusetts may mexico michigan mike minnesota mirror
    mississippi missouri mobile mockingbird monkey montana moon mountain muppet music nebraska
    neptune network nevada nine nineteen nitrogen north november nuts october ohio oklahoma
    one orange oranges oregon oscar oven oxygen papa paris pasta pennsylvania pip pizza pluto
    potato princess purple quebec queen quiet red river robert robin romeo rugby sad salami
    saturn september seven seventeen shade sierra single sink six sixteen skylark snake social
    sodium solar south spaghetti speaker spring stairway steak stream summer sweet table tango
    ten tennessee tennis texas thirteen three timing triple twelve twenty two uncle undress
    uniform uranus utah vegan venus vermont victor video violet virginia washington west
    whiskey white william winner winter wisconsin wolfram wyoming xray yankee yellow zebra
    zulu
"""
_WORDS = tuple(_LIST.split())
_NUMBER = 4


def in_words(text: str) -> str:
    """Return the id of a string, such as ``table-sodium-kilo-orange``."""
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()
    size = len(digest) // _NUMBER
    parts = (digest[start : start + size] for start in range(0, len(digest), size))
    return "-".join(_WORDS[reduce(xor, part)] for part in parts)
