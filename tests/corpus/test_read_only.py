"""No command writes into what it reads: every byte and time of the corpus stays as it was."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.corpus import conftest
from tests.helpers.corpus import CORPUS, needs_corpus
from tests.helpers.program import call

pytestmark = needs_corpus


def fingerprint(top: Path) -> dict[str, tuple[int, str]]:
    """Time of last change and contents of everything below a folder."""
    return {str(path): (path.lstat().st_mtime_ns, digest(path)) for path in sorted(top.rglob("*"))}


def digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes()).hexdigest() if path.is_file() else ""


def test_no_command_writes_into_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "KEPT", {})  # the commands read every log themselves
    monkeypatch.chdir(tmp_path)
    before = fingerprint(CORPUS)
    rounds = [CORPUS / name for name in ("v0.7", "v4.1", "hpc_v3.0")]
    workspace, other = CORPUS / "v2.0" / "Graphcore", CORPUS / "v1.1" / "Graphcore"
    log = next(workspace.glob("results/*/bert/result_0.txt"))
    commands: list[tuple[str | Path, ...]] = [
        *(("check", folder, "--jobs", "1", "--format", "json") for folder in rounds),
        *(("score", folder) for folder in rounds),
        *(("score", folder, "--tables", tmp_path / folder.name) for folder in rounds),
        *(("results", folder, "-o", tmp_path / f"{folder.name}.out") for folder in rounds),
        *(("review", folder, "-o", tmp_path / f"{folder.name}.review") for folder in rounds),
        ("system", "check", *sorted(CORPUS.glob("*/*/systems/*.json"))),
        ("build", workspace, "--output", tmp_path / "built", "--dry-run"),
        ("build", workspace, "--output", tmp_path / "built", "--invalid", "keep"),
        ("pack", workspace, "--output", tmp_path / "packed.tar.gz", "--invalid", "keep"),
        ("verify", workspace),
        ("select", other),
        ("diff", other, workspace),
        ("compare", other, workspace),
        ("report", other, "--output", tmp_path / "report.html"),
        ("report", log.parent, "--output", tmp_path / "charts", "--draw", "times"),
        ("watch", log, "--timeout", "5"),
    ]
    failed = [command for command in commands if call(*command).exit_code not in (0, 1)]
    assert failed == []
    assert fingerprint(CORPUS) == before
