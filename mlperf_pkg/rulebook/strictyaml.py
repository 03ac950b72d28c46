"""YAML as rule files use it: a repeated key is an error, 1e-9 is a number, a date is text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML without libyaml, which is slower
    from yaml import SafeLoader  # type: ignore[assignment]

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Step, refuse

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(SafeLoader):
    """The safe loader of PyYAML with other rules for numbers and dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def parse(file: RuleFile, data: bytes) -> dict[str, Any]:
    """Return the mapping in a file whose text is ``data``.

    Raises:
        RulebookError: the file is not valid YAML in UTF-8, has a repeated key, or is not a mapping.
    """
    with _loader(file, data) as loader:
        node = loader.get_single_node()
        if node is None or not _is(node, "mapping"):
            raise RulebookError(f"{file.shown}:1: not a mapping")
        refuse([Problem(file.shown, line, text) for line, text in _repeated(node)])
        document: dict[str, Any] = loader.construct_document(node)
        return document


def problem_at(file: RuleFile, steps: Sequence[Step], message: str) -> Problem:
    """Return a problem of the part of a document that ``steps`` lead to, with its line.

    A part that is merged into its mapping (``<<``) is on the line of that mapping.
    """
    with _loader(file, file.path.read_bytes()) as loader:
        node = loader.get_single_node()
    line = 1
    for step in steps:
        child = _child(node, step)
        if child is None:
            break
        line, node = child
    return Problem(file.shown, line, message)


def _child(node: Any, step: Step) -> tuple[int, yaml.Node] | None:
    """Return the line and the node of a part; None where the node does not name it.

    A mapping is its own first entry: a rule alone is written without a list.
    """
    if _is(node, "sequence"):
        part = node.value[int(step)]
        return part.start_mark.line + 1, part
    if isinstance(step, int):
        return node.start_mark.line + 1, node
    for key, value in node.value if _is(node, "mapping") else ():
        if key.value == str(step):
            return key.start_mark.line + 1, value
    return None


@contextmanager
def _loader(file: RuleFile, data: bytes) -> Iterator[_Loader]:
    try:
        loader = _Loader(data.decode("utf-8"))
        try:
            yield loader
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise RulebookError(f"{file.shown}:{line}: not valid YAML: {error.problem}") from error
    except RecursionError as error:
        raise RulebookError(f"{file.shown}: not valid: nested too deeply") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RulebookError(f"{file.shown}: not valid YAML in UTF-8: {error}") from error


def _repeated(node: yaml.Node) -> Iterator[tuple[int, str]]:
    """Yield the line of each repeated key, and a message."""
    if _is(node, "sequence"):
        for item in node.value:
            yield from _repeated(item)
    elif _is(node, "mapping"):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            name = key.value if _is(key, "scalar") else "a list or mapping as key"
            if name in lines:
                yield line, f"{name!r} is given twice, first on line {lines[name]}"
            lines.setdefault(name, line)
            yield from _repeated(value)


def _is(node: Any, kind: str) -> bool:
    """Return whether a node is a ``mapping``, ``sequence`` or ``scalar``."""
    return bool(node.id == kind)
