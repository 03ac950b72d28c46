"""Write a submission tree completely or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from mlperf_pkg.commands.builder.contents import PlannedFile, chunks
from mlperf_pkg.commands.builder.foreign import (
    lost,
    others_in,
    refuse_foreign,
    refuse_to_change,
)
from mlperf_pkg.commands.builder.manifest import MANIFEST, ManifestEntry, is_ours, manifest_text
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.files import new_folder


def write_tree(
    target: Path,
    files: Sequence[PlannedFile],
    accept: Callable[[Path], None] = lambda _: None,
    *,
    force: bool,
    division: str | None = None,
) -> None:
    """Write the files and their manifest into a new folder, then give it the name ``target``.

    Nobody ever sees a part of the tree: an error or an interruption leaves neither debris nor a
    change to ``target``. Files are copied byte for byte, never linked; of their mode only the
    permission to execute is kept. ``accept`` gets the whole tree before it has its name, and may
    raise. ``division`` is the one that is built, None for both.

    Raises:
        UserError: ``target`` exists and must not be replaced, or the tree cannot be written.
    """

    def replaces(there: Path) -> bool:
        try:
            refuse_to_replace(there, files, force=force, division=division)
        except UserError:  # it changed after the check below; new_folder puts it back
            return False
        return True

    try:
        refuse_to_replace(target, files, force=force, division=division)
        with new_folder(target, replaces) as folder:
            entries = [_write(folder, file) for file in files]
            _write(folder, PlannedFile(MANIFEST, manifest_text(entries).encode()))
            accept(folder)
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {reason_of(error)}") from error


def refuse_to_replace(
    target: Path, files: Sequence[PlannedFile], *, force: bool, division: str | None = None
) -> None:
    """Refuse to replace anything but a tree that this tool built, and that only with ``force``.

    No ``force`` is needed to add a ``division`` to a tree of another one.

    Raises:
        UserError: ``target`` exists and is not such a tree; ``force`` is needed; the tree holds
            something that was not built and is not among ``files``; or it would lose results of
            another division.
    """
    if not target.exists() and not target.is_symlink():
        return
    if not is_ours(target):
        raise UserError(
            f"{target}: exists and was not built by mlperf-pkg (it has no {MANIFEST} of this tool),"
            " so it is not replaced: choose another --output"
        )
    others = others_in(target, division)
    if not force and not others.alone:
        if not others.sets:
            raise UserError(f"{target}: exists already; --force replaces it")
        raise UserError(
            f"{target}: has results of the {division} division already; --force replaces them and"
            f" keeps those of the {others.division} division"
        )
    refuse_foreign(target, files)
    if message := lost(target, files, division):
        raise UserError(message)
    if not force:
        refuse_to_change(target, files)


# ---- files --------------------------------------------------------------------------------


def _write(folder: Path, file: PlannedFile) -> ManifestEntry:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as stream:
        for chunk in chunks(file.content):
            digest.update(chunk)
            size += stream.write(chunk)
        if isinstance(file.content, Path) and os.access(file.content, os.X_OK):
            _make_executable(stream)
        stream.flush()
        os.fsync(stream.fileno())
    return ManifestEntry(file.path, size, digest.hexdigest(), file.origin)


def _make_executable(stream: BinaryIO) -> None:
    """Allow all who may read the file to execute it, where files have such a mode."""
    if not hasattr(os, "fchmod"):  # Windows
        return
    mode = os.fstat(stream.fileno()).st_mode
    os.fchmod(stream.fileno(), mode | (mode & 0o444) >> 2)
