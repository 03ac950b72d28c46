"""System descriptions: one file ``<submitter>/systems/<system_desc_id>.json`` at a time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, TypeGuard

from msgspec import Struct

from mlperf_pkg.checks.system_schema import (
    FILL_IN,
    Wrong,
    is_strict,
    needing_answer,
    schema,
    wrong_fields,
)
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.json_lines import JsonDocument, JsonProblem, JsonSyntaxError, read_json
from mlperf_pkg.infra.text import nearest
from mlperf_pkg.rulebook.codes import codes

_CHECKER = "mlperf_logging system_desc_checker"
_METADATA = "submission_rules, <system_desc_id>.json metadata"
_TABLE = "mlperf_logging result_summarizer"

_PROBLEMS = {  # kind of a JSON problem: code, severity, basis
    "bom": ("SYS002", Severity.ERROR, Basis.OFFICIAL),
    "encoding": ("SYS003", Severity.ERROR, Basis.OFFICIAL),
    "duplicate_key": ("SYS005", Severity.WARNING, Basis.ADVICE),
    "not_finite": ("SYS006", Severity.WARNING, Basis.ADVICE),
}

_COUNTS = ("number_of_nodes", "host_processors_per_node", "accelerators_per_node")
_LARGEST_COUNT = 10**9
_SHOWN = 80  # characters of a value in a message


class SystemFile(Struct, frozen=True):
    """A system description: what the other checks need of it, and its findings in order.

    ``id`` is the file's stem, which results folders refer to. Fields are None where the file
    lacks them or holds something other than a text; ``contents`` where it is no JSON object.
    ``accelerators`` is the total over all nodes, None where it cannot be told.
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


class _Subject(Struct, frozen=True):
    """What a check looks at."""

    path: str
    contents: dict[str, Any]
    document: JsonDocument
    usage: str
    round: str

    def line(self, field: str) -> int:
        return self.document.line((field,))


def check_system(path: str, data: bytes, usage: str, round_: str) -> SystemFile:
    """Check one system description, given as its bytes, for a round such as ``"2.0"``.

    ``verdicts_of`` its findings is the official verdict (fail also where the system description
    checker would raise an exception) and that of the written rules.
    """
    try:
        document = read_json(data)
    except JsonSyntaxError as exc:
        return _system_file(path, None, [_finding("SYS001", path, exc.line, exc.message)])
    findings = [_problem(path, problem) for problem in document.problems]
    contents = document.value
    if not isinstance(contents, dict):
        message = f"found {_shown(contents)}, needed an object of fields"
        findings.append(_finding("SYS004", path, document.line(()), message))
        return _system_file(path, None, findings)
    subject = _Subject(path, contents, document, usage, round_)
    found = (finding for check in _CHECKS for finding in check(subject))
    findings.extend(finding for finding in found if not _is_said_already(finding))
    return _system_file(path, contents, findings)


def _system_file(path: str, contents: dict[str, Any] | None, findings: list[Finding]) -> SystemFile:
    fields = contents or {}
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    nodes = _whole(fields.get("number_of_nodes"))
    per_node = _whole(fields.get("accelerators_per_node"))
    return SystemFile(
        path=path,
        id=PurePosixPath(path).stem,
        contents=contents,
        submitter=texts.get("submitter"),
        division=texts.get("division"),
        status=texts.get("status"),
        system_name=texts.get("system_name"),
        accelerators=None if nodes is None or per_node is None else nodes * per_node,
        findings=tuple(sorted(findings, key=lambda finding: finding.sort_key)),
    )


def _finding(code: str, path: str, line: int | None, message: str, **more: Any) -> Finding:
    more["found"] = _plain(more.get("found"))
    source = codes()[code].source
    return Finding(code=code, path=path, line=line, message=message, source=source, **more)


