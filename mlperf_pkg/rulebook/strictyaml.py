"""YAML as the rulebook is written in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from mlperf_pkg.errors import RulebookError


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
