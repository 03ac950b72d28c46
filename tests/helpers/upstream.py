"""The data of an mlperf-logging: a copy of the installed one, or reference points of a test."""

import json
import shutil
from pathlib import Path
from typing import Any

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


RUNS = [10.0, 11.0, 12.0, 11.0, 10.0, 13.0]
"""Enough runs for a benchmark of three, in which nothing is wrong."""


def point(to_converge: list[Any], **other: Any) -> dict[str, Any]:
    """Return a point of gpt3 at batch size 64 with these runs; ``other`` replaces its fields."""
    return {"Benchmark": "gpt3", "BS": 64, "Epochs to converge": to_converge, **other}


def folder_with(folder: Path, text: str, file: str = "training_4.1.0/rcps_gpt3.json") -> Path:
    """Write a file of reference points below ``rcp_checker``; return the folder."""
    path = folder / "rcp_checker" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return folder


def points_in(folder: Path, points: dict[str, Any], **file: str) -> Path:
    """Write points as ``folder_with``."""
    return folder_with(folder, json.dumps(points), **file)
