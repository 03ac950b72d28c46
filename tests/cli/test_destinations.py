"""What ``--format`` and ``-o [FORMAT:]FILE`` mean together."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from mlperf_pkg.cli.output import destinations
from mlperf_pkg.render import FORMATS

TABLE = [
    ([], None, ["text -"]),
    ([], "json", ["json -"]),
    (["a.txt"], None, ["text a.txt"]),
    (["a.txt"], "json", ["json a.txt"]),
    (["a.json"], None, ["json a.json"]),
    (["a.json"], "text", ["text a.json"]),
    (["a.JSON"], None, ["json a.JSON"]),
    (["a.sarif", "b.xml", "c.md", "d.csv"], None, ["sarif a.sarif", "junit b.xml", "markdown c.md", "csv d.csv"]),
    (["gitlab:a.json"], "text", ["gitlab a.json"]),
    (["-", "a.json"], None, ["text -", "json a.json"]),
    (["-", "a.json"], "github", ["github -", "json a.json"]),
    (["github:-", "a", "junit:b"], "csv", ["github -", "csv a", "junit b"]),
    (["./json:a"], None, ["text json:a"]),
    (["json:a:b"], None, ["json a:b"]),
]  # fmt: skip


@pytest.mark.parametrize(("outputs", "format_", "expected"), TABLE)
def test_destinations(outputs: list[str], format_: str | None, expected: list[str]) -> None:
    outcome = destinations(outputs, format_, tuple(FORMATS))
    assert [f"{name} {file or '-'}" for name, file in outcome] == expected


def test_an_ending_of_a_format_that_a_command_lacks() -> None:
    assert destinations(["a.xml"], None, ("text", "json")) == [("text", Path("a.xml"))]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (
            ["jsn:a"],
            r"unknown format 'jsn'; did you mean json\? \(for a file of this name, write ./jsn:a\)",
        ),
        (["zzz:a"], "unknown format 'zzz'; expected one of text, json, "),
        (["json:"], "no file name"),
        ([""], "no file name"),
        (["a", "json:./a"], "-o json:./a is given twice"),
        (["-", "json:-"], "-o json:- is given twice"),
    ],
)
def test_refused(outputs: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        destinations(outputs, None, tuple(FORMATS))
