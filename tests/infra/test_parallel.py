"""Work that is shared among processes."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra import parallel
from mlperf_pkg.infra.parallel import pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no forks")


@pytest.fixture(autouse=True)
def before() -> Iterator[set[str]]:
    """The other children of this process; afterwards it has no more than these."""
    yield (before := children())
    assert children() <= before


def children() -> set[str]:
    folder = Path("/proc/self/task")
    pids: set[str] = set()
    for task in folder.iterdir():
        with suppress(FileNotFoundError):  # a thread that has ended
            pids.update((task / "children").read_text().split())
    return pids


def square(number: int) -> int:
    return number * number


def test_results_are_in_order() -> None:
    with pool(3) as workers:
        squares = [list(workers.map(square, range(number))) for number in (0, 1, 5, 500)]
    assert squares == [[base * base for base in range(number)] for number in (0, 1, 5, 500)]


def large_then_small(number: int) -> bytes:
    """The first is there last, and more than a pipe holds."""
    time.sleep(0.2 if number == 0 else 0)
    return bytes([number]) * 300_000


def test_results_of_any_size() -> None:
    with pool(2) as workers:
        results = list(workers.map(large_then_small, range(10)))
    assert results == [bytes([number]) * 300_000 for number in range(10)]


def refuse(number: int) -> int:
    if number == 2:
        raise UserError("two")
    return number


def test_an_error_is_raised_here() -> None:
    with pytest.raises(UserError, match="two") as caught, pool(2) as workers:
        list(workers.map(refuse, range(5)))
    assert "in refuse" in caught.value.__notes__[0]


def refuse_early(number: int) -> int:
    time.sleep(5 if number == 0 else 0)
    raise UserError(f"{number}")


def test_an_error_is_raised_at_once() -> None:
    with pytest.raises(UserError) as caught, pool(2) as workers:
        list(workers.map(refuse_early, range(2)))
    assert caught.value.args == ("1",)


def test_a_worker_that_is_killed_is_reported() -> None:
    with pytest.raises(RuntimeError, match="ended before its work was done"), pool(2) as workers:
        list(workers.map(describe_or_end, range(5)))


def test_workers_that_are_killed_before_they_begin_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent = os.getpid()

    def be_killed_early(*_: object) -> None:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(parallel, "_work", be_killed_early)
    with pool(2) as workers:
        results = list(workers.map(str, range(3), instead=lambda loss: loss.reason))
    assert results == ["SIGKILL"] * 3


def describe_or_end(number: int) -> str:
    if number in (2, 30):
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 50:
        os._exit(3)
    return str(number)


def panic(_: int) -> None:
    raise BaseException("panic")


def test_what_is_no_exception_ends_a_worker_with_a_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pool(1) as workers:  # one after the other, as both write to one stream
        results = list(workers.map(panic, range(2), instead=lambda loss: loss.reason))
    assert results == ["exit status 1"] * 2
    assert capfd.readouterr().err.count("BaseException: panic") == 2


def test_what_other_workers_do_goes_on_where_some_are_lost() -> None:
    with pool(2) as workers:
        results = list(workers.map(describe_or_end, range(60), instead=lambda loss: loss.reason))
    lost = {index: text for index, text in enumerate(results) if text != str(index)}
    assert lost == {2: "SIGKILL", 30: "SIGKILL", 50: "exit status 3"}


def wait_for(file: Path) -> str:
    while not file.exists():
        time.sleep(0.01)
    return file.name


def running(pids: set[str]) -> set[str]:
    """Those of some processes that have not ended."""
    states = {pid: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][1] for pid in pids}
    return {pid for pid, state in states.items() if state != "Z"}


def test_a_worker_without_work_ends_while_another_works(tmp_path: Path, before: set[str]) -> None:
    (tmp_path / "now").touch()
    with pool(2) as workers:
        names = workers.map(wait_for, [tmp_path / "now", tmp_path / "later"])
        assert next(names) == "now"
        while len(running(children() - before)) > 1:
            time.sleep(0.01)
        (tmp_path / "later").touch()
        assert list(names) == ["later"]


def end_late(number: int) -> str:
    if number == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return str(number)


def test_the_last_worker_is_replaced_where_the_others_have_ended() -> None:
    with pool(2) as workers:
        results = workers.map(end_late, range(4), instead=lambda loss: loss.reason)
        assert list(results) == ["0", "SIGKILL", "2", "3"]


def large(_: int) -> bytes:
    return bytes(1_000_000)


def test_a_worker_killed_while_it_sends_results_is_replaced(before: set[str]) -> None:
    with pool(2) as workers:
        results = workers.map(large, range(60), instead=lambda loss: loss.reason.encode())
        begun = [next(results)]
        os.kill(int((children() - before).pop()), signal.SIGKILL)
        lengths = [len(result) for result in (*begun, *results)]
    assert len(lengths) == 60
    assert lengths.count(1_000_000) >= 59


def interrupt(number: int) -> None:
    """Once both workers have begun: Python ignores an interruption while it forks."""
    if number == 1:
        time.sleep(0.1)
        os.kill(os.getppid(), signal.SIGALRM)
    time.sleep(60)


def test_work_that_is_broken_off_ends() -> None:
    begun, before = time.monotonic(), signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), pool(2) as workers:
            list(workers.map(interrupt, range(5)))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begun < 30


HELD = """
import sys, time
from mlperf_pkg.infra.parallel import pool
with pool(2, forked=sys.argv[1] == "forked") as workers:
    list(workers.map(print, ["begun"]))
    list(workers.map(time.sleep, [0.2] * 1000))
"""


@pytest.mark.parametrize("how", ["forked", "spawned"])
@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_survives_where_this_process_is_killed(how: str, deadly: int) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-u", "-c", HELD, how],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert parent.stdout
    assert parent.stdout.readline() == b"begun\n"  # of a worker
    parent.send_signal(deadly)
    parent.communicate(timeout=30)  # until the last process that holds the pipe has ended
    assert parent.returncode == -deadly


@pytest.mark.parametrize("possible", [0, 1, 2])
def test_the_processes_that_can_be_started_do_the_work(
    possible: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may refuse a process at any time."""
    start, left = parallel._Pool._start, iter(range(possible))

    def started(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return start(*arguments)

    monkeypatch.setattr(parallel._Pool, "_start", started)
    with pool(3) as workers:
        if possible:
            assert list(workers.map(square, range(50))) == [base * base for base in range(50)]
        else:
            with pytest.raises(UserError, match="no process can be started: Resource"):
                list(workers.map(square, range(50)))
