"""What Windows lacks is not needed, and what only Windows has is respected, as far as seen here."""

import os
import sys
import time
from pathlib import Path, PureWindowsPath

import pytest

from mlperf_pkg.infra import files
from mlperf_pkg.infra.archives import Names, unfit, unfit_on_windows
from mlperf_pkg.infra.paths import with_slashes
from tests.helpers.wheels import run

ROOT = Path(__file__).parents[2]


def test_logs_are_simulated_checked_built_and_packed(tmp_path: Path) -> None:
    """By commands of which every module can be imported."""
    system = ROOT / "systems" / "bow-pod16.json"
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / system.name).write_bytes(system.read_bytes())
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "README.md").write_text("Run: sh run_and_time.sh")
    (tmp_path / "mlperf-pkg.yaml").write_text("code: {bert: code}")
    commands = (
        "simulate logs --round 2.0 --benchmark bert --system bow-pod16 --submitter Graphcore",
        *("check logs --jobs 1", "build --division closed", "build --division closed --force"),
        *("pack submissions/Graphcore -o packed.tar.gz", "verify packed.tar.gz"),
        "check packed.tar.gz --jobs 1",
    )
    # A folder that is not locked looks unused to other tests, which would remove it from /tmp.
    environment = {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    helper = (sys.executable, "-m", "tests.helpers.windows")
    done = run(*helper, *commands, cwd=tmp_path, **environment)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert int(done.stdout.split()[0]) == len([*(ROOT / "mlperf_pkg").rglob("*.py")])
    assert (tmp_path / "packed.tar.gz").exists()
    assert [path.name for path in tmp_path.rglob(".mlperf-pkg-*")] == []


@pytest.mark.parametrize(
    "name",
    [
        *("CON", "nul", "Aux.txt", "com1", "LPT9.log", "COM¹", "CONIN$", "NUL .txt", "logs/prn/a"),
        *("a.", "a ", "a:b", "<a|b>", 'what?*"', "tab\t"),
    ],
)
def test_names_that_windows_reserves(name: str) -> None:
    reason = unfit_on_windows(f"code/{name}/run.sh") or ""
    assert reason.endswith("is not the name of a file on Windows")


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", "null", "com", "com10.txt", "a.b", ".gitignore", "a b"]
)
def test_names_that_windows_allows(name: str) -> None:
    assert not PureWindowsPath(name).is_reserved() if sys.version_info < (3, 13) else True
    assert unfit_on_windows(f"{name}/{name}") is None


def test_an_archive_is_refused_only_where_its_names_do_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert unfit("code/aux.c") is None
    monkeypatch.setattr(sys, "platform", "win32")
    assert unfit("code/aux.c") == "'aux.c' is not the name of a file on Windows"
    assert Names().add("logs/run.txt:stream")
    assert Names().add("logs/run.txt") is None


def test_paths_have_slashes_in_reports() -> None:
    path = PureWindowsPath(r"C:\rounds\2.0") / "results"
    assert with_slashes(path, "\\") == "C:/rounds/2.0/results"
    assert with_slashes("logs\\run") == "logs\\run"  # a name, where a backslash separates nothing


def test_without_locks_only_old_folders_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    new, old = tmp_path / ".mlperf-pkg-1.new", tmp_path / ".mlperf-pkg-2.new"
    for folder in (new, old):
        folder.mkdir()
        (folder / ".mlperf-pkg").write_text(f"1 {folder.stat().st_ino}")
    os.utime(old, (time.time() - 2 * 24 * 3600,) * 2)
    with files.new_folder(tmp_path / "other", lambda _: False) as folder:
        (folder / "file").write_text("content", "utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, "other"]
