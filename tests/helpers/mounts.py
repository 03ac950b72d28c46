"""Mounts that only one process sees, where the system lets it have some."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.helpers.forked import forked

_NOT_ALLOWED = 77
_NEW_USER = 0x10000000  # CLONE_NEWUSER of unshare(2)
_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_READ_ONLY = 1  # of mount(2): MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE
_REMOUNT = 32
_BIND = 4096
_RECURSIVE = 16384
_PRIVATE = 1 << 18


def with_own_mounts(function: Callable[[], object], cwd: Path) -> CompletedProcess[str]:
    """Call a function that mounts, as ``forked``; the test is skipped where nobody may mount."""

    def call() -> None:
        try:
            _system("unshare", _NEW_MOUNTS if os.geteuid() == 0 else _NEW_MOUNTS | _NEW_USER)
            _system("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
        except (OSError, AttributeError):
            os._exit(_NOT_ALLOWED)
        function()

    done = forked(call, cwd)
    if done.returncode == _NOT_ALLOWED:
        pytest.skip("this system lets no process have mounts of its own")
    return done


def bind(source: Path, target: Path, *, read_only: bool = False) -> None:
    """Show a folder, with what is mounted in it, at a second place."""
    paths = os.fsencode(source), os.fsencode(target)
    _system("mount", *paths, None, _BIND | _RECURSIVE, None)
    if read_only:
        _system("mount", *paths, None, _REMOUNT | _BIND | _READ_ONLY, None)


def _system(name: str, *arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
