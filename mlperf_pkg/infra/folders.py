"""Write folders completely or not at all, even if the process is killed."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mlperf_pkg.infra.tree import walk

try:
    import fcntl
except ImportError:  # Windows, where folders can be neither opened nor locked
    fcntl = None  # type: ignore[assignment]

_PREFIX, _SUFFIX = ".mlperf-pkg-", ".new"
_OLD = ".old"
_HERE = -100  # AT_FDCWD: paths are relative to the current folder
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_UNUSED = 24 * 3600.0  # seconds; without locks, an older folder counts as that of a killed process


@contextmanager
def new_folder(target: Path, replaces: Callable[[Path], bool]) -> Iterator[Path]:
    """Provide an empty folder with the name of ``target``, and move it to ``target`` at the end.

    An error or an interruption leaves neither debris nor a change to ``target``; what a killed
    process leaves behind, the next call removes. An existing ``target`` is replaced if
    ``replaces`` returns True for it, in one step where the system can do so. If the caller removes
    the new folder before the end, ``target`` stays as it is.

    Raises:
        OSError: the folder cannot be written, or ``target`` exists and must not be replaced.
    """
    missing = [path for path in (target.parent, *target.parent.parents) if not path.exists()]
    try:
        with scratch_folder(target.parent) as scratch:
            folder = scratch / target.name
            folder.mkdir()
            yield folder
            if folder.exists():
                _sync_all(folder)
                _install(folder, target, replaces)
    finally:
        for path in missing:
            with suppress(OSError):  # not empty: the tree is there
                path.rmdir()


# ---- the scratch folder -------------------------------------------------------------------


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Provide a private folder that is locked while this process runs, and removed at the end.

    The next call removes what a killed process left behind.

    Raises:
        OSError: the folder cannot be created, or was removed in the meantime.
    """
    sweep(parent)
    with ExitStack() as undo:
        scratch = None
        while scratch is None or not scratch.exists():  # another swept it before it was locked
            scratch = parent / f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}"
            undo.callback(_remove, scratch)
            parent.mkdir(parents=True, exist_ok=True)
            scratch.mkdir(mode=0o700)
            if fcntl:
                with suppress(FileNotFoundError):
                    lock = os.open(scratch, os.O_RDONLY)
                    undo.callback(os.close, lock)
                    with suppress(OSError):  # a file system without locks
                        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield scratch
        finally:
            if not scratch.exists():  # any other error is only a consequence
                reason = "was removed by another program while it was in use"
                raise FileNotFoundError(errno.ENOENT, reason, str(scratch))


def _remove(folder: Path) -> None:
    from shutil import rmtree  # noqa: PLC0415 - slow to import

    rmtree(folder, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Remove what killed processes left behind, after moving back what they had moved aside."""
    for scratch in sorted(parent.glob(f"{_PREFIX}*{_SUFFIX}")):
        with suppress(OSError), _unused(scratch):
            _move_back(scratch, parent)
            _take_back(scratch, parent)
            _remove(scratch)


@contextmanager
def _unused(scratch: Path) -> Iterator[None]:
    """Hold a scratch folder of a process that has ended.

    Raises:
        OSError: it is in use, or the folder of another user.
    """
    if not fcntl:
        if scratch.is_symlink() or time.time() - scratch.stat().st_mtime < _UNUSED:
            raise BlockingIOError(errno.EAGAIN, "is in use", str(scratch))
        yield
        return
    lock = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "the folder of another user", str(scratch))
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


def _move_back(scratch: Path, parent: Path) -> None:
    for old in scratch.glob(f"*{_OLD}"):
        target = parent / old.name.removesuffix(_OLD)
        if not target.exists():
            old.rename(target)


def _take_back(scratch: Path, parent: Path) -> None:
    """Remove the links of a killed process, unless all of its files were linked."""
    named = {path: _is_same(path, parent / path.name) for path in scratch.iterdir()}
    if not all(named.values()):
        for path in filter(named.get, named):
            (parent / path.name).unlink()


def _is_same(path: Path, other: Path) -> bool:
    return path.is_file() and other.is_file() and path.samefile(other)


# ---- the move to its name -----------------------------------------------------------------


def _install(folder: Path, target: Path, replaces: Callable[[Path], bool]) -> None:
    if not _moved(folder, target):
        if not replaces(target):
            raise FileExistsError(errno.EEXIST, "exists and must not be replaced", str(target))
        if not _exchange(folder, target):
            _replace_in_two_steps(folder, target)
        elif not replaces(folder):  # it has changed in the meantime
            _exchange(folder, target)
            raise FileExistsError(errno.EEXIST, "has changed in the meantime", str(target))
    with suppress(OSError):
        _sync(target.parent)


def _moved(folder: Path, target: Path) -> bool:
    """Move ``folder`` if ``target`` does not exist; return whether it was moved."""
    if target.exists() or target.is_symlink():
        return False
    try:
        folder.rename(target)
    except OSError:
        if target.exists():  # another process has created it in the meantime
            return False
        raise
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; return False if the system or the file system cannot."""
    import ctypes  # noqa: PLC0415 - only a folder that is replaced needs it

    rename = getattr(ctypes.CDLL(None), "renameat2", None) if fcntl else None
    if rename is None:
        return False
    paths = (os.fsencode(one), os.fsencode(other))
    return bool(rename(_HERE, paths[0], _HERE, paths[1], _EXCHANGE) == 0)


def _replace_in_two_steps(folder: Path, target: Path) -> None:
    """Move ``target`` aside first, so that ``sweep`` can restore it if this process is killed."""
    old = folder.with_name(f"{folder.name}{_OLD}")
    target.rename(old)
    try:
        folder.rename(target)
    finally:
        if not target.exists():
            old.rename(target)


def _sync_all(folder: Path) -> None:
    entries = walk(folder, unreadable=lambda *_: None)
    inner = (e.path for e in entries if e.folder and e.link is None)
    for path in (folder, *map(folder.joinpath, inner)):
        with suppress(OSError):  # not all file systems know how to sync a folder
            _sync(path)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
