"""Workbooks of spreadsheets, as their texts."""

import io
import zipfile
from xml.etree import ElementTree


def read(data: bytes) -> dict[str, list[list[str]]]:
    """The texts of the cells of each sheet."""
    archive = zipfile.ZipFile(io.BytesIO(data))

    def elements(name: str, tag: str) -> list[ElementTree.Element]:
        return ElementTree.fromstring(archive.read(f"xl/{name}.xml")).findall(f".//{{*}}{tag}")

    def text(cell: ElementTree.Element) -> str:
        value = cell.findtext("{*}v", "")
        return strings[int(value)] if cell.get("t") == "s" else value

    strings = [element.text or "" for element in elements("sharedStrings", "t")]
    return {
        sheet.attrib["name"]: [
            list(map(text, row)) for row in elements(f"worksheets/sheet{number}", "row")
        ]
        for number, sheet in enumerate(elements("workbook", "sheet"), 1)
    }
