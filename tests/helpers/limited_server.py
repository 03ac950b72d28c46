"""Run commands within limits, each in a fork of this process, which has imported them.

It reads requests and writes answers as lines of JSON. A program of its own: to a child, Linux counts the memory of the
process that forked it, and that of a test runner is large.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
from importlib import import_module

from mlperf_pkg.checker import reading
from mlperf_pkg.cli.main import COMMANDS, main

_IMPORTED = ("check", "pack", "rcp", "verify", "watch")


def serve(seconds: int) -> None:
    """Answer each request with the exit status and the peak memory of a process, in KiB."""
    for name in _IMPORTED:
        import_module(COMMANDS[name])
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(seconds, *json.loads(line))
            return
        _, status, usage = os.wait4(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_maxrss]), flush=True)  # noqa: T201


def _run(seconds: int, arguments: list[str], out: str, err: str, parallel: bool) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(2 * seconds)
    for descriptor, path in enumerate((os.devnull, out, err)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), descriptor)
    if parallel:
        reading.PARALLEL_FROM_BYTES = 0
    sys.argv[1:] = arguments
    main()
