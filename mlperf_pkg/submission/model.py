"""The contents of a folder as values: submissions, result sets, logs. No verdicts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import AnyPath, Entry, ListedPath, Location, below
from mlperf_pkg.infra.source import Source, source_of
from mlperf_pkg.submission.params import Params

if TYPE_CHECKING:
    from mlperf_pkg.infra.streams import Compression


OUTPUT = "submissions"
"""The folder of a workspace into which submissions are built."""


class Place(Struct, frozen=True):
    """A file or folder: its location, and its ``label``, the path that reports show.

    A file with a ``compression`` is a log that is read decompressed. ``size`` is the size of a
    file in bytes, if the listing of its folder has it.
    """

    location: Location
    label: str
    compression: Compression | None = None
    size: int | None = None

    def child(self, name: str, size: int | None = None) -> Place:
        """Return the entry ``name`` of this folder; ``name`` may be a path below it."""
        label = f"{self.label}/{name}" if self.label else name
        return Place(below(self.location, name), label, None, size)

    @property
    def path(self) -> AnyPath:
        """Its location as an object with the methods of a path."""
        return Path(self.location) if isinstance(self.location, str) else self.location

    @property
    def name(self) -> str:
        """The last part of its path."""
        location = self.location
        return location.rpartition("/")[2] if isinstance(location, str) else location.name

    @property
    def folder(self) -> Place:
        """The folder that contains it."""
        path = self.location
        above = os.path.dirname(path) or "." if isinstance(path, str) else path.parent  # noqa: PTH120
        return Place(above, self.label.rpartition("/")[0])

    @property
    def labels_above(self) -> Iterator[str]:
        """The labels of its parent folders, innermost first."""
        label = self.label
        while label:
            label = label.rpartition("/")[0]
            yield label

    @property
    def source(self) -> Source:
        """The file to be read."""
        return source_of(self.location, self.label, self.compression, self.size)

    @property
    def local(self) -> Path:
        """The path on this machine.

        Raises:
            UserError: the file is in an object store or in an archive.
        """
        if isinstance(self.location, ListedPath):
            where = self.location.whereabouts
            raise UserError(f"{self.location}: is in {where}; expected a path of this machine")
        return Path(self.location)


class PowerFolder(Struct, frozen=True):
    """The measurements of a result set: ``power/<result>/{node_<j>,sw_<k>}.txt``.

    ``results`` maps each of its entries to the names in it, None if the entry is not a folder.
    ``results`` itself is None if ``power`` is a file.
    """

    place: Place
    results: Mapping[str, tuple[str, ...] | None] | None

    def log_paths(self, log: str) -> list[str]:
        """Return the paths, within this folder, of the power logs of the run with this ``log``."""
        result = log.partition(".")[0]
        names = (self.results or {}).get(result) or ()
        return [f"{result}/{name}" for name in names if is_power_log(name)]


class ResultSet(Struct, frozen=True):
    """The runs of one system and benchmark: ``results/<system>/<benchmark>/result_*.txt``.

    ``flags`` are those of the ``package_checker_params`` that apply, in the spelling
    ``rcp-bypass``. A set of raw logs has the system that they name, and no folder. ``others``
    are the names of the other entries of its folder. ``scaling`` is the text of ``scaling.json``;
    ``scaling_mode`` is "strong" or "weak" in a folder of that name (HPC).
    ``tree`` is the folder of its submission, links resolved, if that is not among the inputs.
    """

    place: Place
    system: str | None
    benchmark: str
    logs: tuple[Place, ...]
    others: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    scaling: str | None = None
    scaling_mode: str | None = None
    power: PowerFolder | None = None
    tree: Place | None = None

    def name_of(self, submitter: str) -> str:
        """Return its name among the sets of a round, in the form of ``PublishedSet.name``."""
        return "/".join(filter(None, (submitter, self.system, self.scaling_mode, self.benchmark)))

    def at_level(self, usage: str) -> bool:
        """Return whether it is at the level of a usage: HPC results are one level lower."""
        return (self.scaling_mode is not None) == (usage == "hpc")


class SystemFolder(Struct, frozen=True):
    """``results/<system>/``: the names of the folders in it, and the text of ``privateid.json``."""

    place: Place
    folders: tuple[str, ...]
    private_id: str | None = None


class Submission(Struct, frozen=True):
    """One submitter's tree.

    ``flags`` are those at its top; ``params`` are all its files ``package_checker_params`` by
    path; ``entries`` is everything below it; ``tested`` are the folders of ``results/``,
    including those without a result set. ``of_results`` marks those
    in a folder of several, of which none has code: a copy of the results of a round.
    """

    place: Place
    name: str
    systems: tuple[Place, ...]
    result_sets: tuple[ResultSet, ...]
    flags: frozenset[str] = frozenset()
    params: Mapping[str, Params] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    tested: tuple[SystemFolder, ...] = ()
    of_results: bool = False

    @property
    def code(self) -> Mapping[str, tuple[str, ...]] | None:
        """The files under ``benchmarks/<benchmark>/``; None if there is no ``benchmarks/``."""
        if not any(entry.path == "benchmarks" and entry.folder for entry in self.entries):
            return None
        files: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.path.startswith("benchmarks/") and not entry.folder:
                files.setdefault(entry.path.split("/", 2)[1], []).append(entry.path)
        return {benchmark: tuple(paths) for benchmark, paths in files.items()}


class Workspace(Struct, frozen=True):
    """A workspace: its ``folder``, the system descriptions in it, and its configuration.

    ``label`` is its path in reports; the paths of its descriptions begin with it.
    """

    folder: Path
    label: str
    systems: tuple[Place, ...]
    config: Config

    def relative(self, path: AnyPath) -> str:
        """Return a path relative to the workspace, for patterns of the configuration."""
        return Path(os.path.relpath(str(path), self.folder)).as_posix()

    @property
    def origin(self) -> str:
        """The path of the configuration in messages."""
        return str(self.folder / CONFIG_NAME)

    def is_raw(self, path: AnyPath) -> bool:
        """Return whether a log is neither in a folder of code nor among what was built."""
        others = (OUTPUT, *self.config.code_folders)
        outside = [(self.folder / name).resolve() for name in others]
        return not any(Path(str(path)).resolve().is_relative_to(folder) for folder in outside)


class Why(Enum):
    """Why a file is not read.

    PROBLEM: it cannot or must not be read. NOT_A_LOG: it is text among logs. TWICE: it is read as
    a part of another argument. UNCHECKED: it is a part of what is checked, and cannot be read.
    """

    PROBLEM = auto()
    NOT_A_LOG = auto()
    TWICE = auto()
    UNCHECKED = auto()


class Unread(Struct, frozen=True):
    """A file that looks like one to read, or an argument, and the reason why it is not read."""

    place: Place
    reason: str
    why: Why = Why.PROBLEM


class Input(Struct, frozen=True):
    """The contents of an argument; ``skipped`` are its links that lead out of it.

    Without a submission, ``result_sets`` are those in folders that have the path of one, and
    ``logs`` all other logs, with the ``workspace`` that they are in. ``is_file`` says that the
    argument is a single log.
    """

    submissions: tuple[Submission, ...] = ()
    logs: tuple[Place, ...] = ()
    skipped: tuple[Place, ...] = ()
    unread: tuple[Unread, ...] = ()
    result_sets: tuple[ResultSet, ...] = ()
    workspace: Workspace | None = None
    is_file: bool = False

    @property
    def every_log(self) -> tuple[Place, ...]:
        """The raw logs and those of all result sets."""
        submitted = (files for submission in self.submissions for files in submission.result_sets)
        sets = chain(submitted, self.result_sets)
        return (*self.logs, *(log for files in sets for log in files.logs))

    def with_flags(self, flags: frozenset[str]) -> Input:
        """Return the input with ``flags`` added to those of all result sets."""

        def flagged(sets: tuple[ResultSet, ...]) -> tuple[ResultSet, ...]:
            return tuple(replace(files, flags=files.flags | flags) for files in sets)

        submissions = (replace(s, result_sets=flagged(s.result_sets)) for s in self.submissions)
        return replace(self, submissions=tuple(submissions), result_sets=flagged(self.result_sets))

    @property
    def places(self) -> Mapping[str, Place]:
        """The logs and the system descriptions by label."""
        trees = (submission.systems for submission in self.submissions)
        systems = chain(self.workspace.systems if self.workspace else (), *trees)
        return {place.label: place for place in (*self.every_log, *systems)}


def is_power_log(name: str) -> bool:
    """Return whether a file of this name is the power log of a node or a switch."""
    return name.endswith(".txt") and name.startswith(("node_", "sw_"))
