"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.stores import StoredFile, is_within

_Content = str | bytes
_Files = Mapping[Path, _Content] | Mapping[Path | StoredFile, _Content]

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


def write_whole(path: Path | StoredFile, content: str | bytes, *, replace: bool) -> None:
    """Write a file so that nobody ever sees a part of it; text becomes UTF-8.

    It is written under a temporary name in the same folder and then renamed, or put into a store
    by one request. Without ``replace``
    a file that exists is never touched, not even one that appears meanwhile.

    Raises:
        UserError: the file exists and is not to be replaced, or it cannot be written.
    """
    write_several({path: content}, replace=replace)


def write_several(files: _Files, *, replace: bool) -> None:
    """Write files of any folders and stores: all of them or none.

    Of each of them the same holds as of ``write_whole``; none has its name before all are written.

    Raises:
        UserError: one exists and is not to be replaced, or one cannot be written.
    """
    mark = os.urandom(8).hex()
    here: dict[Path, str | bytes] = {}
    away: dict[StoredFile, str | bytes] = {}
    for target, content in files.items():
        if isinstance(target, StoredFile):
            away[target] = content
        else:
            here[target] = content
    temporary = {
        path: path.parent / f".mlperf-pkg-{mark}-{number}.tmp" for number, path in enumerate(here)
    }
    try:
        for path, written in temporary.items():
            with _told(path):
                _write(written, _data(here[path]))
        with _stored(away, replace):
            _place(temporary, replace)
    finally:
        for each in temporary.values():
            with suppress(OSError):
                each.unlink()


@contextmanager
def together(folder: Path, names: Sequence[str], *, replace: bool) -> Iterator[Path]:
    """A private folder to write files ``names`` in, which are moved to ``folder`` at the end.

    Raises:
        UserError: as ``write_together``.
    """
    if taken := [name for name in names if (folder / name).exists()] if not replace else []:
        raise UserError(f"{folder / taken[0]}: exists already and is not overwritten")
    new = folder / f".mlperf-pkg-{os.urandom(8).hex()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new.mkdir(mode=0o700)
        yield new
        _place({folder / name: new / name for name in names}, replace)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written into: {error.strerror}") from error
    finally:
        import shutil  # noqa: PLC0415 - slow to import

        shutil.rmtree(new, ignore_errors=True)


def _place(temporary: Mapping[Path, Path], replace: bool) -> None:
    """Give files their names; where one cannot have it, those made anew go again."""
    placed: list[Path] = []
    try:
        for path, written in temporary.items():
            with _told(path):
                (os.replace if replace else _rename_anew)(written, path)
            placed.append(path)
    except UserError:
        for path in () if replace else placed:
            path.unlink()
        raise


@contextmanager
def _stored(files: Mapping[StoredFile, str | bytes], replace: bool) -> Iterator[None]:
    """The files of stores written; where something fails then, those made anew go again."""
    placed: list[StoredFile] = []
    try:
        for path, content in files.items():
            path.write(_data(content), replace=replace)
            placed.append(path)
        yield
    except UserError:
        for path in () if replace else placed:
            path.unlink()
        raise


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Failures of the system as messages that name the file."""
    try:
        yield
    except FileExistsError as error:
        raise UserError(f"{path}: exists already and is not overwritten") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error


def write_together(folder: Path, files: Mapping[str, str | bytes], *, replace: bool) -> None:
    """As ``write_several``, into a folder, which is made if there is none.

    Raises:
        UserError: one exists and is not to be replaced, or the folder cannot be written into.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written into: {error.strerror}") from error
    write_several({folder / name: content for name, content in files.items()}, replace=replace)


def refuse_within(path: Path | StoredFile, inputs: Sequence[str]) -> None:
    """Refuse to write where a command reads.

    Raises:
        UserError: ``path`` is one of ``inputs`` or inside one.
    """
    if isinstance(path, StoredFile):
        within = any(is_within(path.url, place) for place in inputs)
    else:
        within = any(path.resolve().is_relative_to(Path(place).resolve()) for place in inputs)
    if within:
        raise UserError(f"{path}: refusing to write inside an input folder")


def _data(content: str | bytes) -> bytes:
    return content.encode("utf-8") if isinstance(content, str) else content


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _rename_anew(temporary: Path, path: Path) -> None:
    """Rename to a name that is free, which only a link does in one step."""
    try:
        path.hardlink_to(temporary)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without links: take the name first, then put the file in its place.
        path.open("xb").close()
        temporary.replace(path)
