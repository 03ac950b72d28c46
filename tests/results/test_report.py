"""The report as typed rows."""

from __future__ import annotations

import pytest

from mlperf_pkg.results.report import folder, name


@pytest.mark.parametrize(
    ("path", "parts"), [("a/b/c.txt", ("a/b", "c.txt")), ("c.txt", ("", "c.txt"))]
)
def test_parts_of_a_path(path: str, parts: tuple[str, str]) -> None:
    assert (folder(path), name(path)) == parts
