"""``mlperf-pkg watch``, with files that another thread or process writes."""

import json
import os
import pty
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.helpers.logs import edited, good_log, line_of, without
from tests.helpers.program import COMMAND, call, start
from tests.helpers.workspaces import lay

GOOD = good_log("bert")
WRONG = edited(GOOD, "submission_status", value="good")
HALF = GOOD.index(b"\n", GOOD.rindex(b"eval_accuracy", 0, len(GOOD) * 9 // 10)) + 1
FAST = ("--interval", "0.05", "--round", "2.0")


def watch(*arguments: str | Path) -> tuple[int, str]:
    result = call("watch", "--timeout", "0.5", *arguments, *FAST)
    return result.exit_code, result.stdout


ABORTED = edited(GOOD, "run_stop", metadata={"status": "aborted"})


@pytest.mark.parametrize(
    ("log", "status", "text"),
    [
        pytest.param(GOOD, 0, "ended with success: ", id="good"),
        pytest.param(ABORTED, 1, "LOST: run_stop says aborted", id="aborted"),
        pytest.param(
            without(GOOD, "cache_clear"), 1, "cache_clear is not logged", id="no cache_clear"
        ),
    ],
)
def test_a_whole_log(log: bytes, status: int, text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(log)
    exit_code, output = watch(path)
    assert (exit_code, text in output, "\x1b" in output) == (status, True, False)


def test_several_logs_are_followed_until_each_has_stopped(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.log", "b.log")]

    def writer() -> None:
        for path, log in zip(paths, (GOOD, WRONG), strict=True):
            with path.open("wb", buffering=0) as stream:
                for at in range(0, len(log), 1 + len(log) // 7):
                    stream.write(log[at : at + 1 + len(log) // 7])
                    time.sleep(0.02)

    thread = threading.Thread(target=writer)
    thread.start()
    exit_code, output = watch(*paths)
    thread.join()
    assert exit_code == 1
    assert [
        text
        for text in (f"{paths[0]}: ended with success", f"{paths[1]}: LOST", "waiting for the file")
        if text not in output
    ] == []


def test_fail_fast_does_not_wait_for_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(WRONG[: len(WRONG) // 2])
    exit_code, output = watch(path, "--fail-fast")
    assert (exit_code, f"{path}: LOST: " in output.splitlines()[-1]) == (1, True)


def test_a_silent_log_is_given_up(tmp_path: Path) -> None:
    exit_code, output = watch(tmp_path / "none", "--idle", "0.001", "--timeout", "0.004")
    assert (exit_code, "the log has not grown for" in output, "no longer followed" in output) == (
        2,
        True,
        True,
    )


def test_events_are_written_into_a_file(tmp_path: Path) -> None:
    """As JSON, an object a line."""
    path, file = tmp_path / "run.log", tmp_path / "events.json"
    path.write_bytes(WRONG)
    assert watch(path, "-o", file) == (1, "")
    events = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert {"run", "finding", "lost", "evaluation", "end"} == {event["event"] for event in events}
    assert {event["path"] for event in events} == {str(path)}
    (finding,) = (event["finding"] for event in events if event["event"] == "finding")
    assert (finding["found"], finding["line"]) == ("good", line_of(WRONG, "submission_status"))
    assert events[-1]["lost"] is True
    assert watch(path, "-o", file)[0] == 2
    assert watch(path, "-o", file, "--force") == (1, "")


@pytest.mark.parametrize(
    ("limits", "status", "text"),
    [((10, 100), 2, "no longer followed"), ((10, 67), 2, "4 logs are too many, as this")],
    ids=["raised", "too many"],
)
def test_the_limit_of_open_files(
    limits: tuple[int, int], status: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each log stays open, so that one that is replaced is read to its end first."""
    paths = [tmp_path / f"{number}.log" for number in range(4)]
    for path in paths:
        path.write_bytes(GOOD[:HALF])
    limit = Mock()
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", limit)
    result = call("watch", "--timeout", "0.001", *paths, *FAST)
    assert (result.exit_code, text in result.output) == (status, True)
    assert [call[0][1] for call in limit.call_args_list] == [(68, 100)] * (limits[1] == 100)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(GOOD)
    result = call("watch", tmp_path / "run.log", *FAST, "-o", "/dev/full")
    message = "mlperf-pkg: error: /dev/full: No space left on device\n"
    assert (result.exit_code, result.stderr) == (2, message)


@pytest.mark.parametrize(
    ("path", "interval", "text"), [("/dev/null", "1", "is not a file"), (__file__, "0", "interval")]
)
def test_bad_usage(path: str, interval: str, text: str) -> None:
    result = call("watch", path, "--interval", interval)
    assert (result.exit_code, text in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("files", "paths"),
    [
        pytest.param({}, "folder/run_1.log", id="empty"),
        pytest.param(
            {"a.log": GOOD, "b.out": GOOD, "x y/c.log": GOOD, "notes.txt": b"-"},
            "'folder/x y'/*.log folder/*.log folder/*.out",
            id="with logs",
        ),
    ],
)
def test_a_folder_is_refused_with_the_command_for_its_logs(
    files: dict[str, bytes], paths: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    lay(Path("folder"), files)
    result = call("watch", "folder")
    assert result.exit_code == 2
    assert f": is a folder; expected log files: mlperf-pkg watch {paths}\n" in result.stderr


@pytest.mark.parametrize("option", ["--interval", "--idle", "--timeout"])
@pytest.mark.parametrize(
    ("value", "message"),
    [("nan", "'nan' is not a number"), ("0", "not in the range"), ("-inf", "not in the range")],
)
def test_times_that_cannot_be(option: str, value: str, message: str) -> None:
    result = call("watch", "run.log", f"{option}={value}")
    assert (result.exit_code, message in result.stderr) == (2, True)


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_bytes(GOOD[:HALF])
    return path


def test_each_line_is_flushed_and_an_interrupt_ends_it(growing: Path) -> None:
    with start("watch", growing, *FAST) as process:
        assert process.stdout
        assert process.stderr
        assert any(b"samples" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert b"Traceback" not in process.stderr.read()


def test_a_terminal_shows_one_line_that_refreshes(growing: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    command = [*COMMAND, "watch", str(growing), *FAST]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while b"since run_start" not in seen:
        seen += os.read(ours, 4096)
    with growing.open("ab") as stream:
        stream.write(GOOD[HALF:])
    while b"ended with success" not in seen:
        seen += os.read(ours, 4096)
    assert process.wait() == 0
    os.close(ours)
    assert b"\x1b[2K" in seen  # a line that is taken back