def _problem(path: str, problem: JsonProblem) -> Finding:
    code, severity, basis = _PROBLEMS[problem.kind]
    return _finding(code, path, problem.line, problem.message, severity=severity, basis=basis)


def _file_name(subject: _Subject) -> Iterator[Finding]:
    """Advice only: it is the tree's check that judges names as the repository checker does."""
    name = PurePosixPath(subject.path).stem
    if " " in name or name.startswith("."):
        yield _finding(
            "SYS302",
            subject.path,
            None,
            f"found the name {_shown(name)}, needed one without spaces or a dot at its beginning",
            severity=Severity.WARNING,
            basis=Basis.ADVICE,
            found=name,
        )


def _fields(subject: _Subject) -> Iterator[Finding]:
    """Fields that are there, of the right type, and a division that the checkers know."""
    needed = schema("system")["required"]
    missing = (field for field in needed if field not in subject.contents)
    yield from (_missing(subject, field) for field in missing)
    for wrong in wrong_fields(subject.contents):
        yield _division(subject, wrong) if wrong.keyword == "enum" else _type(subject, wrong)


def _missing(subject: _Subject, field: str) -> Finding:
    """At the line of a field of nearly this name, where there is one."""
    fields = schema("system")["properties"]
    unknown = [name for name in subject.contents if name not in fields]
    similar = nearest(field, unknown, 0.85)
    return _finding(
        "SYS101",
        subject.path,
        subject.document.line(() if similar is None else (similar,)),
        f"found no {_shown(field)}, needed this field",
        expected=field,
        hint=None if similar is None else f"rename {_shown(similar)}",
    )


def _division(subject: _Subject, wrong: Wrong) -> Finding:
    """The official checkers take any other division for Open: no seed and no RCP check."""
    found, options = wrong.found, wrong.needed
    similar = nearest(found.strip(), options) if _is_text(found) else None
    return _finding(
        "SYS201",
        subject.path,
        subject.line("division"),
        f"found the division {_shown(found)}, needed {_either(options)}",
        basis=Basis.RULES,
        found=found,
        expected=options,
        hint=f"did you mean {similar}?" if similar else None,
    )


def _type(subject: _Subject, wrong: Wrong) -> Finding:
    field, found = wrong.field, wrong.found
    # The schema admits nothing but a text where the official checker would raise a TypeError.
    fatal = wrong.needed == "string"
    return _finding(
        "SYS102" if fatal else "SYS303",
        subject.path,
        subject.line(field),
        f"found {_shown(found)} as {field}, needed a text",
        severity=Severity.ERROR if fatal else Severity.WARNING,
        basis=Basis.OFFICIAL if fatal else Basis.ADVICE,
        found=found,
        expected=wrong.needed,
        hint="write it in double quotes" if fatal else None,
    )


def _availability(subject: _Subject) -> Iterator[Finding]:
    """MLPerf Training fixes the texts from round 4.0 on; before, and in HPC, no checker looks."""
    if "status" not in subject.contents:
        return
    status = subject.contents["status"]
    usual = status.strip().lower() if _is_text(status) else status
    known = usual in schema("availability_0.7")["properties"]["status"]["enum"]
    if is_strict(subject.usage, subject.round):
        if status not in schema("availability_4.0")["properties"]["status"]["enum"]:
            yield _strict_availability(subject, usual, known)
    elif not known and _answered(status):
        yield _finding(
            "SYS104",
            subject.path,
            subject.line("status"),
            f"found the status {_shown(status)}, needed a category such as available, onprem, "
            "cloud, preview or research",
            severity=Severity.WARNING,
            basis=Basis.RULES,
            found=status,
            expected=schema("availability_0.7")["properties"]["status"]["enum"],
        )


