"""Find what a folder holds: submissions with systems and result sets, or raw logs. No verdicts.

Input trees come from strangers: links that lead out of the argument are not followed, and
nothing is ever written.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.errors import ArchiveError, UserError
from mlperf_pkg.infra.json_values import MAX_BYTES as _MAX_BYTES
from mlperf_pkg.infra.paths import (
    FolderCache,
    FolderEntry,
    ListedPath,
    Location,
    TooLargeError,
    is_folder,
    list_tree,
    location_of,
    read_file,
    walk,
    with_slashes,
)
from mlperf_pkg.infra.source import NO_PERMISSION, Content, content_of, is_archive_name, stem_of
from mlperf_pkg.infra.stores import path_of
from mlperf_pkg.infra.streams import Spool, compression_of
from mlperf_pkg.infra.text import nearest
from mlperf_pkg.log.record import TOKEN, old_format
from mlperf_pkg.submission.model import (
    MAY_BE_LOGS,
    OFFICIAL_ARCHIVE,
    PARAMS,
    PRUNED,
    SCALINGS,
    Input,
    Params,
    Place,
    PowerFolder,
    ResultSet,
    SetName,
    Submission,
    SystemFolder,
    Unread,
    Why,
    Workspace,
    inner_params,
    is_power_log,
    is_result_log,
    set_name,
    top_params,
    workspace_of,
)

LOGS = "logs"
"""The folder of raw logs in a workspace."""
_HEAD_BYTES = 1 << 10  # of a file that is named: a log, unless they are those of an archive


def find_input(argument: str, prefix: str = "") -> Input:
    """Return what the argument of a command holds; ``prefix`` begins every path in reports.

    Raises:
        UserError: the file or folder does not exist, cannot be read, or holds no log; for a URL,
            as ``path_of``.
    """
    path = path_of(argument)
    try:
        if isinstance(path, Path):
            mode = _mode(path)
            if mode is None:
                raise UserError(f"{argument}: no such file or folder{_suggestion(path)}")
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                kinds = "not a file or a folder, but a pipe, a device or a socket"
                raise UserError(f"{argument}: {kinds}")
        top = Place(location_of(path), prefix)
        contents = _InputFinder(top).find()
    except (OSError, ArchiveError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{argument}: cannot be read: {reason}") from error
    if not contents.submissions and not contents.every_log:
        unread = next((file for file in contents.unread if file.place == top), None)
        if unread:
            raise UserError(f"{argument}: cannot be read: {unread.reason}")
        subject = "the current folder" if argument == "." else argument
        raise UserError(
            f"no MLPerf log in {subject} (no file has a line with"
            f" '{TOKEN.decode()}'){_not_read(contents)}"
        )
    return contents


def _mode(path: Path) -> int | None:
    """Return the mode of what a path leads to, None if that does not exist.

    Raises:
        OSError: it cannot be read, such as a folder above it, or its name is too long.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _not_read(contents: Input) -> str:
    """Return the first file in which logs may be that are not read, for the end of a message."""
    unread = [file for file in contents.unread if file.why in MAY_BE_LOGS]
    if not unread:
        return ""
    text = f"; not read: {unread[0].place.label} ({unread[0].reason})"
    if len(unread) > 1:
        text += f" and {len(unread) - 1} more"
    return text


def _suggestion(path: Path) -> str:
    parent = path.parent if path.parent.is_dir() else Path()
    close = nearest(path.name, (entry.name for entry in parent.iterdir()))
    if close:
        return f"; did you mean {parent / close}?"
    if re.fullmatch(r"\d+\.\d+", path.name):
        return f"; for round {path.name}, name the folder of its submissions"
    return ""


def find_alone(submission: Submission) -> Input:
    """Return a submission as an argument of its own, whose paths in reports are those within it."""
    return _InputFinder(Place(submission.place.location, "")).find()


