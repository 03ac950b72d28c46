"""The cells of the notebook return what the page shows below them."""

import ast
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.console import DOCS, prints
from tests.helpers.program import call

PAGE = (DOCS / "howto" / "notebooks.md").read_text("utf-8")
CELLS = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", PAGE, re.M | re.S)


def output_of(cell: str, names: dict[str, Any]) -> str:
    """What a notebook shows: what the cell prints, and the value of an expression at its end."""
    *others, last = ast.parse(cell).body
    body = others if isinstance(last, ast.Expr) else [*others, last]
    with redirect_stdout(StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return printed.getvalue()
    return f"{eval(compile(ast.Expression(last.value), 'cell', 'eval'), names)!r}\n"


def test_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(CELLS) == PAGE.count("```python") == PAGE.count("```text") == 12
    assert all(output for _, output in CELLS)
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^mlperf-pkg (.*)$", PAGE, re.MULTILINE)
    assert call(*shlex.split(command)).exit_code == 0
    names: dict[str, Any] = {}
    outputs = [(cell, output_of(cell, names), expected) for cell, expected in CELLS]
    assert [
        f"{cell}\n{output}\n--- not ---\n{expected}"
        for cell, output, expected in outputs
        if not prints(output, expected)
    ] == []
