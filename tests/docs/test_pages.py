"""What the pages tell one to do works, and prints what they say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import mlperf_pkg
from tests.docs.console import DOCS, follow


def test_the_tutorial(tmp_path: Path) -> None:
    follow("tutorial.md", tmp_path)
    assert (tmp_path / "submissions" / "Submitter1.tar.gz.sha256").is_file()


def test_a_round_is_added(tmp_path: Path) -> None:
    """In a copy of the checkout, with the files that the page shows."""
    shutil.copytree(Path(mlperf_pkg.__file__).parent, tmp_path / "mlperf_pkg")
    for name in ("rules", "systems"):
        shutil.copytree(DOCS.parent / name, tmp_path / name)
    page = "howto/add-a-round.md"
    files = re.findall(r"`(rules/\S*)`:\n\n```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert len(files) == 2
    for name, text in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    follow(page, tmp_path, PYTHONPATH=str(tmp_path))
