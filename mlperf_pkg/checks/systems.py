"""System descriptions: one file ``<submitter>/systems/<system_desc_id>.json`` at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.system_fields import Description, check_fields
from mlperf_pkg.checks.system_values import is_text, shown, system_finding, whole_number
from mlperf_pkg.findings import Basis, Finding, Severity, Unchecked, in_order
from mlperf_pkg.infra.json_values import JsonLimitError, JsonProblem, JsonSyntaxError, read_json
from mlperf_pkg.rulebook.codes import codes


class SystemFile(Struct, frozen=True):
    """A system description: the fields that other checks use, and its findings in order.

    ``id`` is the stem of the file name, to which folders of results refer. Fields are None where
    the file lacks them or holds something other than text; ``contents`` where it is not a JSON
    object. ``accelerators`` is the total over all ``nodes``; both are None where they are unknown.
    """

    path: str
    id: str
    contents: dict[str, Any] | None
    submitter: str | None
    division: str | None
    status: str | None
    system_name: str | None
    accelerators: int | None
    findings: tuple[Finding, ...]
    nodes: int | None = None
    submitter_line: int | None = None

    @property
    def unchecked(self) -> bool:
        """Whether it could not be checked."""
        return any(isinstance(finding, Unchecked) for finding in self.findings)


class _ProblemCode(Struct, frozen=True):
    """How a problem of a JSON file is reported."""

    code: str
    severity: Severity
    basis: Basis


_PROBLEMS = {  # by the kind of the problem
    "bom": _ProblemCode("SYS002", Severity.ERROR, Basis.OFFICIAL),
    "encoding": _ProblemCode("SYS003", Severity.ERROR, Basis.OFFICIAL),
    "duplicate_key": _ProblemCode("SYS005", Severity.WARNING, Basis.ADVICE),
    "not_finite": _ProblemCode("SYS006", Severity.WARNING, Basis.ADVICE),
}


def check_system(path: str, data: bytes, usage: str, round_: str) -> SystemFile:
    """Read and check the bytes of one system description for a round such as ``"2.0"``.

    ``verdicts_of`` its findings are the official verdict, fail also where the system description
    checker would raise an exception, and that of the written rules.
    """
    try:
        document = read_json(data)
    except JsonLimitError as error:
        return _system_file(path, None, [_not_read(path, error)])
    except JsonSyntaxError as error:
        return _system_file(path, None, [system_finding("SYS001", path, error.line, error.message)])
    findings = [_problem_finding(path, problem) for problem in document.problems]
    contents = document.value
    if not isinstance(contents, dict):
        message = f"the file holds {shown(contents)}; expected an object of fields"
        findings.append(system_finding("SYS004", path, document.line(()), message))
        return _system_file(path, None, findings)
    findings += check_fields(Description(path, contents, document, usage, round_))
    system = _system_file(path, contents, findings)
    return replace(system, submitter_line=document.line(("submitter",)))


def _not_read(path: str, error: JsonLimitError) -> Finding:
    return Unchecked(
        code="SYS001",
        message=error.message,
        path=path,
        line=error.line,
        source=codes()["SYS001"].source,
    )


def _problem_finding(path: str, problem: JsonProblem) -> Finding:
    kind = _PROBLEMS[problem.kind]
    return system_finding(
        kind.code,
        path,
        problem.line,
        problem.message,
        severity=kind.severity,
        basis=kind.basis,
    )


def _system_file(
    path: str, contents: dict[str, Any] | None, findings: Iterable[Finding]
) -> SystemFile:
    fields = contents or {}
    texts = {name: value for name, value in fields.items() if is_text(value)}
    nodes = whole_number(fields.get("number_of_nodes"))
    per_node = whole_number(fields.get("accelerators_per_node"))
    return SystemFile(
        path=path,
        id=PurePosixPath(path).stem,
        contents=contents,
        submitter=texts.get("submitter"),
        division=texts.get("division"),
        status=texts.get("status"),
        system_name=texts.get("system_name"),
        accelerators=None if nodes is None or per_node is None else nodes * per_node,
        findings=in_order(findings),
        nodes=nodes,
    )


def unchecked_system(path: str, finding: Finding) -> SystemFile:
    """Return a system description of which there is only a finding."""
    return _system_file(path, None, [finding])
