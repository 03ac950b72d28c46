"""Standard streams that are closed or full."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli.streams import Bar
from tests.helpers.program import COMMAND, start
from tests.helpers.trees import simulated, write_set, write_submission

FULL = "standard output: No space left on device"
CLOSED = "standard output: closed"


@pytest.mark.parametrize(
    ("redirection", "status", "message"),
    [
        (">&-", 2, CLOSED),
        (">/dev/full", 2, FULL),
        ("2>&-", None, ""),
        ("2>/dev/full", None, ""),
        (">&- 2>&-", 2, ""),
        ("<&-", None, ""),
        ("<&- >&- 2>&-", 2, ""),
    ],
)
@pytest.mark.parametrize(
    ("arguments", "usual"),
    [
        ("check ACME", 0),
        ("check ACME --format json", 0),
        ("check nowhere", 2),
        ("pack ACME --force", 0),
        ("rules list", 0),
        ("--help", 0),
    ],
)
def test_standard_streams(
    tmp_path: Path, arguments: str, usual: int, redirection: str, status: int | None, message: str
) -> None:
    write_submission(tmp_path / "ACME")
    line = f"{shlex.join(COMMAND)} {arguments} {redirection}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == (usual if status is None else status)
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert "ignored" not in done.stderr
    if usual == 0:
        assert message in done.stderr


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True

    def seen(self) -> str:
        return ESCAPES.sub("", self.getvalue())


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Return a folder with enough logs to use several processes for a while."""
    log = simulated()[0]
    large = log + b"noise\n" * 200_000
    return write_set(tmp_path / "logs", (large,) * 40)


def seconds(*moments: float) -> Iterator[float]:
    yield from moments


def test_nothing_within_the_first_second() -> None:
    stream, clock = Terminal(), seconds(0.0, 0.1, 0.9, 0.95)
    bar = Bar(stream, lambda: next(clock))
    bar.begin(4, 400)
    for _ in range(4):
        bar.advance(100)
    assert stream.getvalue() == ""


def test_files_and_bytes_after_a_second() -> None:
    stream, clock = Terminal(), seconds(0.0, 1.5)
    bar = Bar(stream, lambda: next(clock))
    bar.begin(3, 3000)
    bar.advance(1000)
    bar.advance(1000)
    bar.end()
    assert "/3 files" in stream.seen()
    assert "/3.0 kB" in stream.seen()


def test_the_check_reports_every_file(many: Path) -> None:
    calls: list[tuple[str, int]] = []

    class Notes:
        def begin(self, files: int, size: int) -> None:
            calls.append(("begin", files))
            calls.append(("size", size))

        def advance(self, size: int) -> None:
            calls.append(("advance", size))

    for jobs in (1, 2):
        calls.clear()
        check([str(many)], Options(jobs=jobs, observer=Notes()))
        sizes = [size for what, size in calls if what == "advance"]
        assert calls[:2] == [("begin", 40), ("size", sum(sizes))]
        assert len(sizes) == 40


def test_silent_in_a_pipe(many: Path) -> None:
    process = start("check", many)
    _, stderr = process.communicate()
    assert stderr == b""


# ---- Ctrl-C -------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    listing = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in listing.stdout.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the processes")
def test_an_interrupt_ends_all_processes(many: Path) -> None:
    """The signal goes to the command alone; its processes must end too."""
    with start("check", many, "-j", "2") as process:
        workers: list[int] = []
        while len(workers) < 2 and process.poll() is None:
            workers = children(process.pid)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (130, b"", b"")
    for _ in range(100):
        if not any(map(alive, workers)):
            break
        time.sleep(0.05)
    assert not any(map(alive, workers))


def test_an_interrupt_at_a_terminal(many: Path) -> None:
    """The signal goes to all processes, as from a terminal; none of them prints anything."""
    master, slave = pty.openpty()
    command = [*COMMAND, "check", str(many), "-j", "2"]
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    while len(children(process.pid)) < 2 and process.poll() is None:
        pass
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=30) == 130
    seen = b""
    while select.select([master], [], [], 0.2)[0]:
        try:
            seen += os.read(master, 1 << 16)
        except OSError:
            break
    os.close(master)
    assert b"Traceback" not in seen
