"""What takes long to import, as a process: a fork of this one, which may have imported it."""

import logging
import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import TypeVar

T = TypeVar("T")


def forked(function: Callable[[], object], cwd: Path) -> CompletedProcess[str]:
    """Call a function in a folder; its exit status and what it prints."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # no thread has a lock that a fork needs
        files = [Path(folder, name) for name in ("output", "errors")]
        process = get_context("fork").Process(target=_call, args=(function, cwd, *files))
        process.start()
        process.join()
        assert process.exitcode is not None
        return CompletedProcess("", process.exitcode, *(file.read_text("utf-8") for file in files))


def apart(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a new process, which is small: it forks in a fraction of the time."""
    with ProcessPoolExecutor(1, get_context("spawn")) as small:
        return small.submit(function, *arguments).result()


def _call(function: Callable[[], object], folder: Path, *files: Path) -> None:
    sys.stdout, sys.stderr = (file.open("w", encoding="utf-8") for file in files)
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    warnings.resetwarnings()
    os.chdir(folder)
    function()