class _InputFinder(Struct):
    """Reads an argument, ``top``, step by step; ``skipped`` are its links that lead out of it.

    ``unread`` is what cannot be opened. What is wrong in one folder ends the reading of no other.

    ``in_archive`` says that it is the top folder of an archive, ``has_links`` that it has a link.
    """

    top: Place
    in_archive: bool = False
    has_links: bool = False
    skipped: dict[str, Place] = field(default_factory=dict)  # by label
    unread: dict[str, Unread] = field(default_factory=dict)  # by label
    folder_cache: FolderCache = field(default_factory=FolderCache)

    def find(self) -> Input:
        if self.top.path.is_file():
            return self._one_file()
        submissions = self._submissions()
        if submissions:
            contents = Input(submissions, unread=self._archives_beside(submissions))
        else:
            contents = self._raw()
        unread = (*contents.unread, *self.unread.values())
        return replace(contents, skipped=tuple(self.skipped.values()), unread=unread)

    # ---- logs without a submission --------------------------------------------------------

    def _one_file(self) -> Input:
        path = self.top.path
        content = content_of(path, _HEAD_BYTES)
        if content.is_encrypted:
            raise UserError(f"{path}: {ENCRYPTED}; 'mlperf-pkg verify {path}' checks the archive")
        if content.problem:
            raise UserError(f"{path}: cannot be read: {content.problem}")
        place = Place(self.top.location, self.top.label or path.name, content.compression)
        if not content.is_archive:
            return Input(logs=(place,), workspace=self._workspace(), is_file=True)
        loose = Loose()
        loose.take_archive(replace(place, compression=None), content)
        return replace(loose.contents, workspace=self._workspace())

    def _workspace(self) -> Workspace | None:
        location = self.top.location
        if not isinstance(location, str):
            return None
        return workspace_of(Path(location), self.top.label)

    def _raw(self) -> Input:
        """Return the logs of a folder; if it is a workspace with ``logs/``, only those in it."""
        workspace = self._workspace()
        place = workspace.relative(self.top.path) if workspace else None
        is_top = place == "."
        logs_folder = None
        if is_top and self._has_folder(self.top, LOGS):
            logs_folder = self._inside_child(self.top, LOGS)
        contents = self._with_sets(self._loose(logs_folder or self.top))
        if workspace and is_top and not logs_folder:
            contents = _only_raw(contents, workspace)
        has_every_log = is_top or place == LOGS
        return replace(contents, workspace=workspace, has_every_log=has_every_log)

    def _loose(self, folder: Place) -> Input:
        def leave(path: str, error: OSError) -> None:
            self._leave(folder.child(path) if path else folder, error)

        entries = walk(
            folder.location,
            cache=self.folder_cache,
            keep=lambda entry: self._inside(folder, entry) and not entry.hidden,
            follow_links=True,
            unreadable=leave,
        )
        loose = Loose(self.in_archive)
        for entry in entries:
            if entry.file:
                file = _file(folder, entry)
                try:
                    loose.take(file)
                except OSError as error:
                    self._leave(file, error)
        contents = loose.contents  # in which archives are submissions of one round
        submissions = tuple(replace(item, is_alone=False) for item in contents.submissions)
        return replace(contents, submissions=submissions)

    def _leave(self, place: Place, error: OSError) -> None:
        reason = error.strerror or str(error)
        self.unread.setdefault(place.label, Unread(place, reason, Why.UNCHECKED))

    def _with_sets(self, loose: Input) -> Input:
        """Return loose files with the result sets among them: those in the folder of one."""
        sets = tuple(self._sets_alone(loose.logs))
        folders = {files.place.label for files in sets}

        def outside(file: Place) -> bool:
            above, _, _ = file.label.rpartition("/")  # most files are directly in a result set
            return above not in folders and folders.isdisjoint(file.labels_above)

        return replace(
            loose,
            logs=tuple(filter(outside, loose.logs)),
            unread=tuple(file for file in loose.unread if outside(file.place)),
            result_sets=(*loose.result_sets, *sets),
        )

    def _sets_alone(self, logs: Iterable[Place]) -> Iterator[ResultSet]:
        """Yield the result sets with logs whose folders have the path of one."""
        by_folder: dict[str, list[Place]] = {}
        for log in logs:
            label, _, log_name = log.label.rpartition("/")
            if is_result_log(log_name):
                by_folder.setdefault(label, []).append(log)
        top = str(location_of(self.top.path.resolve()))
        for members in by_folder.values():
            folder = members[0].folder
            path = self._resolved(folder.location, top)
            name = set_name(path)
            if name:
                yield self._set_alone(folder, path, name, members)

    def _resolved(self, path: Location, top: str) -> Location:
        """Return the path of a folder in the argument, whose resolved path is ``top``."""
        if not isinstance(path, str):
            return path
        if self.has_links:
            return Path(path).resolve().as_posix()
        return top + path[len(str(self.top.location)) :]

    def _set_alone(
        self, folder: Place, path: Location, name: SetName, logs: Sequence[Place]
    ) -> ResultSet:
        """Return the result set in a folder, with the flags above its resolved ``path``."""
        system = Place(path, str(path))
        for _ in range(name.levels):
            system = system.folder
        tree = system.folder.folder
        of_folder = self._flags(folder, {}, inner_params)
        of_system = self._flags(system, {}, inner_params)
        flags = self._flags(tree, {}, top_params) | of_folder | of_system
        return replace(self._result_set(folder, name, flags, logs), tree=tree)

    # ---- submissions ----------------------------------------------------------------------

    def _submissions(self) -> tuple[Submission, ...]:
        """Return the submission that the argument is, or those in its folders."""
        if self._is_submission(self.top):
            submission = self._submission_or_none(self.top)
            return (replace(submission, is_alone=True),) if submission else ()
        folders = self._folders(self.top)
        submissions = []
        for folder in list(filter(self._is_submission, folders)):
            submission = self._submission_or_none(folder)
            if submission:
                submissions.append(submission)
        has_code = any(submission.code is not None for submission in submissions)
        is_copy = len(folders) > 1 and not has_code
        return tuple(replace(s, of_results=is_copy, needs_code=has_code) for s in submissions)

    def _archives_beside(self, submissions: Sequence[Submission]) -> tuple[Unread, ...]:
        """Return the archives in a folder of submissions, without those of the submissions."""
        if submissions[0].place == self.top:
            return ()
        names = {submission.name for submission in submissions}
        archives = []
        for entry in self._entries(self.top).values():
            stem = stem_of(entry.name)
            is_known = not names.isdisjoint({stem, stem.removeprefix(OFFICIAL_ARCHIVE)})
            if entry.file and is_archive_name(entry.name) and not is_known:
                place = self.top.child(entry.name)
                archives.append(Unread(place, "an archive beside submissions"))
        return tuple(archives)

    def _is_submission(self, folder: Place) -> bool:
        """Return whether a folder has results and systems; links out of the tree count as such."""
        self._entries(folder)  # one that cannot be read is left, and reported
        has_systems = self._has_folder(folder, "systems")
        if not self._has_folder(folder, "results"):
            results = self._child(folder, "results")
            if has_systems and results and not results.link:
                reason = os.strerror(errno.ENOTDIR)
                self._leave(folder.child("results"), NotADirectoryError(errno.ENOTDIR, reason))
            return False
        if has_systems:
            return True
        for system in self._folders_in(folder, "results"):
            for benchmark in self._folders(system):
                if any(is_result_log(name) for name in self._entries(benchmark)):
                    return True
        return False

    def _submission_or_none(self, folder: Place) -> Submission | None:
        """Return a submission; None if it cannot be read, for whatever reason."""
        try:
            return self._submission(folder)
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - it ends the reading of no other
            reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            self.unread[folder.label] = Unread(folder, str(reason), Why.UNCHECKED)
            return None

    def _submission(self, folder: Place) -> Submission:
        params: dict[str, Params] = {}
        flags = self._flags(folder, params, top_params)
        systems = self._folders_in(folder, "results")
        descriptions = self._descriptions(folder)
        result_sets = []
        for system in systems:
            for benchmark in self._benchmarks(system):
                result_sets.append(self._submitted_set(system, benchmark, flags, params))
        return Submission(
            place=folder,
            name=folder.path.resolve().name,
            systems=descriptions,
            result_sets=tuple(result_sets),
            flags=flags,
            params=params,
            entries=list_tree(folder.location, self.folder_cache),
            tested=tuple(map(self._system_folder, systems)),
        )

    def _benchmarks(self, system: Place) -> Iterator[Place]:
        """Yield the folders of benchmarks; in HPC they are in ``strong`` and ``weak``."""
        for folder in self._folders(system):
            if folder.name in SCALINGS:
                yield from self._folders(folder)
            else:
                yield folder

    def _descriptions(self, submission: Place) -> tuple[Place, ...]:
        folder = self._inside_child(submission, "systems")
        if folder is None:
            return ()
        descriptions = []
        for name, entry in self._entries(folder).items():
            if entry.file and name.endswith(".json") and not entry.hidden:
                descriptions.append(folder.child(name))
        return tuple(descriptions)

    def _system_folder(self, system: Place) -> SystemFolder:
        names = tuple(folder.name for folder in self._folders(system))
        return SystemFolder(system, names, self._text(system, "privateid.json"))

    # ---- one result set -------------------------------------------------------------------

    def _submitted_set(
        self, system: Place, folder: Place, flags: frozenset[str], params: dict[str, Params]
    ) -> ResultSet:
        scaling = folder.label[len(system.label) :].split("/")[1:-1]  # a folder between them
        name = SetName(system.name, folder.name, *scaling)
        flags |= self._flags(system, params, inner_params)
        flags |= self._flags(folder, params, inner_params)
        logs = []
        for entry in self._entries(folder).values():
            if is_result_log(entry.path) and entry.file:
                logs.append(_file(folder, entry))
        return self._result_set(folder, name, flags, logs)

    def _result_set(
        self, folder: Place, name: SetName, flags: frozenset[str], logs: Sequence[Place]
    ) -> ResultSet:
        entry_names = self._entries(folder).keys()
        others = entry_names - {log.name for log in logs}
        pruned: list[Place] = []
        if name.scaling_mode == "weak":
            pruned = self._pruned(folder)
            others -= {log.folder.name for log in pruned}
        scaling = self._text(folder, "scaling.json")
        power = None
        if "power" in entry_names:
            power = self._power(folder.child("power"))
        return ResultSet(
            place=folder,
            system=name.system,
            benchmark=name.benchmark,
            logs=tuple(logs),
            pruned=tuple(pruned),
            others=tuple(sorted(others)),
            flags=flags,
            scaling=scaling,
            scaling_mode=name.scaling_mode,
            power=power,
        )

    def _pruned(self, folder: Place) -> list[Place]:
        """Return the logs of models that a set of weak scaling leaves out."""
        logs: list[Place] = []
        pruned = self._inside_child(folder, PRUNED)
        if pruned is not None and is_folder(pruned.location):
            for entry in self._entries(pruned).values():
                if is_result_log(entry.path) and entry.file:
                    logs.append(_file(pruned, entry))
        return logs

    def _power(self, folder: Place) -> PowerFolder:
        if not is_folder(folder.location):
            return PowerFolder(folder, None)
        results: dict[str, tuple[str, ...] | None] = {}
        for name, entry in self._entries(folder).items():
            results[name] = None
            if entry.folder:
                results[name] = tuple(self._entries(folder.child(name)))
        return PowerFolder(folder, results)

    def _flags(
        self, folder: Place, params: dict[str, Params], parse: Callable[[bytes], Params]
    ) -> frozenset[str]:
        """Return the flags of a folder; what its file says is added to ``params``."""
        file = self._inside_child(folder, PARAMS)
        if file is None:
            return frozenset()
        if file.label not in params:
            try:
                params[file.label] = parse(read_file(file.location, _MAX_BYTES))
            except TooLargeError as error:
                params[file.label] = Params()
                self._leave(file, error)
            except OSError as error:
                params[file.label] = Params(crash=f"it cannot be read ({error.strerror})")
        return params[file.label].flags

    def _text(self, folder: Place, name: str) -> str | None:
        """Return the text of a file in a folder; None if there is no such file."""
        file = self._inside_child(folder, name)
        if file is None or self._entries(folder)[name].folder:
            return None
        try:
            return read_file(file.location, _MAX_BYTES).decode("utf-8", "replace")
        except OSError as error:
            self._leave(file, error)
            return None

    # ---- folders --------------------------------------------------------------------------

    def _inside_child(self, folder: Place, name: str) -> Place | None:
        """Return an entry to open by its name; None if it is missing or leads out."""
        entry = self._child(folder, name)
        if entry is None or not self._inside(folder, entry):
            return None
        return folder.child(name)

    def _folders_in(self, folder: Place, name: str) -> list[Place]:
        child = self._inside_child(folder, name)
        return self._folders(child) if child else []

    def _has_folder(self, folder: Place, name: str) -> bool:
        entry = self._child(folder, name)
        return entry is not None and entry.folder

    def _child(self, folder: Place, name: str) -> FolderEntry | None:
        try:
            return self.folder_cache[folder.location].get(name)
        except OSError:
            return None

    def _folders(self, folder: Place) -> list[Place]:
        entries = self._entries(folder).values()
        return [folder.child(entry.path) for entry in entries if entry.folder and not entry.hidden]

    def _entries(self, folder: Place) -> Mapping[str, FolderEntry]:
        """Return the entries of a folder by name, without links that lead out of the argument.

        They are sorted; their paths are their names.
        """
        try:
            entries = self.folder_cache[folder.location]
        except OSError as error:
            if is_folder(folder.location):
                self._leave(folder, error)
            return {}
        if all(entry.link is None for entry in entries.values()):
            return entries
        return {name: entry for name, entry in entries.items() if self._inside(folder, entry)}

    def _inside(self, folder: Place, entry: FolderEntry) -> bool:
        """Return whether an entry, links resolved, is within the argument; if not, skip it."""
        if entry.link is None:
            return True
        place = folder.child(entry.path)
        self.has_links = True
        path = place.local
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            target = Path()
        # A link to a folder above itself would never end.
        inside = target.is_relative_to(self.top.local.resolve())
        inside = inside and not path.parent.resolve().is_relative_to(target)
        if not inside:
            self.skipped.setdefault(place.label, place)
        return inside


