"""YAML as the rulebook is written in it, and the same in a form that is read at once.

``python -m mlperf_pkg.rulebook.strictyaml`` compiles all of ``rules/`` anew. What was compiled is
found by the text that it was made of, so that an edited file is never taken for what it was.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mlperf_pkg.resources import data_folder
from mlperf_pkg.rulebook.load import COMPILED, RulebookError


class _Loader(yaml.CSafeLoader):
    """YAML in which a repeated key is an error and 1e-9 is a number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                raise yaml.MarkedYAMLError(
                    problem=f"{name!r} stands twice", problem_mark=node.start_mark
                )
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def parse(path: Path, data: bytes) -> Any:
    """What a file of the rulebook holds.

    Raises:
        RulebookError: it is no YAML or has a repeated key.
    """
    try:
        return yaml.load(data.decode("utf-8"), _Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise RulebookError(f"{path}: {error}") from error


def compiled(folder: Path) -> bytes:
    """What all YAML files of a folder hold, by their texts."""
    texts = [(path, path.read_bytes()) for path in sorted(folder.rglob("*.yaml"))]
    return msgspec.msgpack.encode({data: parse(path, data) for path, data in texts})


if __name__ == "__main__":
    FOLDER = data_folder("rules")
    (FOLDER / COMPILED).write_bytes(compiled(FOLDER))
