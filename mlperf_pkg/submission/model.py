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

from mlperf_pkg.config import CONFIG_NAME, Config, read_config
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import (
    AnyPath,
    FolderCache,
    FolderEntry,
    ListedPath,
    Location,
    below,
    location_of,
)
from mlperf_pkg.infra.source import Source, source_of, words_of_lines

if TYPE_CHECKING:
    from mlperf_pkg.infra.streams import Compression, FilePart

OUTPUT = "submissions"
"""The folder of a workspace into which submissions are built."""
OFFICIAL_ARCHIVE = "mlperf_submission_"
"""The beginning of the names of archives that the official pack_submission.sh finds."""

SYSTEMS = "systems"
SCALINGS = ("strong", "weak")
PRUNED = "pruned_results"  # of weak scaling
PARAMS = "package_checker_params"
BYPASSES = frozenset({"rcp-bypass", "seed-checker-bypass"})
TRAIN_SAMPLES = frozenset({"rcp-bert-train-samples", "bert-train-samples"})

AS_FILED = "scaling-as-filed"
"""A flag only of the drop-in modules: official scores use the factors in ``scaling.json``."""
_COMPRESSIONS = (".bz2", ".gz", ".xz", ".zst")
_ABOVE = 4  # logs/<system>/<strong or weak>/<benchmark>