def _only_raw(contents: Input, workspace: Workspace) -> Input:
    """Return what is neither code nor a build in a workspace; all of it if that has no logs."""
    logs = [log for log in contents.logs if workspace.is_raw(log.path)]
    if not logs:
        return contents
    result_sets = [files for files in contents.result_sets if workspace.is_raw(files.place.path)]
    return replace(contents, logs=tuple(logs), result_sets=tuple(result_sets))


def _file(folder: Place, entry: FolderEntry) -> Place:
    """Return a file in a folder; the size of a link is not that of the file it leads to."""
    return folder.child(entry.path, entry.size if entry.link is None else None)


# ---- the files of a folder without a submission: logs, archives, and what is not read ----------

ENCRYPTED = "an archive, not a log"
_TEXT_SUFFIXES = frozenset({".txt", ".log", ".out", ".mllog"})
_BACKUP_SUFFIXES = (".bak", ".old", ".orig", "~")
# A log may have any other ending: that of a job (.o4711), a stream (.stderr) or a process (.0). Of
# these files, code and reports quote lines of logs, and data and models take long to read.
_OTHER_ENDINGS = """
    bash c cc cfg conf cpp css cu cuh diff go h hpp htm html ini ipynb java js jsx md patch pl py
    pyc pyi pyx rb rs rst sarif sh tex toml ts xml yaml yml
    7z arrow avro bin ckpt csv dat db distcp feather gguf h5 hdf5 idx json jsonl ndjson nemo npy npz
    onnx parquet
    pb pickle pkl pt pth rar record safetensors sqlite tfrecord tfrecords tsv xls xlsx
    a deb dll dylib egg exe iso jar o rpm sif so sqsh whl
    avi bmp doc docx eps gif jpeg jpg mp4 pdf png ppt pptx ps svg tif tiff wav webp
    age asc enc gpg key pem sig
"""
_OTHER_SUFFIXES = frozenset(f".{ending}" for ending in _OTHER_ENDINGS.split())
_SNIFF_BYTES = 1 << 20


