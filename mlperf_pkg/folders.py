"""Folders that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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


def sync(folder: Path) -> None:
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
    sync(target.parent)


def _beside(target: Path, what: str) -> Path:
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.{what}"
