"""Write an ``mlperf-pkg.yaml`` that explains every key, as its schema describes it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.infra.plain_yaml import dump
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import visible

_WIDTH = 80
_HEAD = "Values that can be inferred are optional: 'mlperf-pkg build --explain' shows them."


def config_text(values: Mapping[str, Any], to_do: Iterable[str] = ()) -> str:
    """Return a configuration with these ``values`` by key; all other keys are comments.

    The tasks in ``to_do`` come first.
    """
    schema = json.loads((data_folder("rules") / "config.schema.json").read_text("utf-8"))
    head = _comment(f"{CONFIG_NAME}: {schema['description']} {_HEAD}")
    parts = [_part(name, about, values) for name, about in schema["properties"].items()]
    tasks = [_comment(f"TO DO: {visible(text)}") for text in to_do]
    return "\n".join([head, *tasks, *parts])


def _part(name: str, about: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    meaning = _comment(about["description"])
    if values.get(name):
        return f"{meaning}{dump({name: values[name]})}"
    example = dump({name: about["examples"][0]})
    return f"{meaning}{textwrap.indent(example, '# ')}"


def _comment(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, _WIDTH - 2) + "\n", "# ")