class Loose(Struct):
    """Takes files one by one; ``in_archive`` says that they are in an archive."""

    in_archive: bool = False
    submissions: list[Submission] = field(default_factory=list)
    logs: list[Place] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    result_sets: list[ResultSet] = field(default_factory=list)
    power: list[Place] = field(default_factory=list)
    _spool: Spool | None = None

    @property
    def contents(self) -> Input:
        """All that was taken."""
        return Input(
            submissions=tuple(self.submissions),
            logs=tuple(self.logs),
            unread=tuple(self.unread),
            result_sets=tuple(self.result_sets),
            power=tuple(self.power),
        )

    def take(self, file: Place) -> None:
        """Take a file: by its name alone if it is that of a result, else by its content.

        Raises:
            OSError: the file cannot be read, for another reason than its permissions.
        """
        if is_result_log(file.name):
            self.logs.append(file)
            return
        if "/power/" in f"/{file.label}":
            self.power.append(file)
        is_power = is_power_log(file.name) and file.folder.folder.name == "power"
        if is_power or _suffix_of(file.name) in _OTHER_SUFFIXES:
            return
        try:
            content = content_of(file.path, _SNIFF_BYTES)
        except PermissionError:
            self._leave(file, NO_PERMISSION)
            return
        if not content.is_archive:
            self._take_text(replace(file, compression=content.compression), content)
        elif self.in_archive:
            self._leave(file, "an archive in an archive")
        else:
            try:
                self.take_archive(file, content)
            except ArchiveError as error:
                self._leave(file, str(error))

    def take_archive(self, file: Place, content: Content) -> None:
        """Take the contents of an archive.

        Raises:
            ArchiveError: it is damaged, or must not be read.
            OSError: it cannot be read.
        """
        from mlperf_pkg.infra.archives import open_archive  # noqa: PLC0415 - slow to import

        top = open_archive(file.path, content, self._spool_of_all)
        for name, reason in top.listing.left_out.items():
            self._leave(file.child(name), f"{reason} in an archive")
        contents = _InputFinder(_below_only_folder(Place(top, file.label)), in_archive=True).find()
        self.submissions += contents.submissions
        self.logs += contents.logs
        self.power += contents.power
        self.unread += contents.unread
        self.result_sets += contents.result_sets

    def _take_text(self, file: Place, content: Content) -> None:
        """Take a file that is a log if some line of its head holds a record."""
        inner = PurePath(file.name).stem if content.compression else file.name
        suffix = _suffix_of(inner)
        # A script that looks for records names the marker, too, and may have any ending.
        start = TOKEN if suffix in ("", *_TEXT_SUFFIXES) else TOKEN + rb"\s*\{"
        if content.problem:
            self._leave(file, content.problem)
        elif content.is_encrypted:
            self._leave(file, ENCRYPTED)
        elif content.compression and compression_of(content.head):
            self._leave(file, "compressed twice")
        elif re.search(start, content.text) or is_result_log(inner):
            original = _original_of(file)
            if original:
                self._leave(file, f"a backup of {original}", Why.NOT_A_LOG)
            else:
                self.logs.append(file)
        else:
            self._leave_text(file, content, suffix)

    def _leave_text(self, file: Place, content: Content, suffix: str) -> None:
        """Leave a file without a record in its head; name it if it may be meant as a log."""
        from mlperf_pkg.log.line_findings import near_log  # noqa: PLC0415 - most files are logs

        reason = old_format(content.text)
        problem = near_log(content.text, file.label)
        if reason:
            self._leave(file, reason)
        elif problem and not _original_of(file):
            self.unread.append(Unread(file, problem.reason, Why.DAMAGED, problem.hint))
        elif content.head and suffix in _TEXT_SUFFIXES:
            self._leave(file, f"no line contains '{TOKEN.decode()}'", Why.NOT_A_LOG)

    def _leave(self, file: Place, reason: str, why: Why = Why.PROBLEM) -> None:
        self.unread.append(Unread(file, reason, why))

    def _spool_of_all(self) -> Spool:
        self._spool = self._spool or Spool()
        return self._spool


