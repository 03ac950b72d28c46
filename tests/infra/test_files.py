"""Files written whole or not at all."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra import files
from mlperf_pkg.infra.files import locked, private_folder, write_all, write_together, write_whole
from tests.helpers.forked import forked


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    ("content", "data"),
    [("größer\n", "größer\n".encode()), (b"\xff\x00", b"\xff\x00")],
    ids=["text", "bytes"],
)
def test_writes_a_new_file(
    tmp_path: Path, content: str | bytes, data: bytes, replace: bool
) -> None:
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "new", content, replace=replace)
    assert (tmp_path / "new").read_bytes() == data
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert names(tmp_path) == ["new", "usual"]


def test_a_second_process_waits_until_what_it_holds_is_replaced(tmp_path: Path) -> None:
    """And then holds the new file, so that no change is lost."""
    file = tmp_path / "file"
    file.write_text("")
    letters = "abcdefgh"

    def append(name: str) -> None:
        with locked(file):
            write_whole(file, file.read_text() + name, replace=True)

    with ThreadPoolExecutor(len(letters)) as workers:
        list(workers.map(append, letters))
    assert sorted(file.read_text()) == sorted(letters)


def test_a_folder_of_own_files_is_replaced_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is the current one."""
    folder = tmp_path / "summary"
    write_together(folder, {"a": "old", "below/b": "old"}, replace=False)
    inode = folder.stat().st_ino
    write_together(folder, {"a": "new"}, replace=True, former=["below/b"])
    assert (names(folder), folder.stat().st_ino == inode) == (["a"], False)
    (folder / "notes").write_text("mine")
    write_together(folder, {"c": "new"}, replace=True, former=["a"])
    assert names(folder) == ["c", "notes"]
    monkeypatch.chdir(folder)
    (folder / "notes").unlink()
    write_together(Path(), {"c": "newer"}, replace=True)
    assert ((folder / "c").read_text(), Path.cwd()) == ("newer", folder)
    assert names(tmp_path) == ["summary"]


@pytest.mark.parametrize("replace", [False, True])
def test_a_pipe_is_written_into(tmp_path: Path, replace: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "text", replace=replace)
        assert os.read(reader, 9) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("kind", ["pipe", "file", "link to a file", "link to nowhere"])
def test_what_is_not_a_folder_is_not_replaced_by_one(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "file":
        place.write_text("text")
    else:
        (tmp_path / "file").write_text("text")
        place.symlink_to("file" if kind == "link to a file" else "nowhere")
    before = place.lstat()
    with pytest.raises(UserError, match="place: cannot be written into"):
        write_together(place, {"a": "new"}, replace=True)
    assert place.lstat().st_ino == before.st_ino


def test_an_open_file_is_written_into_where_it_is(tmp_path: Path) -> None:
    """As ``/dev/stdout`` is, which leads to a regular file if output is redirected."""
    link = tmp_path / "link"
    with (tmp_path / "file").open("w") as stream:
        link.symlink_to(f"/proc/self/fd/{stream.fileno()}")
        (tmp_path / "second").symlink_to("link")
        for number in range(2):
            write_whole(tmp_path / "second", f"{number}", replace=False)
        stream.write("2")
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "012"


def test_a_pipe_is_not_replaced_by_a_file_that_needs_a_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(UserError, match="pipe: is not a regular file"),
        private_folder(tmp_path, ["pipe"], replace=True) as private,
    ):
        (private / "pipe").write_text("text")
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(errno.EPERM, os.strerror(errno.EPERM))
    monkeypatch.setattr(Path, "hardlink_to", Mock(side_effect=error))
    write_whole(tmp_path / "file", "old", replace=False)
    with pytest.raises(UserError, match="exists already"):
        write_whole(tmp_path / "file", "new", replace=False)
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_files_written_together_all_or_none(tmp_path: Path) -> None:
    """A link to nowhere is seen only when the name is to be taken."""
    (tmp_path / "b").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="b exists already and is not overwritten"):
        write_together(tmp_path, {"a": "new", "b": b"new"}, replace=False)
    assert names(tmp_path) == ["b"]


@pytest.mark.parametrize(
    ("last", "reason"), [("none/b", ": cannot be written: No such"), ("taken", " exists already")]
)
def test_where_one_cannot_be_written_none_is(tmp_path: Path, last: str, reason: str) -> None:
    (tmp_path / "taken").write_text("old")
    with pytest.raises(UserError, match=f"{last}{reason}"):
        write_all({tmp_path / "a": "new", tmp_path / last: "new"}, replace=False)
    assert names(tmp_path) == ["taken"]
    assert (tmp_path / "taken").read_text() == "old"


# ---- several files replaced at once -------------------------------------------------------


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """A folder of two files that are to be replaced, beside a third that is not there yet."""
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").symlink_to("elsewhere")
    return tmp_path


def replace_all(folder: Path) -> None:
    write_all({folder / name: "new" for name in "abc"}, replace=True)


def contents(folder: Path) -> dict[str, str]:
    """The content of each file, or where a link leads."""
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return {p.name: str(p.readlink()) if p.is_symlink() else p.read_text() for p in entries}


OLD = {"a": "old", "b": "elsewhere"}
NEW = {"a": "new", "b": "new", "c": "new"}


def at_step(number: int, act: Callable[[], object]) -> Callable[..., None]:
    """What replaces ``os.replace``: the call of this number acts instead, before it is done."""
    calls = []

    def replace(*paths: Any) -> None:
        calls.append(paths)
        if len(calls) == number:
            act()
        Path.rename(*paths)

    return replace


@pytest.mark.parametrize("links", [True, False], ids=["links", "without links"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_where_one_cannot_be_replaced_none_is(
    former: Path, monkeypatch: pytest.MonkeyPatch, number: int, links: bool
) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    if not links:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "no links")))
    monkeypatch.setattr(os, "replace", at_step(number, fail))
    with pytest.raises(UserError, match="cannot be written: Input/output error"):
        replace_all(former)
    assert contents(former) == OLD
    assert names(former) == sorted(OLD)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_what_a_killed_process_replaced_is_put_back(former: Path, number: int) -> None:
    """By the next call, unless all files had their names, as before the fourth step."""

    def killed() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "replace", at_step(number, lambda: os._exit(9)))
            patch.setattr(files, "_remove", lambda _: os._exit(9))
            replace_all(former)

    assert forked(killed, former).returncode == 9
    assert len(names(former)) > len(OLD)
    write_whole(former / "a.log", "", replace=False)
    (former / "a.log").unlink()
    assert contents(former) == (OLD if number < 4 else NEW)
    assert names(former) == sorted(contents(former))
