"""Write files and folders completely or not at all, even if the process is killed."""

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import list_tree, read_file
from mlperf_pkg.infra.stores import StoredFile, is_within
from mlperf_pkg.infra.streams import FilePart, kept

try:
    import fcntl
except ImportError:  # Windows, where folders can be neither opened nor locked
    fcntl = None  # type: ignore[assignment]

Content = str | bytes | Sequence[bytes | FilePart]  # or pieces, which a ``Keeper`` keeps
_Files = Mapping[Path, Content] | Mapping[Path | StoredFile, Content]

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_PREFIX = ".mlperf-pkg-"
_SUFFIX = ".new"
_OLD = ".old"
_FORMER = ".mlperf-pkg-former"  # in a scratch folder: the files that are being replaced
_NEXT = ".mlperf-pkg-next"  # in a scratch folder: the second name of a file that is to be moved
_MARKER = ".mlperf-pkg"  # in a scratch folder: the number of its process and its inode
_HERE = -100  # AT_FDCWD: paths are relative to the current folder
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_MOST_REPLACED = 1000  # times that a file is replaced by others before it is held
_UNUSED = 24 * 3600.0  # seconds; without locks, an older folder counts as that of a killed process
_LARGEST_CACHED = 16 << 20


def write_whole(path: Path | StoredFile, content: Content, *, replace: bool) -> None:
    """Write a file so that nobody ever sees a part of it; text is encoded as UTF-8.

    A file of this machine is written under a temporary name in the same folder, then renamed; one
    in a store is written with one request. Without ``replace`` an existing file is never touched,
    even if it appears in the meantime.

    Raises:
        UserError: the file exists and ``replace`` is not set, or it cannot be written.
    """
    write_all({path: content}, replace=replace)


def write_all(files: _Files, *, replace: bool) -> None:
    """Write files in any folders and stores, each as ``write_whole``: all of them or none.

    No file has its name before all are written, and where one cannot be replaced, those before it
    are as they were. Devices and pipes, which cannot be replaced, are
    written into at the end. The next call removes what a killed process left behind.

    Raises:
        UserError: a file exists and ``replace`` is not set, or cannot be written.
    """
    stored: dict[StoredFile, bytes] = {}
    special: dict[Path, Content] = {}
    scratch: dict[Path, Path] = {}
    temporary: dict[Path, Path] = {}
    with ExitStack() as stack, ExitStack() as undo:
        for path, content in files.items():
            if isinstance(path, StoredFile):
                stored[path] = b"".join(pieces_of(content))
            elif is_written_into(path):
                special[path] = content
            else:
                with _errors_of(path):
                    os.stat(f"{path.parent}/.")  # noqa: PTH116 - a folder, which is not created here
                    if path.parent not in scratch:
                        scratch[path.parent] = stack.enter_context(scratch_folder(path.parent))
                    temporary[path] = scratch[path.parent] / path.name
                    _write(temporary[path], content)
        for file, data in stored.items():
            file.write(data, replace=replace)
            if not replace:
                undo.callback(file.unlink)
        _rename_all(temporary, replace=replace)
        undo.pop_all()
        for path, content in special.items():
            _write_into(path, content)


def write_together(
    folder: Path, files: Mapping[str, Content], *, replace: bool, former: Collection[str] = ()
) -> None:
    """Write files into a folder; their names may contain folders.

    A folder that does not exist, or with ``replace`` one that has no other files than ``files`` and
    ``former``, is written under another name, and then has its name: a killed process leaves it as
    it was. Into another folder the files are written as by ``write_all``.

    Raises:
        UserError: a file exists and ``replace`` is not set, or the folder cannot be written into.
    """
    for name in () if replace else files:
        if (folder / name).exists():
            raise UserError(f"{folder / name} exists already; --force overwrites it")

    def is_ours(there: Path) -> bool:
        if not replace or there.is_symlink() or not there.is_dir():
            return False
        own = {*files, *former}
        return all(e.path in own for e in list_tree(there) if not e.folder or e.link)

    try:
        if not folder.exists() or (_may_be_renamed(folder) and is_ours(folder)):
            with new_folder(folder, is_ours) as new:
                for name, content in files.items():
                    (new / name).parent.mkdir(parents=True, exist_ok=True)
                    _write(new / name, content)
            return
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written into: {error.strerror}") from error
    write_all({folder / name: content for name, content in files.items()}, replace=replace)
    for name in {*former} - files.keys() if replace else ():
        (folder / name).unlink(missing_ok=True)


