"""Writing a submission tree: whole or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mlperf_pkg.build.contents import TreeFile
from mlperf_pkg.build.manifest import MANIFEST, Entry, is_ours, manifest_text
from mlperf_pkg.errors import UserError

_CHUNK = 1 << 20


def write_tree(target: Path, files: Sequence[TreeFile], *, force: bool) -> None:
    """Write the files and their manifest into a new folder, then give it the name ``target``.

    Nobody ever sees a part of the tree. Whatever goes wrong, an interruption included, leaves
    neither debris nor a change to what ``target`` was. Files are copied byte for byte, without
    links; of their modes only that of being executable is kept.

    Raises:
        UserError: ``target`` exists and may not be replaced, or the tree cannot be written.
    """
    refuse_to_replace(target, force=force)
    try:
        with new_folder(target) as folder:
            entries = [_write(folder, file) for file in files]
            _write(folder, TreeFile(MANIFEST, manifest_text(entries).encode()))
            sync_folders(folder)
            put_in_place(folder, target)
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {error}") from error


def refuse_to_replace(target: Path, *, force: bool) -> None:
    """Only a tree that this tool has built is replaced, and only by ``force``.

    Raises:
        UserError: there is something else, or no ``force``.
    """
    if not target.exists() and not target.is_symlink():
        return
    if not is_ours(target):
        raise UserError(
            f"{target}: exists and was not built by mlperf-pkg (it holds no {MANIFEST} of ours),"
            " so it is never replaced: choose another --output"
        )
    if not force:
        raise UserError(f"{target}: exists already; --force replaces it")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """An empty folder beside ``target`` that is gone at the end, unless renamed."""
    made = [path for path in (target.parent, *target.parent.parents) if not path.exists()]
    folder = _beside(target, "new")
    try:
        folder.mkdir(parents=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for path in made:
            with suppress(OSError):  # not empty: the tree is there
                path.rmdir()


def _beside(target: Path, what: str) -> Path:
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.{what}"


# ---- files --------------------------------------------------------------------------------


def _write(folder: Path, file: TreeFile) -> Entry:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as stream:
        for chunk in _chunks(file.content):
            digest.update(chunk)
            size += stream.write(chunk)
        if isinstance(file.content, Path) and os.access(file.content, os.X_OK):
            _make_executable(stream)
        stream.flush()
        os.fsync(stream.fileno())
    return Entry(file.path, size, digest.hexdigest(), file.origin)


def _chunks(content: bytes | Path) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _make_executable(stream: BinaryIO) -> None:
    """For all who may read it."""
    mode = os.fstat(stream.fileno()).st_mode
    os.fchmod(stream.fileno(), mode | (mode & 0o444) >> 2)


# ---- folders ------------------------------------------------------------------------------


def sync_folders(folder: Path) -> None:
    """Put a folder and all below it on the disk."""
    for path, _, _ in os.walk(folder):
        _sync(Path(path))


def _sync(folder: Path) -> None:
    """As far as the file system can: not all of them know how to sync a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_in_place(folder: Path, target: Path) -> None:
    """Rename; a tree that was there before is put aside first and removed last."""
    old = _beside(target, "old")
    try:
        if target.exists():
            target.rename(old)
        folder.rename(target)
    finally:
        if not folder.exists():
            shutil.rmtree(old, ignore_errors=True)
        elif old.exists() and not target.exists():
            old.rename(target)
    _sync(target.parent)
