"""Only ``infra/`` opens what a user names: elsewhere a pipe would wait, and a device would not
end.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.helpers.layers import MODULES, name_of, nodes, room

LIBRARIES = {"csv", "sqlite3", "pyarrow", "tarfile", "zipfile", "gzip", "lzma"}
READERS = {"read_text", "read_bytes", "connect", "ParquetFile", "read_table", "read_csv"}
SOURCES = {"source", "content"}
"""What has an ``open`` of ours, without a mode."""

EXCEPTIONS = {
    # The package's own data and that of the installed mlperf-logging.
    "checks.names": "data of the package",
    "commands.builder.configuration": "data of the package",
    "commands.doctor": "data of the package, which is examined",
    "commands.page.template": "data of the package",
    "config": "data of the package",
    "results.rcp": "points of the installed mlperf-logging",
    "rulebook.compile": "rules of the package, when it is built",
    "rulebook.documents": "rules of the package, compiled",
    "rulebook.validate": "data of the package",
    "rulebook.verified": "data of the package, and files of the installed mlperf-logging",
    # What is written.
    "cli.output": "events are written as they come",
    "cli.streams": "the null device",
    "commands.archive.encryption": "an archive is written; age decrypts an open_file'd one",
    "commands.archive.tar": (
        "files are written; tarfile makes headers in memory and names types of members"
    ),
    "commands.builder.writing": "a tree is written",
    "commands.results.official": "tables as CSV, in memory",
    "compat.console": "--log_output is appended to, as by mlperf-logging",
    "render.table": "tables as CSV, in memory",
    # Other ways of reading.
    "commands.compare.reading": "CSV of text that read_file has read",
    "commands.export.formats": (
        "databases read their files themselves, after open_file and its limit"
    ),
    "commands.system.machine": "files of /proc and /sys, which are not regular",
}


def opening(node: ast.AST) -> bool:
    """Whether a node opens a file, or imports what can."""
    match node:
        case ast.Import():
            return any(alias.name.partition(".")[0] in LIBRARIES for alias in node.names)
        case ast.ImportFrom(module=str() as module):
            return module.partition(".")[0] in LIBRARIES
        case ast.Call(func=ast.Name(id="open")):
            return True
        case ast.Call(func=ast.Attribute(attr="open", value=owner), args=args):
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            return bool(args) or name not in SOURCES
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in READERS
    return False


def opened() -> Iterator[str]:
    for path in MODULES:
        if room(name_of(path)) != "infra" and any(map(opening, nodes(path))):
            yield name_of(path).removeprefix("mlperf_pkg.")


def test_only_infra_opens_files() -> None:
    assert set(opened()) == EXCEPTIONS.keys()


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("open(path)", True),
        ("(folder / name).open()", True),
        ("Path(name).read_text()", True),
        ("os.open(path, flags)", True),
        ("import sqlite3", True),
        ("from csv import reader", True),
        ("log.source.open()", False),
        ("open_file(path)", False),
        ("read_file(path, 9)", False),
    ],
)
def test_what_opens(text: str, opens: bool) -> None:
    assert any(map(opening, ast.walk(ast.parse(text)))) == opens
