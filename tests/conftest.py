"""The rulebook is compiled before the tests, as ``make test`` does: hundreds of them start a
process.
"""

import atexit
import fcntl
import gc
import os
import shutil
import signal
import tempfile
import textwrap
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.compile import compile_rulebook
from mlperf_pkg.rulebook.documents import COMPILED
from tests.helpers.examples import SHARE

HERE = Path(__file__).parent
COMPILED_LAST = HERE / "tools" / "upstream" / "__pycache__"
MEMORY = Path("/dev/shm")
ENOUGH = 4 << 30  # bytes; all tests take less than a tenth of it at any time
ID_WIDTH = 40  # characters of the name of a case
GZIP = r"\x1f\x8b"  # how compressed bytes begin
LONGEST = 400  # characters of a value that are shortened to a name, as some are megabytes
# How long an example takes says nothing on a machine that does other things too.
settings.register_profile(
    "tests",
    max_examples=100 // SHARE,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")  # else that of --hypothesis-profile
pytest_plugins = ("tests.helpers.references", "tests.helpers.stored", "tests.helpers.wheels")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", action="store_true", help="store what cases yield, see stored.py")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected: none of their objects is garbage
    os.environ.pop("FORCE_COLOR", None)  # which a CI server may set
    if not os.environ.get("TMPDIR") and _has_room(MEMORY):
        # To remove a file of a disk can take milliseconds, and the tests write tens of thousands.
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
    # A job in the background ignores SIGINT, and so would all that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):  # which only the processes of pytest-xdist have
        # One cache for all processes, not that of the user: they inherit the variable.
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="cache-")
        config.add_cleanup(partial(shutil.rmtree, os.environ["XDG_CACHE_HOME"]))
        rules = data_folder("rules")
        changed = max(path.stat().st_mtime for path in rules.rglob("*.yaml"))
        done = rules / COMPILED
        if not done.exists() or done.stat().st_mtime < changed:
            with suppress(RulebookError):  # the tests of the rulebook report it
                compile_rulebook(rules)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a case after its value where pytest would only count: lists, mappings, structs."""
    if isinstance(val, str | bytes | int | float | None) or callable(val):
        return None
    value = sorted(val, key=str) if isinstance(val, set | frozenset) else getattr(val, "name", val)
    text = str(value)
    if " at 0x" in text or GZIP in text:  # another one in each process, or with the time
        return None
    return textwrap.shorten(text[:LONGEST], ID_WIDTH, placeholder="...")


def _has_room(folder: Path) -> bool:
    """Whether programs may run in a folder of the memory, and it has room for the tests."""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(folder).free > ENOUGH


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect in one process after the other where nothing is compiled: the first compiles for all.

    To compile the tests and what they import takes as long as all else of a collection.
    """
    if COMPILED_LAST.exists():
        return (yield)
    folder = os.open(HERE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        return (yield)
    finally:
        os.close(folder)


def pytest_collection_finish() -> None:
    """Exclude what all tests share from garbage collection, which copies its memory in forks."""
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # otherwise extension modules report leaks
