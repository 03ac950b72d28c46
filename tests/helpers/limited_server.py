"""Run commands within limits, each in a fork of this process, which has imported them.

It reads requests and writes answers as lines of JSON. A program of its own: to a child, Linux
counts the memory of the process that forked it, and that of a test runner is large.
"""

import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from mlperf_pkg.checker import check, reading
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.cli.main import SECTIONS, cli, main
from mlperf_pkg.submission.find import find_inputs, find_parts
from mlperf_pkg.submission.model import Input


def serve(seconds: int) -> None:
    """Answer each request with the exit status and the peak memory of a process, in KiB."""
    for name in chain.from_iterable(SECTIONS.values()):
        import_module(f"mlperf_pkg.cli.{name}")
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(seconds, *json.loads(line))
            return
        _, status, usage = os.wait4(child, 0)
        answer = [os.waitstatus_to_exitcode(status), usage.ru_maxrss]
        print(json.dumps(answer), flush=True)  # noqa: T201


def _run(seconds: int, commands: list[list[str]], folder: str, parallel: bool) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(2 * seconds + 5 * len(commands))
    if parallel:
        reading.PARALLEL_FROM_BYTES = 0
    _check_once()
    for number, arguments in enumerate(commands):
        paths = (os.devnull, f"{folder}/{number}.out", f"{folder}/{number}.err")
        for descriptor, path in enumerate(paths):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), descriptor)
        sys.argv[1:] = arguments
        if number == len(commands) - 1:
            main()  # which ends this process
        try:
            cli(prog_name="mlperf-pkg")
        except SystemExit as end:
            Path(folder, f"{number}.status").write_text(str(end.code or 0))
        sys.stdout.flush()
        sys.stderr.flush()


def _check_once() -> None:
    """Find an input once, and check it once for each set of options."""
    check_inputs = check.check_inputs
    done = dict[tuple[object, ...], tuple[object, Checked]]()

    def checked(inputs: tuple[Input, ...], options: Options) -> Checked:
        key = (*map(id, inputs), repr(replace(options, observer=None)))
        if key not in done:
            done[key] = inputs, check_inputs(inputs, options)  # no others have the id of these
        return done[key][1]

    _replace("check_inputs", checked)
    for find in (find_inputs, find_parts):
        _replace(find.__name__, _once(find))


def _once(find: Callable[[Sequence[str]], tuple[Input, ...]]) -> Callable[..., tuple[Input, ...]]:
    """Return what finds the same inputs where it is called with the same arguments."""
    find_once = cache(find)
    return lambda arguments: find_once(tuple(arguments))


def _replace(name: str, function: Callable[..., object]) -> None:
    """Replace a function of this name in all modules that have imported it."""
    for module in list(sys.modules.values()):
        if name in vars(module):
            vars(module)[name] = function
