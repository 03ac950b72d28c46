"""The command lines of mlperf-logging on hostile submissions: a verdict or a reason, no traceback."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers.trees import write_submission
from tests.hostile.cases import CASES

TOOLS = ("package_checker", "repo_checker", "result_summarizer")
LONGEST = 20_000  # characters of a line


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_submission(tmp_path_factory.mktemp("valid") / "ACME")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for trees that are too deep for Python to remove."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    subprocess.run(["chmod", "-R", "u+rwX", str(tmp_path)], check=False)
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


@pytest.mark.parametrize("name", CASES)
def test_hostile_submissions(
    name: str, valid: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(valid, folder / "ACME")
    CASES[name](folder / "ACME")
    for tool in TOOLS:
        status = import_module(f"mlperf_pkg.compat.{tool}").main(["ACME", "training", "2.0.0"])
        text = capsys.readouterr().err
        assert status in (0, 1)
        assert "a bug in mlperf-pkg" not in text
        assert all(line.isprintable() for line in text.splitlines())
        assert all(len(line) < LONGEST for line in text.splitlines())
