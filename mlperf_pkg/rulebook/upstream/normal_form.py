"""Conditions in one normal form, however they are written, so that they compare as text.

The official checker's rules are Python expressions over a record and a state; ours are
constraints. Both become sets of plain expressions over ``value``, ``metadata`` and the names of
other keys. Nothing is evaluated: expressions are parsed and rewritten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from mlperf_pkg.rulebook.expectation import MIRRORED, same
from mlperf_pkg.rulebook.formula import OPERATORS

WHOLE_LOG = "the whole log"
"""The name used instead of a key for conditions that no single key is about."""

TRUE = ast.Constant(1.0)

_CALLED = {"math.abs": "abs", "math.greatest": "max"}


class Definition(Struct, frozen=True):
    """The expression of a state variable after a record of ``key``; None if it is too complex.

    With ``gathers``, the expression is about all records so far, of which there may be none.
    """

    key: str
    expression: ast.expr | None
    gathers: bool = False


class State(Struct):
    """The variables that the expressions of one file of the official checker share.

    ``initial`` holds those that are set at the beginning; ``logged`` the values of keys that this
    run logs for certain, such as its division.
    """

    logged: Mapping[str, str] = field(default_factory=dict)
    initial: dict[str, ast.expr] = field(default_factory=dict)
    definitions: dict[str, list[Definition]] = field(default_factory=dict)


def conditions(text: str, state: State | None = None, key: str | None = None) -> frozenset[str]:
    """Split an expression at its ``and`` into conditions in normal form.

    ``key`` is the key of the record ``v``, where that is not the record being checked. Text that
    is not a Python expression stays as it is.
    """
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return frozenset({" ".join(text.split())})
    rewriter = Rewriter(state or State(), key)
    parts = conjuncts(rewriter.visit(parsed))
    return frozenset(map(ast.unparse, parts)) | {f"seen({name!r})" for name in rewriter.implied}


def conjuncts(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an ``and``, without those that are always true."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in conjuncts(value)]
    return [] if isinstance(node, ast.Constant) and node.value == TRUE.value else [node]


def joined(parts: Iterable[str]) -> frozenset[str]:
    """Return conditions as one set, each without what another of them implies."""
    whole = frozenset(parts)
    return frozenset(_unconditional(part, whole) for part in whole)


def either(key: str, other: str) -> tuple[str, str]:
    """Require that one of two keys is logged: return the key to report, and its condition."""
    first, second = sorted((key, other))
    return first, f"at least once, or {second}"


def _unconditional(part: str, whole: frozenset[str]) -> str:
    """Replace ``a if b else True`` by ``a`` where ``b`` is a condition as well."""
    then, _, rest = part.partition(" if ")
    return then if rest and rest.removesuffix(" else 1.0") in whole else part


def call(function: str, argument: ast.expr) -> ast.expr:
    """Return the expression ``function(argument)``."""
    return ast.Call(ast.Name(function, ast.Load()), [argument], [])


def rewritten(expression: ast.expr, state: State, key: str) -> str:
    """Return an expression of the code that runs after a record of ``key``, in normal form."""
    return ast.unparse(Rewriter(state).follow(expression, key))


class Rewriter(ast.NodeTransformer):
    """Rewrites an expression into normal form; numbers become floats, as ``1 == 1.0 == True``."""

    def __init__(self, state: State, key: str | None = None) -> None:
        """Take the variables of a file; ``key`` is as in ``conditions``."""
        self._state = state
        self._key = key
        self.implied: set[str] = set()

    # ---- names and values -----------------------------------------------------------------

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Replace ``v['value']``, ``v['metadata']['x']`` and ``s['x']`` by names."""
        name = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(node.value, ast.Name) and isinstance(name, str):
            if node.value.id == "s":
                return self._variable(name)
            if node.value.id == "v":
                return self._of_record(name)
        self.generic_visit(node)
        if isinstance(name, str) and ast.unparse(node.value).endswith("metadata"):
            return ast.Attribute(node.value, name, ast.Load())
        return node

    def _of_record(self, name: str) -> ast.expr:
        if self._key is None:
            return ast.Name(name, ast.Load())
        if name != "value":
            return ast.Attribute(ast.Name(self._key, ast.Load()), name, ast.Load())
        if self._key in self._state.logged:
            return ast.Constant(self._state.logged[self._key])
        return ast.Name(self._key, ast.Load())

    def _variable(self, name: str) -> ast.expr:
        definitions = self._state.definitions.get(name, [])
        initial = self._state.initial.get(name)
        if not definitions and initial is not None:
            return self.follow(initial, None)
        if len(definitions) != 1 or definitions[0].expression is None:
            return ast.Subscript(ast.Name("s", ast.Load()), ast.Constant(name), ast.Load())
        (only,) = definitions
        assert only.expression  # noqa: S101
        value = self.follow(only.expression, only.key)
        if only.gathers:
            return value
        if initial is not None and ast.unparse(initial) != "None":
            start = self.follow(initial, None)
            return _chosen(ast.IfExp(call("seen", ast.Constant(only.key)), value, start))
        if only.key not in {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}:
            self.implied.add(only.key)
        return value

    def follow(self, expression: ast.expr, key: str | None) -> ast.expr:
        """Return the normal form of an expression of the state, set by a record of ``key``."""
        inner = Rewriter(self._state, key)
        inner.implied = self.implied
        copy = ast.parse(ast.unparse(expression), mode="eval").body
        result: ast.expr = inner.visit(copy)
        return result

    # ---- one of several ways to write the same --------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Write every number as a float."""
        return ast.Constant(float(node.value)) if isinstance(node.value, int | float) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Give each function one name, and drop conversions that change no value."""
        if ast.unparse(node.func) == "s.get":
            return self.visit_Subscript(
                ast.Subscript(ast.Name("s", ast.Load()), node.args[0], ast.Load())
            )
        if ast.unparse(node) == "float('inf')":
            return ast.Constant(float("inf"))
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name == "double" or (name == "int" and ast.unparse(node.args[0]).startswith("math.")):
            return node.args[0]
        if name == "math.sqrt":
            return ast.BinOp(node.args[0], ast.Pow(), ast.Constant(0.5))
        if name == "sorted" and isinstance(node.args[0], ast.List):
            node.args[0].elts.sort(key=ast.unparse)
        node.func = ast.Name(_CALLED.get(name, name), ast.Load())
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Compute with constants; write ``|`` of conditions as ``or``."""
        self.generic_visit(node)
        if isinstance(node.op, ast.BitOr):
            return self.visit_BoolOp(ast.BoolOp(ast.Or(), [node.left, node.right]))
        numbers = [n.value for n in (node.left, node.right) if isinstance(n, ast.Constant)]
        match numbers, OPERATORS.get(type(node.op)):
            case [float(left), float(right)], fold if fold is not None:
                return ast.Constant(fold(left, right))
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Split chains; put the smaller side first; sort lists."""
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        links = [
            _compared(left, op, right)
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return links[0] if len(links) == 1 else ast.BoolOp(ast.And(), links)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Write alternatives for one value as a list of values."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Or) and (value := _common_value(node.values)):
            options = [part.comparators[0] for part in node.values if isinstance(part, ast.Compare)]
            return _compared(value, ast.In(), ast.List(options, ast.Load()))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Replace a choice whose condition is constant."""
        self.generic_visit(node)
        return _chosen(node)


