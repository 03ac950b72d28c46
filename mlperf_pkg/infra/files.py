"""Write files completely or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.folders import scratch_folder
from mlperf_pkg.infra.stores import StoredFile, is_within

_Content = str | bytes
_Files = Mapping[Path, _Content] | Mapping[Path | StoredFile, _Content]

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


def write_whole(path: Path | StoredFile, content: str | bytes, *, replace: bool) -> None:
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

    No file has its name before all are written. Devices and pipes, which cannot be replaced, are
    written into at the end.

    Raises:
        UserError: a file exists and ``replace`` is not set, or cannot be written.
    """
    of_machine = {path: _data(text) for path, text in files.items() if isinstance(path, Path)}
    special = {path: data for path, data in of_machine.items() if is_special(path)}
    local = {path: data for path, data in of_machine.items() if path not in special}
    stored = {file: _data(text) for file, text in files.items() if isinstance(file, StoredFile)}
    mark = os.urandom(8).hex()
    temporary = {
        path: path.parent / f".mlperf-pkg-{mark}-{number}.tmp" for number, path in enumerate(local)
    }
    try:
        for path, unnamed in temporary.items():
            with _errors_of(path):
                _write(unnamed, local[path])
        with _stored(stored, replace=replace):
            _rename_all(temporary, replace=replace)
        for path, data in special.items():
            with _errors_of(path):
                path.write_bytes(data)
    finally:
        for unnamed in temporary.values():
            with suppress(OSError):
                unnamed.unlink()


def write_together(folder: Path, files: Mapping[str, str | bytes], *, replace: bool) -> None:
    """Write files into a folder as ``write_all``; create the folder if it does not exist.

    Raises:
        UserError: a file exists and ``replace`` is not set, or the folder cannot be written into.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written into: {error.strerror}") from error
    write_all({folder / name: content for name, content in files.items()}, replace=replace)


@contextmanager
def private_folder(folder: Path, names: Sequence[str], *, replace: bool) -> Iterator[Path]:
    """Provide a private folder for the files ``names``, which move to ``folder`` at the end.

    The next call removes what a killed process left behind.

    Raises:
        UserError: as ``write_together``.
    """
    try:
        with scratch_folder(folder) as private:
            existing = [name for name in names if (folder / name).exists()]
            if existing and not replace:
                raise UserError(f"{folder / existing[0]}: exists already and is not overwritten")
            yield private
            _rename_all({folder / name: private / name for name in names}, replace=replace)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written into: {error.strerror}") from error


def is_special(path: Path) -> bool:
    """Return whether a path is that of a device, a pipe or a socket."""
    return path.exists() and not (path.is_file() or path.is_dir())


def refuse_within(path: Path | StoredFile, inputs: Sequence[str]) -> None:
    """Refuse to write where a command reads.

    Raises:
        UserError: ``path`` is one of ``inputs`` or inside one.
    """
    if isinstance(path, StoredFile):
        within = any(is_within(path.url, folder) for folder in inputs)
    else:
        within = any(path.resolve().is_relative_to(Path(folder).resolve()) for folder in inputs)
    if within:
        raise UserError(f"{path}: refusing to write inside an input folder")


def _data(content: str | bytes) -> bytes:
    return content.encode("utf-8") if isinstance(content, str) else content


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _rename_all(temporary: Mapping[Path, Path], *, replace: bool) -> None:
    """Give files their names; if one cannot have its name, remove the new ones again."""
    renamed: list[Path] = []
    try:
        for path, unnamed in temporary.items():
            if is_special(path):
                raise UserError(f"{path}: is not a regular file")
            with _errors_of(path):
                (os.replace if replace else _rename_to_free)(unnamed, path)
            renamed.append(path)
    except UserError:
        for path in () if replace else renamed:
            path.unlink()
        raise


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
def _stored(files: Mapping[StoredFile, bytes], *, replace: bool) -> Iterator[None]:
    """Write files of stores; if anything fails then, remove the new ones again."""
    written: list[StoredFile] = []
    try:
        for file, data in files.items():
            file.write(data, replace=replace)
            written.append(file)
        yield
    except UserError:
        for file in () if replace else written:
            file.unlink()
        raise


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Turn errors of the system into messages that name the file."""
    try:
        yield
    except FileExistsError as error:
        raise UserError(f"{path}: exists already and is not overwritten") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
