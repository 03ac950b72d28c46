"""Planted leftovers of a killed process: nothing is taken from them, and nothing is removed."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mlperf_pkg.infra.files import new_folder, write_whole
from tests.helpers.workspaces import everything_below

Plant = Callable[[Path], None]
MARKER = ".mlperf-pkg"


def mine(scratch: Path, mark: str = "1 {}") -> None:
    """The marker of this program, of this folder or of another one."""
    scratch.mkdir(exist_ok=True)
    (scratch / MARKER).write_text(mark.format(scratch.stat().st_ino))


def configuration(scratch: Path, mark: str = "1 2") -> None:
    """What was moved aside, as if it were to be put back; the marker is that of another folder."""
    mine(scratch, mark)
    (scratch / "mlperf-pkg.yaml.old").write_text("waivers: everything")


def same_file(scratch: Path, link: Callable[[Path, Path], None] = Path.hardlink_to) -> None:
    """A second name of the user's file, or a link to it, beside a file that has no name yet."""
    mine(scratch, "1 2")
    link(scratch / "result.txt", scratch.parent / "result.txt")
    (scratch / "other.txt").touch()


def without_marker(scratch: Path) -> None:
    scratch.mkdir()
    (scratch / "kept.txt").write_text("mine")


def linked_marker(scratch: Path) -> None:
    scratch.mkdir()
    mine(scratch.parent / "elsewhere", f"1 {scratch.stat().st_ino}")
    (scratch / MARKER).symlink_to(scratch.parent / "elsewhere" / MARKER)


def linked_folder(scratch: Path) -> None:
    mine(scratch.parent / "elsewhere")
    scratch.symlink_to("elsewhere")


PLANTS: list[Plant] = [
    *(configuration, partial(configuration, mark="1 {}"), without_marker, linked_marker),
    *(same_file, partial(same_file, link=Path.symlink_to), linked_folder, Path.touch, os.mkfifo),
]


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("name", [".mlperf-pkg-0123456789abcdef.new", ".mlperf-pkg-x\n.new"])
def test_planted(plant: Plant, name: str, tmp_path: Path) -> None:
    (tmp_path / "result.txt").write_text("minutes: 27")
    plant(tmp_path / name)
    before = everything_below(tmp_path)
    write_whole(tmp_path / "new.txt", b"new", replace=False)
    with new_folder(tmp_path / "tree", lambda _: False) as folder:
        (folder / "file").touch()
    assert everything_below(tmp_path) == before | {
        "new.txt": b"new",
        "tree": False,
        "tree/file": b"",
    }
