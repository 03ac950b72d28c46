"""Each package keeps to its budget of lines of code, in pyproject.toml: a feature raises it in its own commit."""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUDGET = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mlperf-pkg"]["lines"]
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(source: str) -> int:
    """The number of lines with a token of code: no blanks, comments or docstrings.

    Where no string has several lines, which takes a tokenizer to see, it is enough to look at each line.
    """
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    rest = {
        number: line.strip()
        for number, line in enumerate(source.split("\n"), 1)
        if number not in docstrings
    }
    if not any('"""' in line or "'''" in line or line.endswith("\\") for line in rest.values()):
        return sum(line[:1] not in {"", "#"} for line in rest.values())
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {
        line
        for token in tokens
        if token.type not in LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - docstrings)


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("", 0),
        ('"""A module."""\n\nx = 1  # one\n', 1),
        ("def f():\n    '''Return.'''\n    # why\n    return (\n        1\n    )\n", 4),
        ('x = """\na\n\nb\n"""\n', 5),
    ],
)
def test_lines_of_code(source: str, number: int) -> None:
    assert lines_of_code(source) == number


def test_each_package_keeps_to_its_budget() -> None:
    lines: Counter[str] = Counter()
    for top in ("mlperf_pkg", "tests"):
        for path in (ROOT / top).rglob("*.py"):
            number = lines_of_code(path.read_text("utf-8"))
            parts = path.relative_to(ROOT).parts
            lines[top] += number
            if top == "mlperf_pkg":
                lines[parts[1] if len(parts) > 2 else "modules"] += number
    assert set(lines) == set(BUDGET)
    assert {name: number for name, number in lines.items() if number > BUDGET[name]} == {}
