"""Standard streams that are closed or full."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.helpers.program import COMMAND
from tests.helpers.trees import write_submission

FULL = "standard output: No space left on device"
CLOSED = "standard output: closed"


@pytest.mark.parametrize(
    ("redirection", "status", "message"),
    [
        (">&-", 2, CLOSED),
        (">/dev/full", 2, FULL),
        ("2>&-", None, ""),
        ("2>/dev/full", None, ""),
        (">&- 2>&-", 2, ""),
        ("<&-", None, ""),
        ("<&- >&- 2>&-", 2, ""),
    ],
)
@pytest.mark.parametrize(
    ("arguments", "usual"),
    [
        ("check ACME", 0),
        ("check ACME --format json", 0),
        ("check nowhere", 2),
        ("pack ACME --force", 0),
        ("rules list", 0),
        ("--help", 0),
    ],
)
def test_standard_streams(
    tmp_path: Path, arguments: str, usual: int, redirection: str, status: int | None, message: str
) -> None:
    write_submission(tmp_path / "ACME")
    line = f"{shlex.join(COMMAND)} {arguments} {redirection}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == (usual if status is None else status)
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert "ignored" not in done.stderr
    if usual == 0:
        assert message in done.stderr