def _may_be_renamed(folder: Path) -> bool:
    """Return whether a folder is neither a link nor a file system nor where the process is."""
    is_here = Path.cwd().is_relative_to(folder.resolve())
    is_in_use = is_here or folder.is_symlink() or folder.is_mount()
    return not is_in_use and os.access(folder.parent, os.W_OK)


@contextmanager
def private_folder(folder: Path, names: Sequence[str], *, replace: bool) -> Iterator[Path]:
    """Provide a private folder for the files ``names``, which move to ``folder`` at the end.

    The next call removes what a killed process left behind.

    Raises:
        UserError: as ``write_together``.
    """
    try:
        with scratch_folder(folder) as private:
            temporary = {folder / name: private / name for name in names}
            for path in () if replace else temporary:
                if path.exists():
                    raise UserError(f"{path} exists already and is not overwritten")
            yield private
            for path in temporary.values():
                _sync(path)
            _rename_all(temporary, replace=replace)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written into: {error.strerror or error}") from error


def is_special(path: Path) -> bool:
    """Return whether a path is that of a device, a pipe or a socket."""
    return path.exists() and not (path.is_file() or path.is_dir())


def is_written_into(path: Path | StoredFile) -> bool:
    """Return whether a path is written into, never replaced: it is special, or of an open file."""
    if isinstance(path, StoredFile):
        return False
    return is_special(path) or _descriptor_of(path) is not None


def _descriptor_of(path: Path) -> int | None:
    """Return the number of the open file that a path names, as ``/dev/stdout`` does; else None."""
    if not path.exists():
        return None
    descriptors = Path("/proc/self/fd").resolve()
    while path.parent.resolve() != descriptors:
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return int(path.name) if path.name.isdecimal() else None


def refuse_within(path: Path | StoredFile, inputs: Sequence[str]) -> None:
    """Refuse to write where a command reads.

    Raises:
        UserError: ``path`` is one of ``inputs`` or inside one.
    """
    if isinstance(path, StoredFile):
        within = any(is_within(path.url, folder) for folder in inputs)
    else:
        target = path.resolve()
        places = [Path(place).resolve() for place in inputs]
        if target in places and target.is_file():
            raise UserError(f"{path}: refusing to overwrite an input")
        within = any(map(target.is_relative_to, places))
    if within:
        raise UserError(f"{path}: refusing to write inside an input folder")


def pieces_of(content: Content) -> Iterator[bytes]:
    """Yield content as bytes; text is encoded as UTF-8."""
    if isinstance(content, str):
        yield content.encode("utf-8")
    elif isinstance(content, bytes):
        yield content
    else:
        yield from map(kept, content)


def _write(path: Path, content: Content) -> None:
    with path.open("xb") as stream:
        stream.writelines(pieces_of(content))
        stream.flush()
        os.fsync(stream.fileno())


def _write_into(path: Path, content: Content) -> None:
    """Write into a device or a pipe, or into an open file at its current position."""
    descriptor = _descriptor_of(path)
    # Opened by its path, a file would be written from its beginning again.
    opened = path if descriptor is None else os.dup(descriptor)
    with _errors_of(path), open(opened, "wb") as stream:  # noqa: PTH123 - a path or a number
        stream.writelines(pieces_of(content))


def _rename_all(temporary: Mapping[Path, Path], *, replace: bool) -> None:
    """Give files their names; if one cannot have its name, none has, and all former files stay."""
    with ExitStack() as undo:
        for path, unnamed in temporary.items():
            if is_special(path):
                raise UserError(f"{path}: is not a regular file")
            with _errors_of(path):
                if not replace:
                    _rename_to_free(unnamed, path)
                    undo.callback(path.unlink)
                elif len(temporary) == 1:
                    unnamed.replace(path)
                else:
                    undo.callback(_restore, path, unnamed)
                    _replace_one(path, unnamed)
        undo.pop_all()


