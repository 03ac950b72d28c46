"""Find what a folder holds: submissions with systems and result sets, or loose logs. No verdicts.

Input trees come from strangers: links that lead out of the argument are not followed, and
nothing is ever written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.stores import StoredPath, path_of
from mlperf_pkg.infra.text import nearest
from mlperf_pkg.infra.tree import Entry, FolderCache, list_tree, walk
from mlperf_pkg.log.record import TOKEN
from mlperf_pkg.submission.model import (
    Input,
    Place,
    PowerFolder,
    ResultSet,
    Submission,
    SystemFolder,
    is_power_log,
)
from mlperf_pkg.submission.params import FILE as PARAMS
from mlperf_pkg.submission.params import Params, inner_params, top_params

SCALINGS = ("strong", "weak")
_RESULT = re.compile(r"result_.*\.txt", re.DOTALL)
_LOG_SUFFIXES = frozenset({".txt", ".log", ".out", ".mllog", ""})
_SNIFF_BYTES = 1 << 20
_ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04", b"age-encryption.org/", b"Salted__")


def find_input(argument: str, prefix: str = "") -> Input:
    """Return what the argument of a command holds; ``prefix`` begins every path in reports.

    Raises:
        UserError: the file or folder does not exist, cannot be read, or holds no log; for a URL,
            as ``path_of``.
    """
    path = path_of(argument)
    if isinstance(path, Path) and not path.exists():
        raise UserError(f"{argument}: no such file or folder{_suggestion(path)}")
    try:
        top = Place(path, prefix)
        contents = _Finder(top).find()
    except OSError as error:
        raise UserError(f"{argument}: cannot be read: {error.strerror}") from error
    if not contents.submissions and not contents.logs:
        raise UserError(
            f"{argument}: no MLPerf log here (no file holds a line with '{TOKEN.decode()}')"
        )
    return contents


def _suggestion(path: Path) -> str:
    parent = path.parent if path.parent.is_dir() else Path()
    close = nearest(path.name, (entry.name for entry in parent.iterdir()))
    return f"; did you mean {parent / close}?" if close else ""


class _Finder(Struct):
    """Reads an argument, ``top``, step by step; ``skipped`` are its links that lead out of it."""

    top: Place
    skipped: dict[str, Place] = field(default_factory=dict)  # by label
    folder_cache: FolderCache = field(default_factory=FolderCache)

    def find(self) -> Input:
        if self.top.path.is_file():
            return self._one_log()
        folders = self._submission_folders()
        submissions = tuple(map(self._submission, folders))
        logs = () if submissions else self._loose_logs()
        return Input(submissions, logs, tuple(self.skipped.values()))

    # ---- logs without a submission --------------------------------------------------------

    def _one_log(self) -> Input:
        path = self.top.path
        _refuse_archive(path)
        return Input(logs=(Place(path, self.top.label or path.name),))

    def _loose_logs(self) -> tuple[Place, ...]:
        entries = walk(
            self.top.path,
            cache=self.folder_cache,
            keep=lambda entry: self._inside(self.top, entry) and not entry.hidden,
            follow_links=True,
        )
        files = (self.top.child(entry.path) for entry in entries if entry.file)
        return tuple(filter(_is_log, files))

    # ---- submissions ----------------------------------------------------------------------

    def _submission_folders(self) -> list[Place]:
        if self._is_submission(self.top):
            return [self.top]
        return list(filter(self._is_submission, self._folders(self.top)))

    def _is_submission(self, folder: Place) -> bool:
        results = folder.child("results")
        if not results.path.is_dir():
            return False
        return folder.child("systems").path.is_dir() or any(
            _RESULT.fullmatch(entry.name)
            for system in self._folders(results)
            for benchmark in self._folders(system)
            for entry in self._entries(benchmark)
        )

    def _submission(self, folder: Place) -> Submission:
        params: dict[str, Params] = {}
        flags = self._flags(folder, params, top_params)
        systems = self._folders(folder.child("results"))
        return Submission(
            place=folder,
            name=folder.path.resolve().name,
            systems=self._descriptions(folder.child("systems")),
            result_sets=tuple(
                self._result_set(system, benchmark, flags, params)
                for system in systems
                for benchmark in self._benchmarks(system)
            ),
            flags=flags,
            params=params,
            entries=list_tree(folder.path, self.folder_cache),
            tested=tuple(map(self._system_folder, systems)),
        )

    def _descriptions(self, folder: Place) -> tuple[Place, ...]:
        return tuple(
            folder.child(entry.name)
            for entry in self._entries(folder)
            if entry.file and entry.name.endswith(".json") and not entry.hidden
        )

    def _system_folder(self, system: Place) -> SystemFolder:
        names = tuple(folder.name for folder in self._folders(system))
        return SystemFolder(system, names, self._text(system, "privateid.json"))

    def _benchmarks(self, system: Place) -> list[Place]:
        """Return the benchmark folders of a system; HPC has one level more."""
        return [
            benchmark
            for folder in self._folders(system)
            for benchmark in (self._folders(folder) if folder.name in SCALINGS else [folder])
        ]

    # ---- one result set -------------------------------------------------------------------

    def _result_set(
        self, system: Place, folder: Place, flags: frozenset[str], params: dict[str, Params]
    ) -> ResultSet:
        entries = self._entries(folder)
        logs = [entry.path for entry in entries if _RESULT.fullmatch(entry.path) and entry.file]
        names = {entry.path for entry in entries}
        inner = [self._flags(level, params, inner_params) for level in (system, folder)]
        above = folder.path.parent.name
        return ResultSet(
            place=folder,
            system=system.name,
            benchmark=folder.name,
            logs=tuple(map(folder.child, logs)),
            others=tuple(sorted(names.difference(logs))),
            flags=flags.union(*inner),
            scaling=self._text(folder, "scaling.json"),
            scaling_mode=None if folder.path.parent == system.path else above,
            power=self._power(folder.child("power")) if "power" in names else None,
        )

    def _power(self, folder: Place) -> PowerFolder:
        if not folder.path.is_dir():
            return PowerFolder(folder, None)
        names = {
            entry.name: self._names(folder.child(entry.name)) if entry.folder else None
            for entry in self._entries(folder)
        }
        return PowerFolder(folder, names)

    def _flags(
        self, folder: Place, params: dict[str, Params], parse: Callable[[bytes], Params]
    ) -> frozenset[str]:
        """Return the flags of a folder; what its file says is added to ``params``."""
        if not self._may_hold(folder, PARAMS):
            return frozenset()
        file = folder.child(PARAMS)
        if file.label not in params and file.path.exists() and self._leads_inside(file):
            try:
                params[file.label] = parse(file.path.read_bytes())
            except OSError as error:
                params[file.label] = Params(crash=f"it cannot be read: {error.strerror}")
        return params[file.label].flags if file.label in params else frozenset()

    def _text(self, folder: Place, name: str) -> str | None:
        """Return the text of a file in a folder; None if there is no such file."""
        path = folder.path / name if self._may_hold(folder, name) else None
        return path.read_text("utf-8", "replace") if path and path.is_file() else None

    # ---- folders --------------------------------------------------------------------------

    def _may_hold(self, folder: Place, name: str) -> bool:
        """Return False if the folder, read before, has no such entry: saves a system call."""
        try:
            return any(entry.path == name for entry in self.folder_cache.entries(folder.path))
        except OSError:
            return True

    def _names(self, folder: Place) -> tuple[str, ...]:
        return tuple(entry.path for entry in self._entries(folder))

    def _folders(self, folder: Place) -> list[Place]:
        entries = self._entries(folder)
        return [folder.child(e.path) for e in entries if e.folder and not e.hidden]

    def _entries(self, folder: Place) -> list[Entry]:
        """Return the entries of a folder, without links that lead out of the argument.

        They are sorted by name; their paths are their names.
        """
        try:
            entries = self.folder_cache.entries(folder.path)
        except OSError:
            if folder.path.is_dir():
                raise
            return []
        return [entry for entry in entries if entry.link is None or self._inside(folder, entry)]

    def _inside(self, folder: Place, entry: Entry) -> bool:
        return entry.link is None or self._leads_inside(folder.child(entry.path))

    def _leads_inside(self, place: Place) -> bool:
        """Return whether a path, links resolved, is within the argument; if not, skip it."""
        if isinstance(place.path, StoredPath):  # a store has no links
            return True
        try:
            target = place.path.resolve(strict=True)
        except (OSError, RuntimeError):
            target = Path()
        # A link to a folder above itself would never end.
        inside = target.is_relative_to(self.top.local.resolve())
        inside = inside and not place.path.parent.resolve().is_relative_to(target)
        if not inside:
            self.skipped.setdefault(place.label, place)
        return inside


def _refuse_archive(path: Path | StoredPath) -> None:
    with path.open("rb") as stream:
        head = stream.read(max(map(len, _ARCHIVES)))
    if head.startswith(_ARCHIVES):
        raise UserError(f"{path}: an archive, not a log: 'mlperf-pkg verify {path}' checks it")


def _is_log(file: Place) -> bool:
    """Return whether a loose file is a log, by its name or by what its head holds."""
    if _RESULT.fullmatch(file.name):
        return True
    if file.path.parent.parent.name == "power" and is_power_log(file.name):
        return False
    if file.path.suffix.lower() not in _LOG_SUFFIXES:
        return False
    with file.path.open("rb") as stream:
        return TOKEN in stream.read(_SNIFF_BYTES)


def labels(arguments: Sequence[str]) -> list[str]:
    """Return what begins the paths of each argument: nothing for one, else the argument itself."""
    return [""] if len(arguments) == 1 else [argument.rstrip("/") for argument in arguments]
