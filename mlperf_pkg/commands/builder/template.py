"""Write an ``mlperf-pkg.yaml`` that explains every key, as its schema describes it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

import yaml

from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.infra.resources import data_folder

_WIDTH = 80
_HEAD = "Values that can be inferred are optional: 'mlperf-pkg build --explain' shows them."


def config_text(values: Mapping[str, Any]) -> str:
    """Return a configuration with these ``values`` by key; all other keys are comments."""
    schema = json.loads((data_folder("rules") / "config.schema.json").read_text("utf-8"))
    head = _comment(f"{CONFIG_NAME}: {schema['description']} {_HEAD}")
    parts = [_part(name, about, values) for name, about in schema["properties"].items()]
    return "\n".join([head, *parts])


def _part(name: str, about: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    meaning = _comment(about["description"])
    if values.get(name):
        return f"{meaning}{_yaml({name: values[name]})}"
    example = _yaml({name: about["examples"][0]})
    return f"{meaning}{textwrap.indent(example, '# ')}"


def _comment(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, _WIDTH - 2) + "\n", "# ")


def _yaml(value: Mapping[str, Any]) -> str:
    """Return block style in the given order, one fact per line."""
    options: Any = {"sort_keys": False, "default_flow_style": False, "width": 1000}
    text: str = yaml.safe_dump(value, allow_unicode=True, **options)
    if not all(map(str.isprintable, text.split("\n"))):  # YAML allows characters that hide others
        text = yaml.safe_dump(value, **options)
    return text
