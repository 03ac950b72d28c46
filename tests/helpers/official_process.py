"""The official tools as processes, forked from one that has already imported their libraries."""

from __future__ import annotations

import os
import runpy
import sys
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

from tests.parity.incumbent import quickened

_FORKED = get_context("forkserver")
_FORKED.set_forkserver_preload(
    [f"mlperf_logging.{name}.{name}" for name in ("package_checker", "result_summarizer")]
)


def official(module: str, *arguments: str, cwd: Path) -> CompletedProcess[str]:
    """Do as ``python -m MODULE ARGUMENTS`` in a folder."""
    with TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        process = _FORKED.Process(target=_run, args=(module, arguments, cwd, output, errors))
        process.start()
        process.join()
        assert process.exitcode is not None
        return CompletedProcess(
            arguments, process.exitcode, output.read_text("utf-8"), errors.read_text("utf-8")
        )


def _run(module: str, arguments: tuple[str, ...], folder: Path, *files: Path) -> None:
    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(folder)
    sys.argv = [module, *arguments]
    with quickened():
        runpy.run_module(module, run_name="__main__", alter_sys=True)
