"""The codes of findings that are not rules of a benchmark: what each means and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.rulebook.files import read, rule_files


class Exceptional(Struct, frozen=True):
    """When a code is reported with another basis or severity; None is the usual one."""

    when: str
    basis: Basis | None = None
    severity: Severity | None = None


class Code(Struct, frozen=True):
    """What a code means: a title, an explanation in prose, and the source of the rule.

    It is reported with its ``basis`` and ``severity``, ``unless`` an exception says otherwise.
    """

    code: str
    title: str
    explanation: str
    source: str
    basis: Basis = Basis.BOTH
    severity: Severity = Severity.ERROR
    unless: tuple[Exceptional, ...] = ()


@per_rulebook
def codes() -> Mapping[str, Code]:
    """Return the codes of ``findings.yaml``.

    Raises:
        RulebookError: the file is not valid.
    """
    entries: dict[str, Any] = {}
    for file in reversed(list(rule_files("findings.yaml"))):
        entries |= {code: {"code": code, **fields} for code, fields in read(file).items()}
    return msgspec.convert(entries, dict[str, Code])