def _replace_one(path: Path, unnamed: Path) -> None:
    """Replace one file of several, and keep it in the scratch folder until all are replaced."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    former = unnamed.parent / _FORMER / path.name
    former.parent.mkdir(exist_ok=True)
    second = unnamed.with_name(_NEXT)
    try:
        with suppress(FileNotFoundError):
            os.link(path, former, follow_symlinks=False)
        second.hardlink_to(unnamed)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without links: for a moment, nothing has the name.
        with suppress(FileNotFoundError):
            path.replace(former)
        second = unnamed
    second.replace(path)


def _restore(path: Path, unnamed: Path) -> None:
    """Undo ``_replace_one``, however far it came."""
    former = unnamed.parent / _FORMER / path.name
    if _is_taken(former):
        former.replace(path)
    elif path.exists() and (not unnamed.exists() or _is_same_file(unnamed, path)):
        path.unlink()


def _rename_to_free(temporary: Path, path: Path) -> None:
    """Rename to a name that is free, which only a link does in one step."""
    try:
        path.hardlink_to(temporary)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without links: take the name first, then replace that file.
        path.open("xb").close()
        temporary.replace(path)


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Turn errors of the system into messages that name the file."""
    try:
        yield
    except FileExistsError as error:
        raise UserError(f"{path} exists already and is not overwritten") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


# ---- folders ------------------------------------------------------------------------------------


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

    It has a marker, by which the next call recognises what a killed process left behind, and
    removes it.

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
            with suppress(FileNotFoundError):
                mark = b"%d %d" % (os.getpid(), scratch.stat().st_ino)
                (scratch / _MARKER).write_bytes(mark)
        try:
            yield scratch
        finally:
            if not scratch.exists():  # any other error is only a consequence
                reason = "was removed by another program while it was in use"
                raise FileNotFoundError(errno.ENOENT, reason, str(scratch))


