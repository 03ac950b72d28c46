"""How much a reader holds in mind: the syntax tree of the package, counted.

Imports, docstrings and annotations are not counted: they cost a reader little. Layout does not
count: a line that is broken in two has the same nodes.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeGuard

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Density:
    """The counts of some modules; ``names`` has the number of local names of each function."""

    nodes: int = 0
    statements: int = 0
    tuple_assignments: int = 0
    comprehensions: int = 0
    conditional_expressions: int = 0
    names: Counter[str] = field(default_factory=Counter)

    @property
    def nodes_a_statement(self) -> float:
        return self.nodes / max(self.statements, 1)

    def of_1000(self, count: int) -> float:
        """A count for every 1,000 statements."""
        return 1000 * count / max(self.statements, 1)

    def wider_than(self, names: int) -> dict[str, int]:
        """The functions with more local names, the widest first."""
        return {name: count for name, count in self.names.most_common() if count > names}


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a module, which several tests walk and none changes."""
    return ast.parse(path.read_text("utf-8"))


def density(root: Path, *paths: Path) -> Density:
    """Measure modules; the functions are named relative to ``root``."""
    total = Density()
    for path in paths:
        for node in _counted(parsed(path)):
            total.nodes += 1
            total.statements += isinstance(node, ast.stmt)
            total.tuple_assignments += is_tuple_assignment(node)
            total.comprehensions += isinstance(node, _COMPREHENSIONS)
            total.conditional_expressions += isinstance(node, ast.IfExp)
            if isinstance(node, _Function):
                place = f"{path.relative_to(root).as_posix()}:{node.lineno} {node.name}"
                total.names[place] = len(_local_names(node))
    return total


def is_tuple_assignment(node: ast.AST) -> TypeGuard[ast.Assign]:
    """Whether a statement is of the form ``a, b = x, y``."""
    if not isinstance(node, ast.Assign):
        return False
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def _counted(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it that count."""
    yield node
    docstring = _docstring(node)
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns"}:
            if isinstance(node, ast.AnnAssign):
                yield ast.Constant(0)
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            is_import = isinstance(child, ast.Import | ast.ImportFrom)
            if isinstance(child, ast.AST) and child is not docstring and not is_import:
                yield from _counted(child)


def _docstring(node: ast.AST) -> ast.AST | None:
    if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
        return node.body[0]
    return None


def _local_names(function: _Function) -> set[str]:
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}