def _chosen(node: ast.IfExp) -> ast.expr:
    if isinstance(node.test, ast.Constant):
        return node.body if node.test.value else node.orelse
    if same(node.body, TRUE) and same(node.orelse, ast.Constant(0.0)):
        return node.test
    return node


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    if (
        isinstance(op, ast.Eq)
        and isinstance(left, ast.Constant)
        and isinstance(right, ast.Constant)
    ):
        return ast.Constant(float(left.value == right.value))
    if isinstance(op, ast.Eq) and same(right, TRUE) and ast.unparse(left).startswith("seen("):
        return left
    if isinstance(op, ast.IsNot) and ast.unparse(right) == "None":
        return TRUE if not ast.unparse(left).startswith("s[") else ast.Compare(left, [op], [right])
    if ast.unparse(left) == "'value'" and ast.unparse(right) == "v":
        return TRUE
    if isinstance(op, ast.In) and isinstance(right, ast.List | ast.Set):
        right = ast.List(sorted(right.elts, key=ast.unparse), ast.Load())
    if type(op) in MIRRORED and ast.unparse(right).startswith(("value", "metadata")):
        left, op, right = right, MIRRORED[type(op)](), left
    return ast.Compare(left, [op], [right])


def _common_value(parts: list[ast.expr]) -> ast.expr | None:
    """Return the value that all parts compare by ``==``, if it is the same."""
    values = [
        part.left
        for part in parts
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq)
    ]
    alike = len(values) == len(parts) and all(same(value, values[0]) for value in values)
    return values[0] if alike else None
