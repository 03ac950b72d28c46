"""No command writes into what it reads: every byte and time of the corpus stays as it was."""

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
    tree, workspace, other = (CORPUS / n for n in ("hpc_v2.0", "v2.0/Graphcore", "v1.1/Graphcore"))
    before = [fingerprint(folder) for folder in (tree, workspace, other)]
    log = next(workspace.glob("results/*/bert/result_0.txt"))
    commands: list[tuple[str | Path, ...]] = [
        ("check", tree, "--jobs", "1", "--format", "json"),
        ("score", tree),
        ("score", tree, "--tables", tmp_path / "tables"),
        ("results", tree, "-o", tmp_path / "results"),
        ("review", tree, "-o", tmp_path / "review"),
        ("export", tree, "-o", tmp_path / "round.sqlite"),
        ("system", "check", *sorted(tree.glob("*/systems/*.json"))),
        ("build", other, "--output", tmp_path / "built", "--dry-run"),
        ("build", other, "--output", tmp_path / "built", "--invalid", "keep"),
        ("pack", other, "--output", tmp_path / "packed.tar.gz", "--invalid", "keep"),
        ("verify", other),
        ("select", other),
        ("diff", other, workspace),
        ("compare", other, workspace),
        ("report", other, "--output", tmp_path / "report.html"),
        ("report", log.parent, "--output", tmp_path / "charts", "--draw", "times"),
        ("watch", log, "--interval", "0.05", "--timeout", "5"),
    ]
    failed = [command for command in commands if call(*command).exit_code not in (0, 1)]
    assert failed == []
    assert [fingerprint(folder) for folder in (tree, workspace, other)] == before