def _strict_availability(subject: _Subject, usual: Any, known: bool) -> Finding:
    """The rules allow any name of a known category; the checker only its own four texts."""
    strict = schema("availability_4.0")
    options = strict["properties"]["status"]["enum"]
    today = strict["x-formerly"].get(usual) if _is_text(usual) else None
    status = subject.contents["status"]
    return _finding(
        "SYS103",
        subject.path,
        subject.line("status"),
        f"found the status {_shown(status)}, needed {_either(options)}",
        basis=Basis.OFFICIAL if known else Basis.BOTH,
        found=status,
        expected=options,
        hint=f"did you mean {_shown(today)}?" if today else None,
    )


def _answers(subject: _Subject) -> Iterator[Finding]:
    """All unanswered fields in one finding; never an error: most published files have some.

    Of fields that answer in place of one another (cores or virtual processors) one is enough.
    """
    contents = subject.contents
    groups = ([f for f in group if f in contents] for group in needing_answer())
    silent = [g for g in groups if g and not any(_answered(contents[f]) for f in g)]
    if silent:
        names = [" or ".join(group) for group in silent]
        yield _finding(
            "SYS202",
            subject.path,
            min(subject.line(group[0]) for group in silent),
            f"found no answer, needed one to {', '.join(names)}",
            severity=Severity.WARNING,
            basis=Basis.RULES,
            expected=names,
        )


def _to_fill_in(subject: _Subject) -> Iterator[Finding]:
    """What ``system init`` has left to a human."""
    for field, value in subject.contents.items():
        if _is_to_fill_in(value):
            yield _finding(
                "SYS203",
                subject.path,
                subject.line(field),
                f"found {_shown(value)}, needed the answer for {_shown(field)}",
                basis=Basis.RULES,
                found=value,
            )


def _is_to_fill_in(value: Any) -> bool:
    return _is_text(value) and value.startswith(FILL_IN)


def _is_said_already(finding: Finding) -> bool:
    """Whether what is wrong with a value is that it is still to be filled in."""
    official = finding.basis in (Basis.OFFICIAL, Basis.BOTH)
    return finding.code != "SYS203" and _is_to_fill_in(finding.found) and not official


def _counts(subject: _Subject) -> Iterator[Finding]:
    """The package checker passes any text here; the results table is made by int()."""
    for field in _COUNTS:
        if field in subject.contents and _whole(subject.contents[field]) is None:
            found = subject.contents[field]
            yield _finding(
                "SYS301",
                subject.path,
                subject.line(field),
                f"found {_shown(found)} as {field}, needed a whole number: the results table "
                f"cannot count {'processors' if 'host' in field else 'accelerators'} without it",
                severity=Severity.WARNING,
                basis=Basis.ADVICE,
                found=found,
            )


_CHECKS: tuple[Callable[[_Subject], Iterator[Finding]], ...] = (
    _file_name,
    _fields,
    _availability,
    _answers,
    _to_fill_in,
    _counts,
)


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str)


def _answered(value: Any) -> bool:
    if isinstance(value, str):
        return not _placeholder().match(value.lower())
    return value not in (None, {}, [])


@lru_cache
def _placeholder() -> re.Pattern[str]:
    return re.compile(schema("system")["x-placeholder"], re.DOTALL)


def _whole(value: Any) -> int | None:
    """A count as the result summarizer's int() reads it, within reason."""
    try:
        number = int(value) if isinstance(value, str | float) else value
    except (ValueError, OverflowError):  # OverflowError: infinity
        return None
    if type(number) is not int or (isinstance(value, float) and number != value):
        return None
    return number if 0 <= number <= _LARGEST_COUNT else None


def _shown(value: Any) -> str:
    """A value as JSON, shortened, for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return _printable(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...")


def _plain(value: Any) -> Any:
    """A value that any report can hold: nothing nested, no NaN, no half of a character."""
    if isinstance(value, str):
        return _printable(value)
    odd = isinstance(value, dict | list) or (isinstance(value, float) and not math.isfinite(value))
    return _shown(value) if odd else value


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _either(options: list[str]) -> str:
    return " or ".join(_shown(option) for option in options)