class Place(Struct, frozen=True):
    """A file or folder: its location, and its ``label``, the path that reports show.

    A file with a ``compression`` is a log that is read decompressed. ``size`` is the size of a
    file in bytes, if the listing of its folder has it. ``part`` holds the bytes of a log that is
    one of several in a file: its ``lines``, with which its label ends.
    """

    location: Location
    label: str
    compression: Compression | None = None
    size: int | None = None
    part: FilePart | None = None
    lines: tuple[int, int] | None = None

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
        """The file, or the part of it, to be read."""
        if self.part:
            return Source(self.label, self.part, lines=self.lines)
        return source_of(self.location, self.label, self.compression, self.size)

    @property
    def whole(self) -> Place:
        """The file of which this is a part."""
        label = self.label.removesuffix(words_of_lines(self.lines))
        return Place(self.location, label, self.compression, self.size)

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
    ``results`` itself is None if ``power`` is a file. Raw logs of one set may be in several
    folders, each with a ``power`` of its own: their ``results``, and the ``folders`` with these
    names, are by the path of the log.
    """

    place: Place
    results: Mapping[str, tuple[str, ...] | None] | None
    folders: Mapping[str, Place] = {}

    def logs_of(self, log: str) -> list[Place]:
        """Return the power logs of the run whose log has this path."""
        result = log.rpartition("/")[2].partition(".")[0]
        key = log if self.folders else result
        names = (self.results or {}).get(key) or ()
        folder = self.folders.get(log) or self.place.child(result)
        return [folder.child(name) for name in names if is_power_log(name)]


class ResultSet(Struct, frozen=True):
    """The runs of one system and benchmark: ``results/<system>/<benchmark>/result_*.txt``.

    ``flags`` are those of the ``package_checker_params`` that apply, in the spelling
    ``rcp-bypass``. A set of raw logs has the system that they name, and no folder. ``others``
    are the names of the other entries of its folder. ``scaling`` is the text of ``scaling.json``;
    ``scaling_mode`` is "strong" or "weak" in a folder of that name (HPC).
    ``tree`` is the folder of its submission, links resolved, if that is not among the inputs.
    ``pruned`` are the logs of models of weak scaling that do not count, in ``pruned_results``.
    """

    place: Place
    system: str | None
    benchmark: str
    logs: tuple[Place, ...]
    pruned: tuple[Place, ...] = ()
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
    in a folder of several, of which none has code: a copy of the results of a round. ``needs_code``
    marks those of which the code must be there: others beside them have code, or it is submitted.
    ``is_alone`` says that it is all of an argument or of an archive, not in the folder of a round.
    """

    place: Place
    name: str
    systems: tuple[Place, ...]
    result_sets: tuple[ResultSet, ...]
    flags: frozenset[str] = frozenset()
    params: Mapping[str, Params] = field(default_factory=dict)
    entries: tuple[FolderEntry, ...] = ()
    tested: tuple[SystemFolder, ...] = ()
    of_results: bool = False
    needs_code: bool = False
    is_alone: bool = False

    def within(self, path: str) -> str:
        """Return a path of the report as a path within the submission."""
        label = self.place.label
        return path.removeprefix(f"{label}/") if label else path

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

    PROBLEM: it cannot or must not be read. NOT_A_LOG: it is text among logs. DAMAGED: it is text
    with lines that are almost records. TWICE: it is read as a part of another argument. UNCHECKED:
    it is a part of what is checked, and cannot be read. NO_RUN: it is a log whose clock never
    started.
    """

    PROBLEM = auto()
    NOT_A_LOG = auto()
    DAMAGED = auto()
    TWICE = auto()
    UNCHECKED = auto()
    NO_RUN = auto()


MAY_BE_LOGS = (Why.PROBLEM, Why.DAMAGED, Why.UNCHECKED)
"""The reasons for not reading a file that may contain logs."""


class Unread(Struct, frozen=True):
    """A file that looks like one to read, or an argument, and the reason why it is not read.

    ``hint`` says how to repair it, if that is known.
    """

    place: Place
    reason: str
    why: Why = Why.PROBLEM
    hint: str | None = None


class Input(Struct, frozen=True):
    """The contents of an argument; ``skipped`` are its links that lead out of it.

    Without a submission, ``result_sets`` are those in folders that have the path of one, and
    ``logs`` all other logs, with the ``workspace`` that they are in and the files beside them in
    ``power/<log>/``. ``is_file`` says that the
    argument is a single log, ``has_every_log`` that it is the workspace, or all of its ``logs/``.
    """

    submissions: tuple[Submission, ...] = ()
    logs: tuple[Place, ...] = ()
    skipped: tuple[Place, ...] = ()
    unread: tuple[Unread, ...] = ()
    result_sets: tuple[ResultSet, ...] = ()
    workspace: Workspace | None = None
    power: tuple[Place, ...] = ()
    is_file: bool = False
    has_every_log: bool = False

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
        files = [place.whole for place in self.logs if place.lines]
        submitted = chain.from_iterable(submission.result_sets for submission in self.submissions)
        pruned = (log for files in chain(submitted, self.result_sets) for log in files.pruned)
        return {place.label: place for place in (*files, *self.every_log, *pruned, *systems)}


def is_power_log(name: str) -> bool:
    """Return whether a file of this name is the power log of a node or a switch."""
    return name.endswith(".txt") and name.startswith(("node_", "sw_"))


def power_names(log: str) -> list[str]:
    """Return the names that the folder of the measurements of a raw log may have, the best first.

    Those of ``run.0.log.gz`` are ``run.0``, ``run`` and ``run.0.log``, those of ``run.0`` are
    ``run.0`` and ``run``.
    """
    name = log
    for suffix in _COMPRESSIONS:
        name = name.removesuffix(suffix)
    stem, _, ending = name.rpartition(".")
    whole = name if ending.isdecimal() or not stem else stem
    return list(dict.fromkeys((whole, name.partition(".")[0], name)))


# ---- the workspace around raw logs --------------------------------------------------------

# It adds what the logs do not say: the systems, and which logs belong to which. It cannot weaken a
# verdict: its waivers, for example, are ignored.


def workspace_of(argument: Path, label: str = "") -> Workspace | None:
    """Return the workspace that an argument is or is in; None if there is none.

    What is in ``results/`` is part of a submission. ``label`` is the argument's name in reports.
    Links to descriptions outside of the workspace are not followed.

    Raises:
        UserError: as ``read_config``.
    """
    path = Path(os.path.abspath(argument))  # noqa: PTH100 - links stay as they are
    for folder in (path, *path.parents[:_ABOVE]):
        has_systems = (folder / SYSTEMS).is_dir() and _is_inside(folder / SYSTEMS, folder)
        is_workspace = has_systems or (folder / CONFIG_NAME).is_file()
        if is_workspace and folder / "results" not in (path, *path.parents):
            shown = _label_above(path, label, folder)
            systems = tuple(_descriptions(folder, shown)) if has_systems else ()
            return Workspace(folder, shown, systems, read_config(folder))
    return None


def _label_above(path: Path, label: str, folder: Path) -> str:
    """Return the label of a folder that is or is above a path with a label."""
    start = path
    top = Path(label)
    if not path.is_dir():
        start = path.parent
        top = top.parent
    above = os.path.relpath(folder, start)
    shown = Path(os.path.normpath(top / above)).as_posix()
    return "" if shown == "." else shown


def _descriptions(workspace: Path, label: str) -> Iterator[Place]:
    folder = workspace / SYSTEMS
    place = Place(location_of(folder), f"{label}/{SYSTEMS}" if label else SYSTEMS)
    for entry in FolderCache()[place.location].values():
        is_ours = entry.link is None or _is_inside(folder / entry.name, workspace)
        if entry.file and entry.name.endswith(".json") and not entry.hidden and is_ours:
            yield place.child(entry.name)


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


# ---- what the path of a folder says of the result set in it --------------------------------------


class SetName(Struct, frozen=True):
    """The names in the path of a result set.

    The path is ``results/<system>/<benchmark>`` or, with a scaling mode (HPC),
    ``results/<system>/{strong,weak}/<benchmark>``.
    """

    system: str
    benchmark: str
    scaling_mode: str | None = None

    @property
    def levels(self) -> int:
        """The number of folders from that of the system down to that of the set."""
        return 1 if self.scaling_mode is None else 2


def set_name(folder: Location) -> SetName | None:
    """Return the names in the path of a folder; None if a result set is elsewhere.

    Only the path is used; its links must be resolved.
    """
    parts = folder.rsplit("/", 4) if isinstance(folder, str) else folder.parts
    names = ["", "", "", *parts][-4:]
    benchmark = names[3]
    if names[2] in SCALINGS and names[0] == "results":
        name = SetName(names[1], benchmark, names[2])
    elif names[1] == "results" and benchmark not in SCALINGS:
        name = SetName(names[2], benchmark)
    else:
        return None
    if name.system.startswith(".") or benchmark.startswith("."):
        return None
    return name


def is_result_log(name: str) -> bool:
    """Return whether a file of this name is the log of a run, in a folder of a submission."""
    return name.startswith("result_") and name.endswith(".txt")


# ---- the flags by which a submission asks for exceptions: package_checker_params -----------

# At the top of a submission the upload turns them into command line flags, in any spelling. In the
# folder of a system or of a benchmark the official package checker reads them itself, and compares
# whole lines including their line ends: it understands only a last line without a line end.
# (mlperf_logging.package_checker, check_training_result_files)


class Params(Struct, frozen=True):
    """The flags of one file, spelt as ``rcp-bypass``.

    ``ignored`` are the valid flags in it that have no effect; ``crash`` says why the official
    package checker crashes on the file, None if it does not.
    """

    flags: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
    crash: str | None = None


def top_params(data: bytes) -> Params:
    """Return the flags at the top of a submission: any spelling, one or more per line."""
    words = frozenset(_words(data.decode("utf-8", "replace")))
    return Params(flags=words & (BYPASSES | TRAIN_SAMPLES))


def inner_params(data: bytes) -> Params:
    """Return the flags in the folder of a system or a benchmark, if they have an effect."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Params(crash=f"it is not UTF-8 ({error.reason})")
    last = text.replace("\r", "\n").rpartition("\n")[2]
    flags = BYPASSES & {last}
    valid = BYPASSES | TRAIN_SAMPLES
    return Params(flags, tuple(sorted(valid.intersection(_words(text)) - flags)))


def _words(text: str) -> list[str]:
    return [word.lstrip("-").replace("_", "-") for word in text.split()]
