"""How much a reader of the package holds in mind keeps to the budget in pyproject.toml;
CONTRIBUTING says why.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import mlperf_pkg
from mlperf_pkg.findings import Finding
from tests.helpers.density import Density, density, is_tuple_assignment, parsed
from tests.helpers.logs import edited, halved
from tests.helpers.program import call
from tests.helpers.trees import write_submission, write_system

PACKAGE = Path(mlperf_pkg.__file__).parent
PYPROJECT = PACKAGE.parent / "pyproject.toml"
BUDGET = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["mlperf-pkg"]["budget"]
MODULES = sorted(PACKAGE.rglob("*.py"))
SLACK = 1.03
FEWEST = 40  # statements of a module whose density is listed
LISTED = 10


@pytest.fixture(scope="module")
def package() -> Density:
    return density(PACKAGE, *MODULES)


def densest() -> list[str]:
    """The modules with the most nodes a statement, for the message of a failure."""
    modules = [(density(PACKAGE, path), path.relative_to(PACKAGE)) for path in MODULES]
    rows = [(own.nodes_a_statement, path) for own, path in modules if own.statements > FEWEST]
    return [f"{value:.1f} {path}" for value, path in sorted(rows, reverse=True)[:LISTED]]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("tuple-assignments", "tuple_assignments"),
        ("comprehensions", "comprehensions"),
        ("conditional-expressions", "conditional_expressions"),
    ],
)
def test_of_1000_statements(package: Density, name: str, count: str) -> None:
    assert package.of_1000(getattr(package, count)) <= BUDGET[name] * SLACK


def test_nodes_a_statement(package: Density) -> None:
    assert package.nodes_a_statement <= BUDGET["nodes-a-statement"] * SLACK, densest()


def test_nodes(package: Density) -> None:
    assert package.nodes <= BUDGET["nodes"] * SLACK


def test_functions_with_many_names(package: Density) -> None:
    wide = package.wider_than(BUDGET["names"])
    assert len(wide) <= BUDGET["wide-functions"] * SLACK, wide
    assert package.wider_than(BUDGET["most-names"]) == {}


# ---- two habits of grammar that are kept out ----------------------------------------------


def joined(path: Path) -> Iterator[str]:
    """The statements that assign two independent values, or assign first in a condition.

    An ``elif`` may assign, as no statement can stand before it.
    """
    nodes = list(ast.walk(parsed(path)))
    branches = [node.orelse[0] for node in nodes if isinstance(node, ast.If) and node.orelse]
    for node in nodes:
        if is_tuple_assignment(node) and not _swaps(node):
            yield f"line {node.lineno}: give each name a statement of its own"
        if isinstance(node, ast.If) and node not in branches and _assigns_first(node.test):
            yield f"line {node.lineno}: assign before the condition"


def _swaps(node: ast.Assign) -> bool:
    """Whether a later value is read from a name that is assigned before it: a swap, a rotation."""
    target, value = node.targets[0], node.value
    stored = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return any(isinstance(part, ast.Name) and part.id in stored for part in ast.walk(value))


def _assigns_first(test: ast.expr) -> bool:
    """Whether the assignment expression of a condition is evaluated before all else in it."""
    first: ast.expr = test
    while not isinstance(first, ast.NamedExpr):
        match first:
            case ast.Compare(left=part) | ast.UnaryOp(operand=part) | ast.BoolOp(values=[part, *_]):
                first = part
            case _:
                return False
    return True


def test_one_statement_says_one_thing() -> None:
    assert [f"{path}, {problem}" for path in MODULES for problem in joined(path)] == []


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("a = 1\nb = 2", 0),
        ("a, b = 1, 2", 1),
        ("a, b = b, a", 0),
        ("a, b = f()", 0),
        ("if (a := f()):\n    a()", 1),
        ("if (a := f()) is None:\n    a()", 1),
        ("if b and (a := f()):\n    a()", 0),
        ("if b:\n    c()\nelif (a := f()):\n    a()", 0),
        ("while (a := f()):\n    a()", 0),
    ],
)
def test_what_is_kept_out(tmp_path: Path, code: str, count: int) -> None:
    path = tmp_path / "module.py"
    path.write_text(code, "utf-8")
    assert len(list(joined(path))) == count


# ---- own frames from the program to a finding ---------------------------------------------

_OF_PROGRAM = 2  # mlperf_pkg.__main__.main and cli.main.main, which a call in a test leaves out


def own_frames(frame: FrameType | None) -> int:
    """The number of functions of the package on a stack, the program included."""
    number = _OF_PROGRAM
    while frame:
        number += frame.f_code.co_filename.startswith(str(PACKAGE))
        frame = frame.f_back
    return number


def frames_of_findings(*arguments: str | Path) -> dict[str, int]:
    """Own frames when the first finding of each code is made, by a command."""
    frames: dict[str, int] = {}

    def follow(frame: FrameType, event: str, value: object) -> None:
        if event == "return" and isinstance(value, Finding):
            frames.setdefault(value.code, own_frames(frame))

    sys.setprofile(follow)
    try:
        call(*arguments)
    finally:
        sys.setprofile(None)
    return frames


def broken_submission(root: Path) -> Path:
    """A submission whose logs break a rule, whose description lacks a field, and that fails RCP."""
    write_submission(root)
    write_system(root / "systems", framework=...)
    for log in root.rglob("result_*.txt"):
        wrong = edited(log.read_bytes(), "lars_opt_end_learning_rate", value=0.001)
        log.write_bytes(halved(wrong))
    return root


@pytest.mark.parametrize(
    ("kind", "code"), [("rule", "RN112"), ("description", "SYS101"), ("rcp", "RCP101")]
)
def test_own_frames(tmp_path: Path, kind: str, code: str) -> None:
    frames = frames_of_findings("check", "-j", "1", broken_submission(tmp_path / "v2.0" / "ACME"))
    assert frames[code] <= BUDGET["frames"][kind]
