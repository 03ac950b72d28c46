"""The official table as a workbook."""

from __future__ import annotations

import io
import zipfile
from typing import Any
from xml.etree import ElementTree

import pytest

from mlperf_pkg.commands.results.official import Summary, Table, official_workbook

_NAMES = {"x": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
COLUMNS = ("division", "availability", "resnet")


def summary(*rows: tuple[Any, ...], weak: Table | None = None) -> Summary:
    plain = Table(COLUMNS, rows)
    return Summary("hpc" if weak else "training", "2.0", plain, plain, weak, (), (), crashed=False)


def read(data: bytes | None) -> dict[str, list[list[str]]]:
    """The texts of the cells of each sheet."""
    assert data is not None
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        strings = _texts(archive, "xl/sharedStrings.xml")
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        titles = [sheet.attrib["name"] for sheet in book.iterfind(".//x:sheet", _NAMES)]
        sheets = (
            ElementTree.fromstring(archive.read(f"xl/worksheets/sheet{number}.xml"))
            for number in range(1, len(titles) + 1)
        )
        return {
            title: [[_text(cell, strings) for cell in row] for row in sheet.iterfind(".//x:row", _NAMES)]
            for title, sheet in zip(titles, sheets, strict=True)
        }  # fmt: skip


def _texts(archive: zipfile.ZipFile, name: str) -> list[str]:
    root = ElementTree.fromstring(archive.read(name))
    return [element.text or "" for element in root.iterfind(".//x:t", _NAMES)]


def _text(cell: ElementTree.Element, strings: list[str]) -> str:
    value = cell.findtext("x:v", None, _NAMES)
    if value is None:
        return ""
    return strings[int(value)] if cell.attrib.get("t") == "s" else value


def test_sheets_sections_and_numbers() -> None:
    data = official_workbook(
        summary(
            ("closed", "cloud", 1.5),
            ("closed", "Research", None),
            ("closed", "Available on-premise", 2.5),
            ("closed", "on the moon", 3.5),
            ("open", "rdi", 4.5),
            ("ajar", None, 5.5),
        )
    )
    header = ["ID", *COLUMNS]
    blank = [""] * 3
    assert read(data) == {
        "closed": [
            header,
            ["Available on-premise", *blank],
            ["2.0-0000", "closed", "Available on-premise", "2.5"],
            ["Available cloud", *blank],
            ["2.0-0001", "closed", "cloud", "1.5"],
            ["Research, Development, or Internal (RDI)", *blank],
            ["2.0-0002", "closed", "Research"],
            ["on the moon", *blank],
            ["2.0-0003", "closed", "on the moon", "3.5"],
        ],
        "open": [
            header,
            ["Research, Development, or Internal (RDI)", *blank],
            ["2.0-0004", "open", "rdi", "4.5"],
        ],
        "other": [header, ["no availability", *blank], ["2.0-0005", "ajar", "5.5"]],
    }


def test_weak_scaling_has_sheets_of_its_own() -> None:
    weak = Table(COLUMNS, (("closed", "cloud", 1.0),))
    assert list(read(official_workbook(summary(weak=weak)))) == [
        "closed",
        "open",
        "closed weak scaling",
    ]


def test_no_text_is_a_formula() -> None:
    data = official_workbook(summary(("closed", "cloud", "=1+1")))
    assert read(data)["closed"][-1] == ["2.0-0000", "closed", "cloud", "=1+1"]


def test_texts_are_visible() -> None:
    data = official_workbook(summary(("closed", "\ud800", "\x1b[31m\ufffe")))
    assert read(data)["closed"][-1] == ["2.0-0000", "closed", "\\ud800", "\\x1b[31m\\ufffe"]


def test_numbers_that_are_not_doubles_become_text() -> None:
    data = official_workbook(summary(("closed", "cloud", 10**400)))
    assert read(data)["closed"][-1] == ["2.0-0000", "closed", "cloud", str(10**400)]


def test_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    first = official_workbook(summary(("closed", "cloud", 1.5)))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert official_workbook(summary(("closed", "cloud", 1.5))) == first
