"""Checks of the fields of a system description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.system_names import FIELDS as NAME_FIELDS
from mlperf_pkg.checks.system_names import published_spelling
from mlperf_pkg.checks.system_schema import (
    SIMILAR,
    Violation,
    has_fixed_statuses,
    needing_answer,
    optional_fields,
    schema,
    violations,
)
from mlperf_pkg.checks.system_values import (
    is_answer,
    is_text,
    is_to_fill_in,
    one_of,
    shown,
    system_finding,
    whole_number,
)
from mlperf_pkg.findings import MAX_LINES, Basis, Finding, Occurrence, Severity, values_of
from mlperf_pkg.infra.json_values import JsonDocument
from mlperf_pkg.infra.text import nearest

_COUNTS = {  # field: what the results table counts with it
    "number_of_nodes": "accelerators",
    "host_processors_per_node": "processors",
    "accelerators_per_node": "accelerators",
}
_DIVISION_SPELLING: dict[str, Any] = {"basis": Basis.ADVICE, "severity": Severity.WARNING}
_NO_DIVISION: dict[str, Any] = {"basis": Basis.RULES}
_ANSWERED_BY_MOST = frozenset({  # published sets; others are empty in more than one of 25
    *("submitter", "division", "status", "system_name", "framework", "host_network_card_count"),
    *("number_of_nodes", "host_processors_per_node", "accelerators_per_node"),
    "accelerator_model_name",
})  # fmt: skip
_MOST_NAMED, _LONGEST_NAME = 40, 80  # fields to fill in; characters of a name
_PROCESSOR_COUNTS = ("host_processor_core_count", "host_processor_vcpu_count")


class Description(Struct, frozen=True):
    """A system description that is a JSON object, and the round that it is checked for."""

    path: str
    fields: dict[str, Any]
    document: JsonDocument
    usage: str
    round: str

    def line(self, field: str) -> int:
        """The line of a field."""
        return self.document.line((field,))


def check_fields(description: Description) -> Iterator[Finding]:
    """Yield the findings about the fields, each value's once."""
    for check in _CHECKS:
        for finding in check(description):
            if not _repeats_fill_in(finding):
                yield finding


def _repeats_fill_in(finding: Finding) -> bool:
    """Return whether SYS203 reports the same value, as one that is still to be filled in."""
    is_official = finding.basis in (Basis.OFFICIAL, Basis.BOTH)
    return finding.code != "SYS203" and is_to_fill_in(finding.found) and not is_official


def _file_name(description: Description) -> Iterator[Finding]:
    """Advise only, as the check of the tree judges names like the repository checker."""
    name = PurePosixPath(description.path).stem
    if " " in name or name.startswith("."):
        yield system_finding(
            "SYS302",
            description.path,
            None,
            "the file name is {found}; expected no space and no dot at its start",
            severity=Severity.WARNING,
            basis=Basis.ADVICE,
            found=name,
        )


def _required_fields(description: Description) -> Iterator[Finding]:
    """Check that fields exist and have the right type, and that the checkers know the division."""
    for field in schema("system")["required"]:
        if field not in description.fields:
            yield _missing(description, field)
    for violation in violations(description.fields):
        if violation.keyword == "enum":
            yield _unknown_division(description, violation)
        else:
            yield _wrong_type(description, violation)


def _missing(description: Description, field: str) -> Finding:
    """Return a finding at the line of a field of a similar name, if there is one."""
    properties = schema("system")["properties"]
    unknown = [name for name in description.fields if name not in properties]
    similar = nearest(field, unknown, SIMILAR)
    return system_finding(
        "SYS101",
        description.path,
        description.document.line(() if similar is None else (similar,)),
        "missing fields: {expected:s}",
        basis=Basis.OFFICIAL if _may_be_missing(description, field) else Basis.BOTH,
        expected=field,
        hint=None if similar is None else f"rename {shown(similar)}",
    )


def _may_be_missing(description: Description, field: str) -> bool:
    """Return whether the rules allow a field to be missing.

    One of the two counts is enough, a Preview needs none, and earlier rounds required fewer fields.
    """
    optional = optional_fields(description.round, preview=_is_preview(description))
    if field in optional or field not in _PROCESSOR_COUNTS:
        return field in optional
    return any(name in description.fields for name in _PROCESSOR_COUNTS)


def _is_preview(description: Description) -> bool:
    status = description.fields.get("status")
    return is_text(status) and status.strip().lower() == "preview"


def _unknown_division(description: Description, violation: Violation) -> Finding:
    """Return a finding; the official checkers treat other divisions as Open: no seeds, no RCP.

    The examples of the rules are spelt "Closed" and "Open".
    """
    value, options = violation.value, violation.expected
    similar = nearest(value.strip(), options) if is_text(value) else None
    return system_finding(
        "SYS201",
        description.path,
        description.line("division"),
        f"division is {{found}}; expected {one_of(options)}",
        **_DIVISION_SPELLING if is_text(value) and value.lower() in options else _NO_DIVISION,
        found=value,
        expected=options,
        hint=f"did you mean {similar}?" if similar else None,
    )


def _wrong_type(description: Description, violation: Violation) -> Finding:
    """Return a finding; where only text is allowed, the official checker raises a TypeError."""
    is_fatal = violation.expected == "string"
    return system_finding(
        "SYS102" if is_fatal else "SYS303",
        description.path,
        description.line(violation.field),
        f"{violation.field} is {{found}}; expected text",
        severity=Severity.ERROR if is_fatal else Severity.WARNING,
        basis=Basis.OFFICIAL if is_fatal else Basis.ADVICE,
        found=violation.value,
        expected=violation.expected,
        hint="write it in double quotes" if is_fatal else None,
    )


