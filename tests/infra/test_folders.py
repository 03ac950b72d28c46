"""A folder is written whole or not at all, whenever the process is killed, and by whomever."""

import errno
import fcntl
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mlperf_pkg.infra import files
from mlperf_pkg.infra.files import new_folder
from tests.helpers.forked import apart
from tests.helpers.workspaces import bytes_below, lay

OLD = {"a": b"old", "below/b": b"old"}
NEW = {"a": b"new", "c": b"new"}


def contents(folder: Path) -> dict[str, bytes] | None:
    return bytes_below(folder) if folder.exists() else None


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(target: Path, files: dict[str, bytes], *, replaces: bool = True) -> None:
    with new_folder(target, lambda _: replaces) as folder:
        lay(folder, files)


def test_what_is_not_to_be_replaced(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "er" / "target"
    write(target, OLD)
    with pytest.raises(FileExistsError):
        write(target, NEW, replaces=False)
    assert names(target.parent) == ["target"]
    assert contents(target) == OLD


def test_what_changes_in_the_moment_of_replacing_is_put_back(tmp_path: Path) -> None:
    write(tmp_path / "target", OLD)
    answers = iter([True, False])
    with (
        pytest.raises(FileExistsError, match="changed in the meantime"),
        new_folder(tmp_path / "target", lambda _: next(answers)) as folder,
    ):
        lay(folder, NEW)
    assert contents(tmp_path / "target") == OLD
    assert names(tmp_path) == ["target"]


def left_behind(parent: Path, mark: str | None = None) -> Path:
    """A scratch folder of a killed process, or of another one."""
    scratch = parent / ".mlperf-pkg-0123456789abcdef.new"
    scratch.mkdir()
    mark = f"1 {scratch.stat().st_ino}" if mark is None else mark
    (scratch / ".mlperf-pkg").write_text(mark)
    return scratch


# ---- killed -------------------------------------------------------------------------------

STEPS: list[tuple[Any, str]] = [
    (Path, "mkdir"),
    (Path, "write_bytes"),
    (Path, "rename"),
    (os, "open"),
    (os, "fsync"),
    (files, "_exchange"),
    (shutil, "rmtree"),
]


def killed_at(step: int, work: Callable[[], None], *, in_two_steps: bool) -> bool:
    """Do the work in a process that is killed before its call of that number; whether it was."""
    child = os.fork()
    if child == 0:
        calls = count()
        with pytest.MonkeyPatch.context() as patched:
            if in_two_steps:  # as systems do that cannot exchange two folders
                patched.setattr(files, "_exchange", lambda *_: False)
            for owner, name in STEPS:
                patched.setattr(owner, name, deadly(getattr(owner, name), calls, step))
            work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def deadly(original: Any, calls: Iterator[int], step: int) -> Any:
    def call(*args: Any, **more: Any) -> Any:
        if next(calls) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **more)

    return call


State = dict[str, bytes] | None


def killed_at_every_step(
    folder: Path, in_two_steps: bool, before: State
) -> tuple[list[State], list[tuple[list[str], State]], State]:
    """What is there after each kill, and after the next build; and what is there without one."""
    states = []
    builds = []
    for step in count():
        target = folder / str(step) / "target"
        target.parent.mkdir()
        if before:
            write(target, before)
        if not killed_at(step, partial(write, target, NEW), in_two_steps=in_two_steps):
            break
        states.append(contents(target))
        write(target, {"next": b"build"})  # trips over nothing
        write(target, {"next": b"build"})  # tidies up what had the only copy of the target
        builds.append((names(target.parent), contents(target)))
    return states, builds, contents(target)


@pytest.mark.parametrize(
    ("in_two_steps", "before", "after_kill"),
    [(False, None, [None, NEW]), (False, OLD, [OLD, NEW]), (True, OLD, [OLD, None, NEW])],
)
def test_killed_at_every_step(
    tmp_path: Path, in_two_steps: bool, before: State, after_kill: list[State]
) -> None:
    states, builds, done = apart(killed_at_every_step, tmp_path, in_two_steps, before)
    assert len(states) > 8
    assert [state for state in states if state not in after_kill] == []
    assert builds == [(["target"], {"next": b"build"})] * len(states)
    assert done == NEW


def test_killed_between_two_steps_what_was_moved_aside_stays(tmp_path: Path) -> None:
    scratch = left_behind(tmp_path)
    write(scratch / "target.old", OLD)
    write(tmp_path / "other", NEW)
    assert contents(scratch / "target.old") == OLD
    write(tmp_path / "target", NEW)
    write(tmp_path / "other", NEW)
    assert names(tmp_path) == ["other", "target"]


# ---- no space -----------------------------------------------------------------------------


def test_a_full_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "target", OLD)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", Mock(side_effect=full))
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path / "target", NEW)
    assert contents(tmp_path / "target") == OLD
    monkeypatch.setattr(os, "fsync", Mock(side_effect=full))
    monkeypatch.setattr(files, "_exchange", lambda *_: False)  # as where it needs two steps
    write(tmp_path / "target", NEW)  # what is only said to the disk may fail, as all is written
    assert contents(tmp_path / "target") == NEW
    assert names(tmp_path) == ["target"]


# ---- two at once --------------------------------------------------------------------------


def test_two_at_once_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "target"
    both = threading.Barrier(2)

    def work(number: int) -> None:
        with new_folder(target, lambda _: True) as folder:
            both.wait()
            lay(folder, {f"{number}/{name}": b"%d" % number for name in range(50)})
            both.wait()

    with ThreadPoolExecutor(2) as workers:
        list(workers.map(work, range(2)))
    files = contents(target) or {}
    assert len(files) == 50
    assert len(set(files.values())) == 1
    assert names(tmp_path) == ["target"]


@pytest.mark.parametrize("replaces", [True, False])
def test_another_writes_the_same_in_the_moment_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaces: bool
) -> None:
    target = tmp_path / "target"
    rename = Path.rename

    def renamed(path: Path, to: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        write(target, OLD)
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", renamed)
    if replaces:
        write(target, NEW)
    else:
        with pytest.raises(FileExistsError, match="exists and must not be replaced"):
            write(target, NEW, replaces=False)
    assert contents(target) == (NEW if replaces else OLD)
    assert names(tmp_path) == ["target"]


@pytest.mark.parametrize("step", ["open", "lock"])
def test_another_sweeps_what_is_not_locked_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    module, name = {"open": (os, "open"), "lock": (fcntl, "flock")}[step]
    real = getattr(module, name)

    def swept(*arguments: Any) -> Any:
        monkeypatch.setattr(module, name, real)
        for scratch in tmp_path.glob(".*"):
            shutil.rmtree(scratch)
        return real(*arguments)

    monkeypatch.setattr(module, name, swept)
    write(tmp_path / "target", NEW)
    assert (contents(tmp_path / "target"), names(tmp_path)) == (NEW, ["target"])


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    with new_folder(tmp_path / "one", lambda _: False) as folder:
        write(tmp_path / "two", NEW)
        lay(folder, OLD)
    assert (contents(tmp_path / "one"), contents(tmp_path / "two")) == (OLD, NEW)
