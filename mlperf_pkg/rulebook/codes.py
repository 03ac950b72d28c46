"""The codes of findings that are not rules of a benchmark: what each means and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mlperf_pkg.infra.rules_folders import per_rulebook
from mlperf_pkg.rulebook.files import read, rule_files


class Code(Struct, frozen=True):
    """What a code means: a title, an explanation in prose, and the source of the rule."""

    code: str
    title: str
    explanation: str
    source: str


@per_rulebook
def codes() -> Mapping[str, Code]:
    """Return the codes of ``findings.yaml``.

    Raises:
        RulebookError: the file is not valid.
    """
    entries: dict[str, Code] = {}
    for file in reversed(list(rule_files("findings.yaml"))):
        entries |= {code: Code(code=code, **fields) for code, fields in read(file).items()}
    return entries
