"""Run modules with another mlperf-logging, each in a fork of this process, which imported the rest.

It reads requests and writes exit statuses as lines.
"""

import gc
import json
import os
import runpy
import sys
from importlib import import_module
from itertools import chain

from mlperf_pkg.cli.main import SECTIONS


def serve() -> None:
    """Answer each request."""
    for name in chain.from_iterable(SECTIONS.values()):
        import_module(f"mlperf_pkg.cli.{name}")
    assert "mlperf_logging" not in sys.modules
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(*json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _run(here: str, reference: str, module: str, arguments: list[str], folder: str) -> None:
    """Do as ``python -m MODULE ARGUMENTS``, which ends this process."""
    os.chdir(here)
    for descriptor, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT), descriptor)
    sys.path[:1] = [here, reference]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()