def _status(description: Description) -> Iterator[Finding]:
    """Check the status: MLPerf Training fixes its values from round 4.0 on."""
    if "status" not in description.fields:
        return
    status = description.fields["status"]
    category = status.strip().lower() if is_text(status) else status
    categories = schema("availability_0.7")["properties"]["status"]["enum"]
    is_known = category in categories
    if has_fixed_statuses(description.usage, description.round):
        if status not in schema("availability_4.0")["properties"]["status"]["enum"]:
            yield _not_fixed_status(description, category, is_known=is_known)
    elif not is_known and is_answer(status):
        yield system_finding(
            "SYS104",
            description.path,
            description.line("status"),
            "status is {found}; expected a category such as available, onprem, cloud, preview"
            " or research",
            severity=Severity.WARNING,
            basis=Basis.RULES,
            found=status,
            expected=categories,
        )


def _not_fixed_status(description: Description, category: Any, *, is_known: bool) -> Finding:
    """Return a finding: the rules allow any name of a category, the checker only four values."""
    fixed = schema("availability_4.0")
    options = fixed["properties"]["status"]["enum"]
    formerly = {**fixed["x-formerly"], **{option.lower(): option for option in options}}
    similar = nearest(category, formerly, SIMILAR) if is_text(category) else None
    current_name = formerly[similar] if similar else None
    status = description.fields["status"]
    return system_finding(
        "SYS103",
        description.path,
        description.line("status"),
        f"status is {{found}}; expected {one_of(options)}",
        basis=Basis.OFFICIAL if is_known else Basis.BOTH,
        found=status,
        expected=options,
        hint=f"did you mean {shown(current_name)}?" if current_name else None,
    )


def _answers(description: Description) -> Iterator[Finding]:
    """Warn about unanswered fields: as advice of those that many published files leave empty.

    One answer is enough for fields that replace one another, such as cores or virtual processors.
    """
    fields = description.fields
    required = needing_answer(description.round, preview=_is_preview(description))
    groups = ([field for field in group if field in fields] for group in required)
    empty = [group for group in groups if group and not any(is_answer(fields[f]) for f in group)]
    by_most = [group for group in empty if _ANSWERED_BY_MOST.issuperset(group)]
    by_some = [group for group in empty if group not in by_most]
    for unanswered, basis in ((by_most, Basis.RULES), (by_some, Basis.ADVICE)):
        if unanswered:
            yield system_finding(
                "SYS202",
                description.path,
                min(description.line(group[0]) for group in unanswered),
                "no value for {expected:s}",
                severity=Severity.WARNING,
                basis=basis,
                expected=[" or ".join(group) for group in unanswered],
            )


def _nodes(description: Description) -> Iterator[Finding]:
    """Check that the system has a node."""
    value = description.fields.get("number_of_nodes")
    if _is_below_one(value):
        yield system_finding(
            "SYS204",
            description.path,
            description.line("number_of_nodes"),
            "number_of_nodes is {found}; expected at least 1",
            basis=Basis.RULES,
            found=value,
            expected="at least 1",
        )


def _is_below_one(value: Any) -> bool:
    """Return whether a value is zero or a negative whole number."""
    text = str(value).strip()
    return whole_number(value) == 0 or (text[:1] == "-" and whole_number(text[1:]) is not None)


def _names(description: Description) -> Iterator[Finding]:
    """Note names of processors and accelerators that published descriptions spell otherwise."""
    for field in NAME_FIELDS:
        value = description.fields.get(field)
        name = value.strip() if is_text(value) else ""
        spelling = published_spelling(field, name)
        if spelling and spelling != name:
            yield system_finding(
                "SYS304",
                description.path,
                description.line(field),
                f"{field} is {{found}}; expected {{expected}} as in published descriptions",
                severity=Severity.NOTE,
                basis=Basis.ADVICE,
                found=name,
                expected=spelling,
            )


def _to_fill_in(description: Description) -> Iterator[Finding]:
    """Report, as one finding, the values that ``system init`` or ``merge`` left to fill in."""
    left = [(path, value) for path, value in _values(description.fields) if is_to_fill_in(value)]
    if not left:
        return
    names = [".".join(path)[:_LONGEST_NAME] for path, _ in left[:_MOST_NAMED]]
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    message = f"{names[0]} is {{found}}; expected its value"
    if len(left) > 1:
        message = f"{len(left)} fields are not filled in: {', '.join(names)}{more}"
    lines = [line for path, _ in left if (line := description.document.line(path))]
    finding = system_finding(
        "SYS203",
        description.path,
        lines[0] if lines else None,
        message,
        basis=Basis.RULES,
        found=left[0][1] if len(left) == 1 else names,
    )
    place = Occurrence(finding.path, tuple(lines[:MAX_LINES]), len(left), values_of(finding.found))
    yield replace(finding, places=(place,))


def _values(fields: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values of all fields and of their members, each with its path."""
    for field, value in fields.items():
        if isinstance(value, dict):
            yield from (((field, name), member) for name, member in value.items())
        else:
            yield (field,), value


def _counts(description: Description) -> Iterator[Finding]:
    """Check counts, of which the results table takes int(); the package checker accepts any."""
    for field, counted in _COUNTS.items():
        if field in description.fields and whole_number(description.fields[field]) is None:
            value = description.fields[field]
            yield system_finding(
                "SYS301",
                description.path,
                description.line(field),
                f"{field} is {{found}}; expected a whole number, without which the results"
                f" table cannot count {counted}",
                severity=Severity.WARNING,
                basis=Basis.ADVICE,
                found=value,
            )


_CHECKS: tuple[Callable[[Description], Iterator[Finding]], ...] = (
    _file_name,
    _required_fields,
    _status,
    _answers,
    _nodes,
    _to_fill_in,
    _counts,
    _names,
)
