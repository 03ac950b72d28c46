"""Standard streams that are closed or full."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli.streams import Bar, stop_cleanly
from tests.helpers.program import COMMAND, Terminal
from tests.helpers.trees import simulated, write_set, write_submission


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("check ACME >&-", 2, "standard output: closed"),
        ("check ACME >/dev/full", 2, "standard output: No space left on device"),
        ("check ACME <&- 2>&-", 0, ""),
        ("check nowhere 2>/dev/full", 2, ""),
        ("--help >&-", 2, "standard output: closed"),
    ],
)
def test_standard_streams(tmp_path: Path, arguments: str, status: int, message: str) -> None:
    write_submission(tmp_path / "ACME")
    line = f"{shlex.join(COMMAND)} {arguments}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, message in done.stderr) == (status, True)
    assert not re.search("Traceback|bug|ignored", done.stderr)


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Return a folder with enough logs to use several processes for a while."""
    return write_set(tmp_path / "logs", (simulated()[0] + b"noise\n" * 200_000,) * 40)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=str)
def test_a_signal_ends_a_command_as_an_interrupt_does(number: signal.Signals) -> None:
    """Unless it is ignored, as by nohup; afterwards, all is as before."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), stop_cleanly():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)
        with stop_cleanly():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_files_and_bytes_after_a_second_and_nothing_before() -> None:
    stream, clock = Terminal(), iter([0.0, 0.1, 0.95, 1.5])
    bar = Bar(stream, lambda: next(clock))
    bar.begin(4, 4000)
    bar.advance(1000)
    bar.advance(1000)
    assert stream.getvalue() == ""
    bar.advance(1000)
    bar.advance(1000)
    bar.end()
    seen = ESCAPES.sub("", stream.getvalue())
    assert "/4 files" in seen
    assert "/4.0 kB" in seen


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_check_reports_every_file(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlperf_pkg.checker.reading.PARALLEL_FROM_BYTES", 0)
    logs = write_set(tmp_path / "logs", simulated())
    observer = Mock()
    check([str(logs)], Options(jobs=jobs, observer=observer))
    sizes = [size for ((size,), _) in observer.advance.call_args_list]
    assert len(sizes) == 5
    observer.begin.assert_called_once_with(5, sum(sizes))


# ---- Ctrl-C -------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    pids = Path(f"/proc/{pid}/task/{pid}/children")
    return list(map(int, pids.read_text().split())) if pids.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the processes")
@pytest.mark.parametrize("everyone", [False, True])
def test_an_interrupt_ends_all_processes(many: Path, everyone: bool) -> None:
    """Whether it goes to the command alone or, as from a terminal, to all; none prints anything."""
    command = [*COMMAND, "check", str(many), "-j", "2"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        workers: list[int] = []
        while len(workers) < 2 and process.poll() is None:
            workers = children(process.pid)
        (os.killpg if everyone else os.kill)(process.pid, signal.SIGINT)
        output = process.communicate(timeout=30)
    assert (process.returncode, output) == (130, (b"", b""))
    for _ in range(100):
        if not any(map(alive, workers)):
            break
        time.sleep(0.05)
    assert not any(map(alive, workers))
