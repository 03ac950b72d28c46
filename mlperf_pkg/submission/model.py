"""What a folder holds, as values: submissions, result sets, logs. No verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import Source, source_of
from mlperf_pkg.infra.stores import StoredPath
from mlperf_pkg.submission.params import Params
from mlperf_pkg.submission.tree import Entry


class Place(Struct, frozen=True):
    """A file or folder: where it is, and its path in reports."""

    path: Path | StoredPath
    label: str

    def child(self, name: str) -> Place:
        """The entry ``name`` of this folder."""
        return Place(self.path / name, f"{self.label}/{name}" if self.label else name)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.name

    @property
    def source(self) -> Source:
        """The file to be read."""
        return source_of(self.path, self.label)

    @property
    def local(self) -> Path:
        """Where it is on this machine.

        Raises:
            UserError: it is in a store.
        """
        if isinstance(self.path, StoredPath):
            raise UserError(f"{self.path}: is in a store; here a path of this machine is needed")
        return self.path


class PowerFolder(Struct, frozen=True):
    """The measurements of a result set: ``power/<result>/{node_<j>,sw_<k>}.txt``.

    ``results`` are the names in each of its folders, None for what is no folder; it is itself
    None where ``power`` is a file.
    """

    place: Place
    results: Mapping[str, tuple[str, ...] | None] | None

    def logs(self, log: str) -> Iterator[tuple[Place, bool]]:
        """The measurements of the run ``log``, and whether each is of a switch."""
        result = log.partition(".")[0]
        for name in (self.results or {}).get(result) or ():
            if is_power_log(name):
                yield self.place.child(result).child(name), name.startswith("sw_")


class ResultSet(Struct, frozen=True):
    """The runs of one system and benchmark: ``results/<system>/<benchmark>/result_*.txt``.

    ``flags`` are those of the ``package_checker_params`` that apply, in the spelling
    ``rcp-bypass``. A set of loose logs has no system and no folder. ``scaling`` is the text of
    ``scaling.json``; ``scaling_mode`` is "strong" or "weak" in a folder of that name (HPC).
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

    def at_level(self, usage: str) -> bool:
        """Whether it lies where a usage has its results: those of HPC are one level lower."""
        return (self.scaling_mode is not None) == (usage == "hpc")


class SystemFolder(Struct, frozen=True):
    """``results/<system>/``: the names of the folders in it, and the text of ``privateid.json``."""

    place: Place
    folders: tuple[str, ...]
    private_id: str | None = None


class Submission(Struct, frozen=True):
    """One submitter's tree.

    ``flags`` are those at its top; ``params`` all its files ``package_checker_params`` by path;
    ``entries`` everything below it.
    ``tested`` are the folders of ``results/``, also those without a result set.
    """

    place: Place
    name: str
    systems: tuple[Place, ...]
    result_sets: tuple[ResultSet, ...]
    flags: frozenset[str] = frozenset()
    params: Mapping[str, Params] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    tested: tuple[SystemFolder, ...] = ()

    @property
    def code(self) -> Mapping[str, tuple[str, ...]] | None:
        """The files under ``benchmarks/<benchmark>/``; None where there is no such folder."""
        if not any(entry.path == "benchmarks" and entry.folder for entry in self.entries):
            return None
        files: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.path.startswith("benchmarks/") and not entry.folder:
                files.setdefault(entry.path.split("/", 2)[1], []).append(entry.path)
        return {benchmark: tuple(paths) for benchmark, paths in files.items()}


class Input(Struct, frozen=True):
    """All that an argument holds. ``skipped`` are links that lead out of it."""

    submissions: tuple[Submission, ...] = ()
    logs: tuple[Place, ...] = ()
    skipped: tuple[Place, ...] = ()

    @property
    def every_log(self) -> tuple[Place, ...]:
        """The loose logs and those of the submissions."""
        sets = (each for submission in self.submissions for each in submission.result_sets)
        return (*self.logs, *(log for each in sets for log in each.logs))

    @property
    def places(self) -> Mapping[str, Place]:
        """Where the logs and the system descriptions are, by their paths in reports."""
        systems = (system for submission in self.submissions for system in submission.systems)
        return {place.label: place for place in (*self.every_log, *systems)}


def is_power_log(name: str) -> bool:
    """Whether a file of this name is a power measurement of a node or a switch."""
    return name.endswith(".txt") and name.startswith(("node_", "sw_"))
