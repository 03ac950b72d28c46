"""A copy of the installed mlperf-logging's data, to be changed by tests."""

from __future__ import annotations

import shutil
from pathlib import Path

from mlperf_pkg.infra.resources import official_folder


def copied(folder: Path) -> Path:
    """Copy what the rulebook is compared with into an empty folder."""
    source = official_folder()
    for name in ("compliance_checker", "rcp_checker"):
        shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("*.py*"))
    shutil.copy(source / "benchmark_meta.py", folder)
    return folder


def change(folder: Path, file: str, old: str, new: str) -> None:
    """Replace one piece of text, which must be there."""
    path = folder / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
