"""A folder with reference points of one benchmark, as mlperf-logging has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