def _suffix_of(name: str) -> str:
    """Return the suffix of a name in lower case; ``PurePath`` takes ten times as long."""
    stem, _, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if stem and suffix else ""


def _original_of(file: Place) -> str | None:
    """Return the name of the file beside this one of which it is a backup, None if it is not one.

    A backup of an editor or a repair still has what was corrected: it is neither judged nor
    repaired.
    """
    original = next(map(file.name.removesuffix, filter(file.name.endswith, _BACKUP_SUFFIXES)), "")
    return original if original and (file.path.parent / original).is_file() else None


def _below_only_folder(top: Place) -> Place:
    """Return the only folder of an archive, as most have one that contains everything."""
    assert isinstance(top.location, ListedPath)  # noqa: S101
    names = top.location.names
    if len(names) == 1 and names[0] != "results" and (top.location / names[0]).is_dir():
        return top.child(names[0])
    return top


# ---- several arguments, and parts of submissions ------------------------------------------------


def labels(arguments: Sequence[str]) -> list[str]:
    """Return what begins the paths of each argument: nothing for one, else the argument itself."""
    if len(arguments) == 1:
        return [""]
    return [with_slashes(path).rstrip("/") for path in arguments]


_DEPTH = 3  # results/<system>/<strong or weak>/<benchmark>


