"""Pages are read and compared as they are meant."""

from __future__ import annotations

import pytest

from tests.helpers.console import prints, steps


def test_steps() -> None:
    text = "```console\n$ one \\\n>   more\na\nb\n$ two\n```\n```sh\n$ no\n```\n"
    assert list(steps(text)) == [("one \\\n  more", "a\nb\n"), ("two", "")]


@pytest.mark.parametrize(
    ("output", "pattern", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a 1.5 b\n", "a ... b\n", True),
        ("a\nx\ny\nb\n", "a\n...\nb\n", True),
        ("a\nb\n", "a\n...\nb\n", True),
        ("a\nx\n", "a\n...\n", True),
        ("", "", True),
        ("a\nxb\n", "a\n...\nb\n", False),
        ("a\nb\n", "a...b\n", False),
        ("a\nb\n", "a\n", False),
        ("a\n", "", False),
    ],
)
def test_prints(output: str, pattern: str, same: bool) -> None:
    assert prints(output, pattern) is same
