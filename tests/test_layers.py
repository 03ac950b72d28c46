"""Imports go one way: foundations, model, rules, checks, results, rendering, commands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlperf_pkg

PACKAGE = Path(mlperf_pkg.__file__).parent

# Each layer may import from those above it and from itself.
LAYERS = [
    {
        "errors",
        "extras",
        "diagnostics",
        "braces",
        "jsonfile",
        "resources",
        "files",
        "folders",
        "processes",
        "escape",
        "filetree",
        "nearest",
        "params",
        "stores",
        "executors",
    },
    {
        "record",
        "_scan",
        "plain",
        "batch",
        "mllog",
        "trace",
        "clock",
        "convergence",
        "rcp",
        "scoring",
        "submission",
        "config",
        "prices",
        "power",
        "weak_scaling",
    },
    {"rulebook"},
    {"rulecheck", "joining", "group", "tensors", "run", "curves", "opening", "reading"},
    {"report", "selection", "settings", "throughput", "competition"},
    {"published"},
    {"checks"},
    {"codes"},
    {"waivers"},
    {"checker"},
    {"tables", "words", "summary", "template", "comparison"},
    {"charts", "vega"},
    {"render", "simulate", "machine"},
    {"drawing", "page"},
    {"build", "watch"},
    {"archive"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if names == ["mlperf_pkg"] and isinstance(node, ast.ImportFrom):
            names = [f"mlperf_pkg.{alias.name}" for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("mlperf_pkg."))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downward(path: Path) -> None:
    used = {name for name in imported(path) if not name.startswith("__")}
    assert {name for name in used if LEVEL[name] > LEVEL[layer(path)]} == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_code_is_ever_executed_from_data(path: Path) -> None:
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"eval", "exec", "__import__", "compile", "print"}
