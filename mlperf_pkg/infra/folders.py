"""Folders written whole or not at all, also where the process is killed."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mlperf_pkg.infra.tree import walk

_PREFIX, _SUFFIX = ".mlperf-pkg-", ".new"
_OLD = ".old"
_HERE = -100  # AT_FDCWD: paths are relative to the current folder
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)


@contextmanager
def new_folder(target: Path, replaces: Callable[[Path], bool]) -> Iterator[Path]:
    """An empty folder of the name of ``target``, which takes its place at the end.

    Whatever goes wrong, an interruption included, leaves neither debris nor a change to what
    ``target`` was; what a killed process leaves, the next one removes. What is there already is
    replaced, in one step where the system can do so, if ``replaces`` says so of it. Who removes the
    new folder before the end takes it back.

    Raises:
        OSError: the folder cannot be written, or what is there is not to be replaced.
    """
    made = [path for path in (target.parent, *target.parent.parents) if not path.exists()]
    _sweep(target.parent)
    try:
        with _scratch(target.parent) as scratch:
            folder = scratch / target.name
            folder.mkdir()
            yield folder
            if folder.exists():
                _sync_all(folder)
                _put_in_place(folder, target, replaces)
    finally:
        for path in made:
            with suppress(OSError):  # not empty: the tree is there
                path.rmdir()


# ---- the place where it grows -------------------------------------------------------------


@contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    """A folder that is locked as long as this process lives, and removed at the end."""
    with ExitStack() as undo:
        scratch = None
        while scratch is None or not scratch.exists():  # another swept it before it was locked
            scratch = parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
            undo.callback(shutil.rmtree, scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            with suppress(FileNotFoundError):
                lock = os.open(scratch, os.O_RDONLY)
                undo.callback(os.close, lock)
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(lock, fcntl.LOCK_EX)
        yield scratch


def _sweep(parent: Path) -> None:
    """Remove what killed processes have left, after putting back what they had put aside."""
    for left in sorted(parent.glob(f"{_PREFIX}*{_SUFFIX}")):
        try:
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        with suppress(OSError):  # in use
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _put_back(left, parent)
            shutil.rmtree(left, ignore_errors=True)
        os.close(lock)


def _put_back(left: Path, parent: Path) -> None:
    for old in left.glob(f"*{_OLD}"):
        target = parent / old.name.removesuffix(_OLD)
        if not target.exists():
            old.rename(target)


# ---- the step that counts -----------------------------------------------------------------


def _put_in_place(folder: Path, target: Path, replaces: Callable[[Path], bool]) -> None:
    if not _moved(folder, target):
        if not replaces(target):
            raise FileExistsError(errno.EEXIST, "exists and is not to be replaced", str(target))
        if not _exchange(folder, target):
            _replace_in_two_steps(folder, target)
        elif not replaces(folder):  # it was changed in that moment
            _exchange(folder, target)
            raise FileExistsError(errno.EEXIST, "has changed meanwhile", str(target))
    with suppress(OSError):
        _sync(target.parent)


def _moved(folder: Path, target: Path) -> bool:
    """Whether nothing was there, and ``folder`` is there now."""
    if target.exists() or target.is_symlink():
        return False
    try:
        folder.rename(target)
    except OSError:
        if target.exists():  # another has put it there in that moment
            return False
        raise
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; False where the system or the file system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    paths = (os.fsencode(one), os.fsencode(other))
    return bool(rename(_HERE, paths[0], _HERE, paths[1], _EXCHANGE) == 0)


def _replace_in_two_steps(folder: Path, target: Path) -> None:
    """What was there is put aside first, where ``_sweep`` finds it, and removed last."""
    old = folder.with_name(f"{folder.name}{_OLD}")
    target.rename(old)
    try:
        folder.rename(target)
    finally:
        if not target.exists():
            old.rename(target)


def _sync_all(folder: Path) -> None:
    inner = (e.path for e in walk(folder, skip_unreadable=True) if e.folder and e.link is None)
    for path in (folder, *map(folder.joinpath, inner)):
        with suppress(OSError):  # not all file systems know how to sync a folder
            _sync(path)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
