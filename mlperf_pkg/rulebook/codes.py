"""The codes of findings that are not rules of a benchmark: what each means and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.load import read_yaml


class Code(Struct, frozen=True):
    """What a code stands for: a title, an explanation in prose, and the source of the rule."""

    code: str
    title: str
    explanation: str
    source: str


@cache
def codes() -> Mapping[str, Code]:
    """Return the codes of ``rules/findings.yaml``.

    Raises:
        RulebookError: the file is not valid.
    """
    entries = read_yaml(data_folder("rules") / "findings.yaml")
    return {code: Code(code=code, **fields) for code, fields in entries.items()}
