"""The command lines of mlperf-logging on hostile submissions: a verdict or a reason, no
traceback.
"""

import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers.trees import write_submission
from tests.hostile.cases import CASES, remove

TOOLS = ("package_checker", "repo_checker", "result_summarizer")
LONGEST = 20_000  # characters of a line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a valid submission, for trees that are too deep for Python to remove."""
    folder = tmp_path_factory.mktemp("compat")
    write_submission(folder / "valid")
    yield folder
    remove(folder)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", CASES)
def test_hostile_submissions(
    tool: str,
    name: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = folder / str([*CASES].index(name))
    if not case.exists():  # the tools read the same one
        shutil.copytree(folder / "valid", case / "ACME")
        CASES[name](case / "ACME")
    monkeypatch.chdir(case)
    status = import_module(f"mlperf_pkg.compat.{tool}").main(["ACME", "training", "2.0.0"])
    text = capsys.readouterr().err
    assert status in (0, 1)
    assert "a bug in mlperf-pkg" not in text
    assert all(line.isprintable() for line in text.splitlines())
    assert all(len(line) < LONGEST for line in text.splitlines())
