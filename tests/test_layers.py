"""Imports go one way, from the commands down to what everybody speaks of."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from tests.helpers.layers import MODULES, name_of, nodes, room

# A room may import from itself and from the rooms of the lines above, not from its neighbours.
LAYERS = [
    {"errors", "findings"},
    {"infra"},
    {"log", "published"},
    {"config"},
    {"submission"},
    {"rulebook"},
    {"run"},
    {"results"},
    {"checks", "render", "simulate"},
    {"checker"},
    {"commands"},
    {"cli", "compat"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
ARROWS_BETWEEN_COMMANDS = {
    ("rcp", "charts"),
    ("page", "charts"),
    # The page of a report has prices, and how results stand against the published ones.
    ("page", "compare"),
    ("charts", "compare"),
    ("archive", "builder"),
    # The page of results has the head and style of the page of a report.
    ("results", "page"),
    # The page of a review has the head and style of the page of a report.
    ("review", "page"),
}


def imported(path: Path) -> Iterator[str]:
    """The modules of the package that a module names in its imports, wherever these stand."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in NAMES else node.module for name in members)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


NAMES = {name_of(path) for path in MODULES}


@cache
def imports() -> dict[str, set[str]]:
    """The modules of the package that each one imports."""
    return {name_of(path): {*imported(path)} & NAMES for path in MODULES}


def test_every_room_has_a_layer() -> None:
    assert {room(name) for name in NAMES} == LEVEL.keys()


def test_imports_go_downward() -> None:
    assert {
        (module, name)
        for module, names in imports().items()
        for name in names
        if room(name) != room(module) and LEVEL[room(name)] >= LEVEL[room(module)]
    } == set()


def test_commands_do_not_import_one_another() -> None:
    commands = {
        name: name.split(".")[2]
        for name in NAMES
        if name.count(".") > 2 and room(name) == "commands"
    }
    arrows = {
        (command, commands[used])
        for name, command in commands.items()
        for used in imports()[name] & commands.keys()
    }
    assert {(a, b) for a, b in arrows if a != b} <= ARROWS_BETWEEN_COMMANDS


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = TopologicalSorter({name: used - {name} for name, used in imports().items()})
    assert len(list(graph.static_order())) == len(NAMES)


def test_no_code_is_ever_executed_from_data() -> None:
    called = {
        (name_of(path), node.func.id)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    executing = {"eval", "exec", "__import__", "compile", "print"}
    assert {(module, name) for module, name in called if name in executing} == set()
