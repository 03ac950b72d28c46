"""The sources of this machine, and a tool that misbehaves."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from mlperf_pkg.commands.system import Sources, machine, this_machine


def tool(folder: Path, script: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo $1,2", "--query,2\n"),
        ("echo half; exit 9", ""),
        ("printf '\\377'", "\ufffd"),
        ("kill -9 $$", ""),
        ("sleep 60", ""),
    ],
)
def test_the_tool(
    script: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(machine, "_PATIENCE_S", 0.3 if "sleep" in script else 30)
    assert this_machine().nvidia_smi("--query") == output


@pytest.mark.parametrize("path", ["", ".", "/nowhere"])
def test_no_tool(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "echo here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    assert this_machine().nvidia_smi() == ""


def test_versions_and_files_which_only_linux_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert this_machine().version_of("click") == version("click")
    assert this_machine().version_of("no-such-distribution") == ""
    assert this_machine().root == (Path("/") if sys.platform == "linux" else None)
    monkeypatch.setattr(sys, "platform", "darwin")
    nowhere = this_machine()
    assert (nowhere.text("proc/cpuinfo"), nowhere.paths("proc/*")) == ("", [])


def test_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_text(" 12\n")
    (tmp_path / "a").write_bytes(b"\xff\x00x")
    (tmp_path / "c").write_text("\u0663")
    sources = Sources(tmp_path, lambda *_: "", lambda _: "")
    assert [sources.text(name) for name in "abd"] == ["\ufffdx", "12", ""]
    assert [sources.number(name) for name in "abcd"] == [None, 12, None, None]
    assert sources.paths("[a-b]") == ["a", "b"]