def _remove(folder: Path) -> None:
    """Remove a scratch folder; what is below it before its marker, by which it is recognised.

    ``rmtree`` of Python 3.14 removes the files of a folder before those below it.
    """
    with suppress(OSError):  # nearly always, it has only files
        for path in sorted(folder.iterdir(), key=lambda path: path.name == _MARKER):
            path.unlink()  # which fails if it is a folder
        folder.rmdir()
        return
    from shutil import rmtree  # noqa: PLC0415 - slow to import

    for path in folder.glob("*"):
        rmtree(path, ignore_errors=True)  # files stay
    rmtree(folder, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Remove what killed processes of this user left behind, and nothing else.

    Nothing is moved from there: a folder with the only copy of what was to be replaced stays.
    Folders that came from elsewhere, such as from an archive, do not have the marker of theirs.
    """
    for scratch in sorted(parent.glob(f"{_PREFIX}*{_SUFFIX}")):
        with suppress(OSError), _unused(scratch):
            moved = [old.name.removesuffix(_OLD) for old in scratch.glob(f"*{_OLD}")]
            moved += [former.name for former in scratch.glob(f"{_FORMER}/*")]
            if _has_mark(scratch) and all(_is_taken(parent / name) for name in moved):
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
            raise PermissionError(errno.EPERM, "the folder belongs to another user", str(scratch))
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


def _has_mark(scratch: Path) -> bool:
    """Return whether a folder has its own marker, or is empty, as its process was killed early."""
    entries = list(scratch.iterdir())
    marker = scratch / _MARKER
    if not entries or not stat.S_ISREG(marker.lstat().st_mode):
        return not entries
    mark = read_file(marker, 99)
    return mark.endswith(b" %d" % scratch.stat().st_ino) or (not mark and entries == [marker])


def _take_back(scratch: Path, parent: Path) -> None:
    """Undo what a killed process did, unless all of its files had their names."""
    files = [path for path in scratch.iterdir() if path.name not in (_MARKER, _FORMER, _NEXT)]
    named = []
    for unnamed in files:
        path = parent / unnamed.name
        if path.exists() and _is_same_file(unnamed, path):
            named.append(unnamed)
    if len(named) < len(files):
        for unnamed in named:
            _restore(parent / unnamed.name, unnamed)


def _is_taken(path: Path) -> bool:
    """Return whether something has a name, also a link to nowhere."""
    return path.exists() or path.is_symlink()


def _is_same_file(path: Path, named: Path) -> bool:
    """Return whether two names are those of one regular file, and neither is a link to it."""
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and os.path.samestat(status, named.lstat())


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
    if _is_taken(target):
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
    rename = _system_call("renameat2")
    paths = (_HERE, os.fsencode(one), _HERE, os.fsencode(other))
    return rename is not None and rename(*paths, _EXCHANGE) == 0


def _replace_in_two_steps(folder: Path, target: Path) -> None:
    """Move ``target`` aside first; where this process is killed then, ``sweep`` leaves it there."""
    old = folder.with_name(f"{folder.name}{_OLD}")
    target.rename(old)
    try:
        folder.rename(target)
    finally:
        if not target.exists():
            old.rename(target)


def _sync_all(folder: Path) -> None:
    """Have a folder and all that is in it on the disk, with one call where the system can do so.

    A call for each of a thousand files takes seconds.
    """
    sync = _system_call("syncfs")
    if sync:
        _sync(folder, sync)
        return
    for path in (folder, *(folder / e.path for e in list_tree(folder) if e.link is None)):
        with suppress(OSError):  # not all file systems know how to sync a folder
            _sync(path)


def _sync(path: Path, sync: Callable[[int], object] | None = None) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        (sync or os.fsync)(descriptor)
    finally:
        os.close(descriptor)


def _system_call(name: str) -> Any:
    """Return a function of the C library, None if it does not have it."""
    import ctypes  # noqa: PLC0415 - only a new folder needs it

    return getattr(ctypes.CDLL(None), name, None) if fcntl else None


# ---- changes of several processes --------------------------------------------------------------


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file or folder that is to be replaced: other processes wait until it is.

    One that does not exist is not held, as only one process can create it.
    """
    with ExitStack() as stack:
        for _ in range(_MOST_REPLACED):
            if not fcntl or not path.exists() or is_special(path):
                break
            held = os.open(path, os.O_RDONLY)
            stack.callback(os.close, held)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(held, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(held), path.stat()):
                    break  # else it was replaced in the meantime
        yield


# ---- a cache of strings in the user's cache folder ----------------------------------------------


def cached(name: str, make: Callable[[], str]) -> str:
    """Return the text of ``make``, from the file ``name`` of the cache if it exists.

    ``name`` contains the versions of everything that the text depends on. A folder that cannot be
    written, or has another owner, is not used.
    """
    folder = cache_folder()
    if folder is None:
        return make()
    with suppress(OSError, UnicodeDecodeError):
        text = read_file(folder / name, _LARGEST_CACHED).decode()
        if text:
            return text
    text = make()
    write_cached(name, text)
    return text


def write_cached(name: str, text: str) -> None:
    """Write the file ``name`` of the cache, as ``cached``; nothing where that is not possible."""
    folder = cache_folder()
    if folder is None:
        return
    with suppress(OSError, UserError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_special(folder / name):
            write_whole(folder / name, text, replace=True)


def cache_folder() -> Path | None:
    """Return the cache folder of mlperf-pkg, None if others own it or may write into it."""
    own = getattr(os, "getuid", None)  # Windows has a folder for each user instead
    base = os.environ.get("XDG_CACHE_HOME" if own else "LOCALAPPDATA")
    base = base or os.path.expanduser("~/.cache")  # noqa: PTH111 - no home raises there
    folder = Path(base) / "mlperf-pkg"
    if not folder.is_absolute():
        return None
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    status = existing.stat()
    is_open_to_others = existing == folder and status.st_mode & 0o022
    return folder if own is None or (status.st_uid == own() and not is_open_to_others) else None
