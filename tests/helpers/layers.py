"""The modules of the package, and the rooms that they are in."""

import ast
from functools import cache
from pathlib import Path

import mlperf_pkg
from tests.helpers.density import parsed

PACKAGE = Path(mlperf_pkg.__file__).parent


MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path not in {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}
)


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@cache
def nodes(path: Path) -> list[ast.AST]:
    """The imports and calls of a module."""
    tree = ast.walk(parsed(path))
    return [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]


def room(name: str) -> str:
    return name.split(".")[1]
