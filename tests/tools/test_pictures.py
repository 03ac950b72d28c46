"""The picture of the README is what ``check`` prints."""

import re
from importlib.metadata import version
from pathlib import Path

from tests.helpers.console import DOCS
from tests.tools.pictures import picture, simulated


def test_the_picture_of_a_check(tmp_path: Path) -> None:
    shown = picture(simulated(tmp_path)).replace(version("mlperf-logging"), "4.1.68")
    assert shown == (DOCS / "check.svg").read_text("utf-8"), "python -m tests.tools.pictures"


def test_the_picture_loads_nothing() -> None:
    shown = (DOCS / "check.svg").read_text("utf-8")
    others = r"https?://(?!www\.w3\.org/2000/svg|www\.textualize\.io -->)[^\"]*"
    assert re.findall(others, shown) == []