def find_inputs(arguments: Sequence[str]) -> tuple[Input, ...]:
    """Find the inputs of a command; those named twice are read once.

    Raises:
        UserError: as ``find_input``.
    """
    inputs = list(map(find_input, arguments, labels(arguments)))
    return each_once(arguments, inputs)


def find_parts(arguments: Sequence[str]) -> tuple[Input, ...]:
    """Find the inputs of a command as ``find_inputs``, each as ``find_part`` does.

    Raises:
        UserError: as ``find_input``.
    """
    inputs = list(find_inputs(arguments))
    for index, prefix in enumerate(labels(arguments)):
        if inputs[index].every_log:
            inputs[index] = find_part(arguments[index], prefix)
    return tuple(inputs)


def find_part(
    argument: str, prefix: str = "", wanted: Callable[[ResultSet], bool] = lambda _: True
) -> Input:
    """Find an input as ``find_input`` does, with only the result sets that are ``wanted``.

    A folder below ``results/`` of a submission is that part of it: its result sets have the system
    names of the tree, and their systems are described.

    Raises:
        UserError: as ``find_input``.
    """
    path = Path(argument).resolve()
    contents = find_input(argument, prefix)  # raises if something is wrong with the argument
    tree = _tree_around(path)
    if tree:
        whole = with_slashes(os.path.relpath(tree))
        contents = find_input(whole, prefix and whole)
    parts = [_part(submission, path, wanted) for submission in contents.submissions]
    return replace(contents, submissions=tuple(parts))


