"""What lies in a folder: submissions with systems and result sets, or loose logs. No verdicts.

Input trees come from strangers: links that lead out of the argument are not followed, and
nothing is ever written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.stores import StoredPath, path_of
from mlperf_pkg.infra.text import nearest
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
from mlperf_pkg.submission.tree import Folders, Named, list_tree

SCALINGS = ("strong", "weak")
_RESULT = re.compile(r"result_.*\.txt", re.DOTALL)
_LOG_SUFFIXES = frozenset({".txt", ".log", ".out", ".mllog", ""})
_SNIFF_BYTES = 1 << 20
_ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04", b"age-encryption.org/", b"Salted__")


def find_input(argument: str, prefix: str = "") -> Input:
    """What the argument of a command holds; ``prefix`` begins every path in reports.

    Raises:
        UserError: there is no such file or folder, it cannot be read, or it holds no log; of a
            URL, as ``path_of``.
    """
    path = path_of(argument)
    if isinstance(path, Path) and not path.exists():
        raise UserError(f"{argument}: no such file or folder{_nearest(path)}")
    try:
        top = Place(path, prefix)
        found = _Finder(top).find(top)
    except OSError as error:
        raise UserError(f"{argument}: cannot be read: {error.strerror}") from error
    if not found.submissions and not found.logs:
        raise UserError(
            f"{argument}: no MLPerf log here (no file holds a line with '{TOKEN.decode()}')"
        )
    return found


def _nearest(path: Path) -> str:
    parent = path.parent if path.parent.is_dir() else Path()
    close = nearest(path.name, (entry.name for entry in parent.iterdir()))
    return f"; did you mean {parent / close}?" if close else ""


class _Finder(Struct):
    root: Place
    skipped: dict[str, Place] = field(default_factory=dict)  # by label
    listed: Folders = field(default_factory=Folders)

    def find(self, top: Place) -> Input:
        if top.path.is_file():
            _refuse_archive(top.path)
            return Input(logs=(Place(top.path, top.label or top.name),))
        folders = [top] if self._is_submission(top) else self._submissions_below(top)
        if folders:
            found = tuple(self._submission(folder) for folder in folders)
            return Input(submissions=found, skipped=tuple(self.skipped.values()))
        logs = tuple(place for place in self._walk(top) if _is_log(place))
        return Input(logs=logs, skipped=tuple(self.skipped.values()))

    # ---- submissions ----------------------------------------------------------------------

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

    def _submissions_below(self, folder: Place) -> list[Place]:
        return [each for each in self._folders(folder) if self._is_submission(each)]

    def _submission(self, folder: Place) -> Submission:
        described = folder.child("systems")
        systems = [
            described.child(entry.name)
            for entry in self._entries(described)
            if entry.name.endswith(".json") and not entry.name.startswith(".") and entry.is_file()
        ]
        params: dict[str, Params] = {}
        flags = self._flags(folder, params, top_params)
        sets = [
            self._result_set(system, benchmark, flags, params)
            for system in self._folders(folder.child("results"))
            for benchmark in self._benchmarks(system)
        ]
        name = folder.path.resolve().name
        entries = list_tree(folder.path, self.listed)
        tested = tuple(map(self._tested, self._folders(folder.child("results"))))
        return Submission(folder, name, tuple(systems), tuple(sets), flags, params, entries, tested)

    def _tested(self, system: Place) -> SystemFolder:
        names = tuple(each.name for each in self._folders(system))
        return SystemFolder(system, names, self._text(system, "privateid.json"))

    def _benchmarks(self, system: Place) -> list[Place]:
        """The benchmark folders of a system; HPC has one level more."""
        return [
            benchmark
            for folder in self._folders(system)
            for benchmark in (self._folders(folder) if folder.name in SCALINGS else [folder])
        ]

    def _result_set(
        self, system: Place, folder: Place, flags: frozenset[str], params: dict[str, Params]
    ) -> ResultSet:
        entries = self._entries(folder)
        logs = [each.name for each in entries if _RESULT.fullmatch(each.name) and each.is_file()]
        names = {each.name for each in entries}
        inner = [self._flags(each, params, inner_params) for each in (system, folder)]
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

    def _power(self, place: Place) -> PowerFolder:
        if not place.path.is_dir():
            return PowerFolder(place, None)
        results = {
            each.name: tuple(entry.name for entry in self._entries(place.child(each.name)))
            if each.is_dir()
            else None
            for each in self._entries(place)
        }
        return PowerFolder(place, results)

    def _flags(
        self, folder: Place, found: dict[str, Params], read: Callable[[bytes], Params]
    ) -> frozenset[str]:
        """The flags of a folder; its file is kept in ``found``."""
        if not self._holds(folder, PARAMS):
            return frozenset()
        place = folder.child(PARAMS)
        if place.label not in found and place.path.exists() and self._inside(folder, PARAMS):
            try:
                found[place.label] = read(place.path.read_bytes())
            except OSError as error:
                found[place.label] = Params(died=f"it cannot be read: {error.strerror}")
        return found[place.label].flags if place.label in found else frozenset()

    def _text(self, folder: Place, name: str) -> str | None:
        """What a file of a folder holds; None where there is none."""
        path = folder.path / name if self._holds(folder, name) else None
        return path.read_text("utf-8", "replace") if path and path.is_file() else None

    def _holds(self, folder: Place, name: str) -> bool:
        """Whether there may be such an entry, without asking the system for it once more."""
        try:
            return any(each.name == name for each in self.listed.entries(folder.path))
        except OSError:
            return True

    # ---- walking --------------------------------------------------------------------------

    def _walk(self, folder: Place) -> Iterator[Place]:
        for entry in self._entries(folder):
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from self._walk(folder.child(entry.name))
            elif entry.is_file():
                yield folder.child(entry.name)

    def _folders(self, folder: Place) -> list[Place]:
        return [
            folder.child(entry.name)
            for entry in self._entries(folder)
            if entry.is_dir() and not entry.name.startswith(".")
        ]

    def _entries(self, folder: Place) -> list[Named]:
        """The entries of a folder by name, without links that lead out of the argument."""
        try:
            listed = self.listed.entries(folder.path)
        except OSError:
            if folder.path.is_dir():
                raise
            return []
        return [
            entry
            for entry in listed
            if isinstance(entry, StoredPath)  # in a store there are no links
            or not entry.is_symlink()
            or self._inside(folder, entry.name)
        ]

    def _inside(self, folder: Place, name: str) -> bool:
        place = folder.child(name)
        if isinstance(place.path, StoredPath):  # in a store there are no links
            return True
        try:
            target = place.path.resolve(strict=True)
        except (OSError, RuntimeError):
            target = Path()
        # A link to a folder above itself would never end.
        inside = target.is_relative_to(self.root.local.resolve())
        inside = inside and not folder.local.resolve().is_relative_to(target)
        if not inside:
            self.skipped.setdefault(place.label, place)
        return inside


def _refuse_archive(path: Path | StoredPath) -> None:
    with path.open("rb") as stream:
        head = stream.read(max(map(len, _ARCHIVES)))
    if head.startswith(_ARCHIVES):
        raise UserError(f"{path}: an archive, not a log: 'mlperf-pkg verify {path}' checks it")


def _is_log(place: Place) -> bool:
    """Whether a file of a loose folder is a log: by name, or by what its head holds."""
    if _RESULT.fullmatch(place.name):
        return True
    if place.path.parent.parent.name == "power" and is_power_log(place.name):
        return False
    if place.path.suffix.lower() not in _LOG_SUFFIXES:
        return False
    with place.path.open("rb") as stream:
        return TOKEN in stream.read(_SNIFF_BYTES)


def labels(arguments: Sequence[str]) -> list[str]:
    """What begins the paths of each argument: nothing for one, else the argument itself."""
    return [""] if len(arguments) == 1 else [each.rstrip("/") for each in arguments]
