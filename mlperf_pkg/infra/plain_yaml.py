"""YAML by hand: mappings, lists and strings, within limits and without aliases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import open_file
from mlperf_pkg.infra.text import FROM_UTF_16, UTF_16_MARKS

if TYPE_CHECKING:
    import yaml

LARGEST = 256 << 10
DEEPEST = 20


def compose(path: Path) -> yaml.Node | None:
    """Return the root of the only document in a file; None if there is none.

    Raises:
        UserError: the file cannot be read, is not YAML in UTF-8, has more than ``LARGEST`` bytes,
            is nested deeper than ``DEEPEST``, has an alias (``*name``) or repeats a key.
    """
    import yaml  # noqa: PLC0415 - slow to import, and most folders have no YAML

    try:
        node = _root(_text(path))
        for name, line, _ in repeated_keys(node) if node else ():
            raise UserError(f"{path}:{line}: the key {name!r} is repeated")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UserError(f"{path}:{mark.line + 1 if mark else 1}: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML in UTF-8: {error}") from error
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    return None if node is not None and node.value == "" else node  # only "---"


def kind(node: Any) -> str:
    """Return ``mapping``, ``sequence`` or ``scalar``."""
    return str(node.id)


def key(node: yaml.Node) -> str:
    """Return the text of a key; "?" for a list or mapping."""
    return node.value if kind(node) == "scalar" else "?"


def value(node: yaml.Node) -> Any:
    """Return the value of a node, with every scalar as the text in the file."""
    if kind(node) == "mapping":
        return {key(name): value(item) for name, item in node.value}
    if kind(node) == "sequence":
        return [value(item) for item in node.value]
    return node.value


def line_of(node: yaml.Node, steps: Sequence[str | int]) -> int:
    """Return the 1-based line of the part that ``steps`` lead to: that of its key, in a mapping.

    It is the line of the last part that exists, else 1. A mapping is its own element of every
    number.
    """
    line = 1
    for step in steps:
        part: yaml.Node | None = node
        if kind(node) == "sequence":
            part = node = node.value[step]
        elif isinstance(step, str):
            pairs = node.value if kind(node) == "mapping" else ()
            part, node = next((pair for pair in pairs if key(pair[0]) == step), (None, node))
        if part is None:
            break
        line = part.start_mark.line + 1
    return line


def repeated_keys(node: yaml.Node) -> Iterator[tuple[str, int, int]]:
    """Yield each key that its mapping has already, its line, and that of the first."""
    if kind(node) == "sequence":
        for item in node.value:
            yield from repeated_keys(item)
    elif kind(node) == "mapping":
        lines: dict[str, int] = {}
        for name, item in node.value:
            line = name.start_mark.line + 1
            if key(name) in lines:
                yield key(name), line, lines[key(name)]
            lines.setdefault(key(name), line)
            yield from repeated_keys(item)


def dump(contents: Mapping[str, Any]) -> str:
    """Return YAML in block style and in the given order, one fact per line."""
    import yaml  # noqa: PLC0415

    options: Any = {"sort_keys": False, "default_flow_style": False, "width": 1000}
    text: str = yaml.safe_dump(contents, allow_unicode=True, **options)
    if not all(map(str.isprintable, text.split("\n"))):  # YAML allows characters that hide others
        text = yaml.safe_dump(contents, **options)
    return text


def _text(path: Path) -> str:
    with open_file(path) as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise UserError(f"{path}: larger than {LARGEST >> 10} KiB, the limit of a YAML file")
    if data.startswith(UTF_16_MARKS):
        raise UserError(f"{path}: the file is UTF-16 text; expected UTF-8 text: {FROM_UTF_16}")
    return data.decode("utf-8")


def _root(text: str) -> yaml.Node | None:
    import yaml  # noqa: PLC0415

    class Loader(yaml.SafeLoader):
        """The loader of PyYAML that composes in Python, so that it can be limited."""

        depth = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if self.check_event(yaml.AliasEvent):
                problem = (
                    f"found the alias *{event.anchor}; expected a value, as aliases are not read"
                )
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
            self.depth += 1
            if self.depth > DEEPEST:
                problem = f"nested deeper than {DEEPEST} levels"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    node: yaml.Node | None = yaml.compose(text, Loader)
    return node