def _tree_around(path: Path) -> Path | None:
    """Return the submission of which a path is ``results/`` or a folder below it, if any."""
    if path.is_dir():
        for folder in (path, *path.parents)[: _DEPTH + 1]:
            if folder.name == "results" and (folder.parent / "systems").is_dir():
                return folder.parent
    return None


def _part(submission: Submission, path: Path, wanted: Callable[[ResultSet], bool]) -> Submission:
    """Return a submission with the result sets in ``path`` or around it, and its systems."""

    def is_part(files: ResultSet) -> bool:
        folder = files.place.path  # all of an archive that was named counts
        is_within = isinstance(folder, ListedPath) or folder.resolve().is_relative_to(path)
        return is_within and wanted(files)

    sets = tuple(filter(is_part, submission.result_sets))
    return replace(submission, result_sets=sets, entries=())


# ---- arguments that name the same logs: these are judged once -----------------------------------


def each_once(arguments: Sequence[str], inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Return the inputs, each without contents if another one has all of them.

    Of equal inputs the first stays. Links are followed to tell what is the same.
    """
    if len(inputs) == 1:
        return tuple(inputs)
    parts = [{str(place.path.resolve()) for place in _places(contents)} for contents in inputs]
    read = list(inputs)
    for index, argument in enumerate(arguments):
        whole = _whole(parts, index)
        if whole is None:
            continue
        if argument == arguments[whole]:
            reason = f"it is the same as {argument}"
        else:
            reason = f"{arguments[whole]} has the same logs"
        name = with_slashes(argument).rstrip("/")
        place = Place(_places(inputs[index])[0].location, name)
        read[index] = Input(unread=(Unread(place, reason, Why.TWICE),))
    return tuple(read)


def _whole(parts: Sequence[set[str]], index: int) -> int | None:
    """Return the first other part that has all of a part, or is an equal one before it."""
    part = parts[index]
    for other_index, other in enumerate(parts):
        if part < other or (part == other and other_index < index):
            return other_index
    return None


def _places(contents: Input) -> list[Place]:
    """Return the logs and the submissions of an input."""
    return [*contents.every_log, *(submission.place for submission in contents.submissions)]
