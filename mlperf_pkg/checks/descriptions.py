"""System descriptions: ``<submitter>/systems/<system_desc_id>.json``, and the rules on a field.

What they must contain is in the schemas in ``rules/systems/``: the required fields are the same in
every round; the names of availabilities are not.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.names import FIELDS as NAME_FIELDS
from mlperf_pkg.checks.names import (
    accelerators_in,
    is_of_model,
    numbered_accelerators,
    of_two_alphabets,
    published_spelling,
    system_data,
    words_of,
)
from mlperf_pkg.findings import (
    MAX_LINES,
    NOTE,
    Basis,
    Finding,
    Occurrence,
    Severity,
    Unchecked,
    in_order,
    values_of,
    word,
)
from mlperf_pkg.infra.json_values import JsonDocument, JsonLimitError, JsonSyntaxError, read_json
from mlperf_pkg.infra.text import letters, nearest
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.rulebook.load import finding_of, load_round, unchecked_of
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import TRAINING
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import SYSTEMS, set_name


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


_PROBLEMS = {
    "bom": "SYS002",
    "encoding": "SYS003",
    "duplicate_key": "SYS005",
    "not_finite": "SYS006",
}


def check_system(path: str, data: bytes, usage: str, round_: str) -> SystemFile:
    """Read and check the bytes of one system description for a round such as ``"2.0"``.

    ``verdicts_of`` its findings are the official verdict, fail also where the system description
    checker would raise an exception, and that of the written rules.
    """
    try:
        document = read_json(data)
    except JsonLimitError as error:
        return unchecked_system(path, unchecked_of("SYS001", error.message, path, line=error.line))
    except JsonSyntaxError as error:
        return unchecked_system(path, system_finding("SYS001", path, error.line, error.message))
    findings: list[Finding] = []
    for problem in document.problems:
        code = _PROBLEMS[problem.kind]
        findings.append(system_finding(code, path, problem.line, problem.message))
    contents = document.value
    if not isinstance(contents, dict):
        message = f"the file contains {shown(contents)}; expected one JSON object"
        findings.append(system_finding("SYS004", path, document.line(()), message))
        return _system_file(path, None, findings)
    text_of = load_round(usage, round_).text_of
    description = _Description(path, contents, document, usage, round_, text_of)
    for rule in RULES:
        findings += filter(_is_shown, rule(description))
    system = _system_file(path, contents, findings)
    return replace(system, submitter_line=document.line(("submitter",)))


def _is_shown(finding: Finding) -> bool:
    """Return whether a finding says more of a value than SYS203, that it is still to be filled in.

    What the official checker finds is always shown.
    """
    is_official = finding.basis in (Basis.OFFICIAL, Basis.BOTH)
    return finding.code == "SYS203" or is_official or not is_to_fill_in(finding.found)


def unchecked_system(path: str, finding: Finding) -> SystemFile:
    """Return a system description of which there is only a finding."""
    return _system_file(path, None, [finding])


def _system_file(
    path: str, contents: dict[str, Any] | None, findings: Iterable[Finding]
) -> SystemFile:
    fields = contents or {}
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    nodes = whole_number(fields.get("number_of_nodes"))
    per_node = whole_number(fields.get("accelerators_per_node"))
    accelerators = None
    if nodes is not None and per_node is not None:
        accelerators = nodes * per_node
    return SystemFile(
        path=path,
        id=PurePosixPath(path).stem,
        contents=contents,
        submitter=texts.get("submitter"),
        division=texts.get("division"),
        status=texts.get("status"),
        system_name=texts.get("system_name"),
        accelerators=accelerators,
        findings=in_order(findings),
        nodes=nodes,
    )


# ---- the schemas -------------------------------------------------------------------------

FILL_IN = "FILL IN"
"""The start of every value that ``system init`` leaves to a human."""

SIMILAR = 0.85
"""The similarity, up to 1, of a field or a status and its misspelling."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
_FIXED_FROM = (4, 0)  # the first round whose availabilities the official checker checks
STRICT_FROM = (6, 1)  # the first round for which what published submissions often lack counts


def schema(name: str) -> dict[str, Any]:
    """Return one schema: ``system``, ``availability_0.7`` or ``availability_4.0``."""
    return system_data(f"{name}.schema")


def violations(fields: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the fields of a wrong type or value: the keyword, the field, and what is expected.

    The library ``jsonschema`` finds the same, but takes longer to import than a check takes.
    """
    for name, (options, type_, types) in _allowed_values().items():
        if name not in fields:
            continue
        value = fields[name]
        if options is not None and value not in options:
            yield "enum", name, options
        if types and (not isinstance(value, types) or isinstance(value, bool)):
            yield "type", name, type_


@cache
def _allowed_values() -> Mapping[str, tuple[list[Any] | None, Any, tuple[type, ...]]]:
    """Return the values of each field: some options, or a type as the schema and Python name it."""
    definitions = schema("system")["$defs"]
    allowed: dict[str, tuple[list[Any] | None, Any, tuple[type, ...]]] = {}
    for name, field in schema("system")["properties"].items():
        definition = field
        if "$ref" in field:
            definition = definitions[field["$ref"].rpartition("/")[2]]
        type_ = definition.get("type", [])
        type_names = [type_] if isinstance(type_, str) else type_
        types = tuple(chain.from_iterable(_TYPES[type_name] for type_name in type_names))
        allowed[name] = (definition.get("enum"), type_, types)
    return allowed


def required_fields() -> Sequence[str]:
    """Return the fields that every description has, in their order."""
    fields: list[str] = schema("system")["required"]
    return fields


@cache
def needing_answer(text_of: str | None = None, *, preview: bool = False) -> Sequence[Sequence[str]]:
    """Return groups of fields; at least one field of each group must not be empty.

    ``text_of`` is the round of Training with this text; None is the newest. The rules of earlier
    rounds, and those for a ``preview``, ask for fewer.
    """
    optional: set[str] = set()
    if preview:
        for first, fields in schema("system")["x-optional-for-preview"].items():
            if text_of is None or version_of(text_of) >= version_of(first):
                optional.update(fields)
    for first, fields in schema("system")["x-asked-from"].items():
        if text_of and version_of(text_of) < version_of(first):
            optional.update(fields)
    groups: list[list[str]] = schema("system")["x-needs-answer"]
    return [group for group in groups if not optional.issuperset(group)]


def meaning(field: str) -> str:
    """Return what a field means, in a sentence."""
    text: str = schema("system")["properties"][field]["description"]
    return text


def has_fixed_statuses(usage: str, round_: str) -> bool:
    """Return whether the official checker accepts only four availabilities."""
    return usage == "training" and version_of(round_) >= _FIXED_FROM


def statuses(usage: str, round_: str) -> Sequence[str]:
    """Return the availabilities of a round."""
    is_fixed = has_fixed_statuses(usage, round_)
    name = "availability_4.0" if is_fixed else "availability_0.7"
    names: list[str] = schema(name)["properties"]["status"]["enum"]
    return names


def spelled_statuses() -> dict[str, str]:
    """Return the availabilities of all rounds, in lower case, each as the newest spells it."""
    names: dict[str, str] = schema("availability_4.0")["x-formerly"]
    return names


def logged_statuses(status: str) -> Sequence[str]:
    """Return what logs of a system with an availability of any round name; empty for other text."""
    names: list[str] = schema("availability_0.7")["x-logged"].get(status.strip().lower(), [])
    return names


def status_of_round(status: str, usage: str, round_: str) -> str | None:
    """Return an availability of any round as another round spells it; None where it has none."""
    names = {name.lower(): name for name in statuses(usage, round_)}
    if has_fixed_statuses(usage, round_):
        names = spelled_statuses() | names
    return names.get(status.strip().lower())


# ---- values -------------------------------------------------------------------------------

_MAX_COUNT = 10**9


def system_finding(code: str, path: str, line: int | None, message: str, **fields: Any) -> Finding:
    """Return a finding on a description; ``fields`` are as for ``finding_of``.

    Any report can hold its value: it is not nested, is not NaN, and has no lone surrogate.
    """
    value = fields.get("found")
    is_not_finite = isinstance(value, float) and not math.isfinite(value)
    if isinstance(value, str):
        fields["found"] = _printable(value)
    elif isinstance(value, dict | list) or is_not_finite:
        fields["found"] = shown(value)
    return finding_of(code, message, path, line=line, **fields)


def is_answer(value: Any) -> bool:
    """Return whether a value answers its field: it is neither empty nor a placeholder."""
    if isinstance(value, str):
        return not re.match(schema("system")["x-placeholder"], value.lower(), re.DOTALL)
    return value not in (None, {}, [])


def is_to_fill_in(value: Any) -> bool:
    """Return whether ``system init`` left the value to a human."""
    return isinstance(value, str) and value.startswith(FILL_IN)


def whole_number(value: Any) -> int | None:
    """Return a count as the result summarizer's int() reads it, within reason."""
    try:
        number = int(value) if isinstance(value, str | float) else value
    except (ValueError, OverflowError):  # OverflowError: infinity
        return None
    if type(number) is not int or (isinstance(value, float) and number != value):
        return None
    return number if 0 <= number <= _MAX_COUNT else None


def shown(value: Any) -> str:
    """Return a value as JSON, shortened, for a message."""
    return _printable(word(value))


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


# ---- rules on the fields ------------------------------------------------------------------

_COUNTS = {  # field: what the results table counts with it
    "number_of_nodes": "accelerators",
    "host_processors_per_node": "processors",
    "accelerators_per_node": "accelerators",
}
_MOST_NAMED = 40  # fields to fill in
_LONGEST_NAME = 80  # characters


class _Description(Struct, frozen=True):
    """A system description that is a JSON object, and the round that it is checked for.

    ``text_of`` is the round of Training whose written rules apply.
    """

    path: str
    fields: dict[str, Any]
    document: JsonDocument
    usage: str
    round: str
    text_of: str

    @property
    def stem(self) -> str:
        """The name of the file without ``.json``, to which folders of results refer."""
        return PurePosixPath(self.path).stem

    @property
    def needing_answer(self) -> Sequence[Sequence[str]]:
        """The groups of fields, of each of which one must have an answer by the written rules."""
        is_preview = self.text("status").lower() == PREVIEW
        return needing_answer(self.text_of, preview=is_preview)

    @property
    def accelerators_per_node(self) -> int | None:
        """The number of accelerators in a node; None where it is unknown."""
        return whole_number(self.fields.get("accelerators_per_node"))

    def text(self, field: str) -> str:
        """The text of a field without spaces around it, empty if it has none."""
        return _stripped(self.fields.get(field))

    def line(self, field: str) -> int:
        """The line of a field."""
        return self.document.line((field,))

    def finding(self, code: str, field: str, message: str, **fields: Any) -> Finding:
        """Return a finding about the value of a field."""
        fields = {"found": self.fields.get(field), **fields}
        return system_finding(code, self.path, self.line(field), message, **fields)

    def one_of(self, code: str, field: str, options: Sequence[str], **fields: Any) -> Finding:
        """Return a finding about the value of a field, which is not one of its options."""
        *first, last = map(shown, options)
        message = f"{field} is {{found}}; expected {', '.join(first)} or {last}"
        return self.finding(code, field, message, expected=options, **fields)


def _file_name(description: _Description) -> Iterator[Finding]:
    """Advise only, as the check of the tree judges names like the repository checker."""
    name = description.stem
    if " " in name or name.startswith("."):
        message = "the file name is {found}; expected a name without a space or a dot at its start"
        yield system_finding("SYS302", description.path, None, message, found=name)


def _required_fields(description: _Description) -> Iterator[Finding]:
    """Check that fields exist and have the right type, and that the checkers know the division."""
    for field in required_fields():
        if field not in description.fields:
            yield _missing(description, field)
    for keyword, field, expected in violations(description.fields):
        if keyword == "enum":
            yield _unknown_division(description, expected)
            continue
        code = "SYS303"
        hint = None
        if expected == "string":  # on anything else, the official checker raises a TypeError
            code = "SYS102"
            hint = "write the value in double quotes"
        message = f"{field} is {{found}}; expected text"
        yield description.finding(code, field, message, expected=expected, hint=hint)


def _missing(description: _Description, field: str) -> Finding:
    """Return a finding at the line of a field of a similar name, if there is one.

    The rules require what needs an answer, and one of the two counts of processors is enough. The
    official checker requires every field.
    """
    properties = schema("system")["properties"]
    unknown = [name for name in description.fields if name not in properties]
    similar = nearest(field, unknown, SIMILAR)
    message = "missing fields: {expected:s}"
    line = description.document.line(())
    hint = None
    if similar is not None:
        message = "the field {found:q} is unknown; expected {expected:q}"
        line = description.line(similar)
        hint = f"rename {shown(similar)} to {shown(field)}"
    basis = Basis.OFFICIAL
    for group in description.needing_answer:
        if field in group and not any(name in description.fields for name in group):
            basis = Basis.BOTH
    return system_finding(
        "SYS101",
        description.path,
        line,
        message,
        basis=basis,
        found=similar,
        expected=field,
        hint=hint,
    )


def _unknown_division(description: _Description, options: Sequence[str]) -> Finding:
    """Return a finding; the official checkers treat other divisions as Open: no seeds, no RCP.

    The examples of the rules are spelt "Closed" and "Open".
    """
    value = description.text("division")
    similar = nearest(value, options)
    hint = f"for {shown(value)}, did you mean {shown(similar)}?" if similar else None
    weight = NOTE if str(description.fields["division"]).lower() in options else {}
    return description.one_of("SYS201", "division", options, hint=hint, **weight)


def _status(description: _Description) -> Iterator[Finding]:
    """Check the status: MLPerf Training fixes its values from round 4.0 on."""
    if "status" not in description.fields:
        return
    status = description.fields["status"]
    category_name = status.strip().lower() if isinstance(status, str) else status
    categories = schema("availability_0.7")["properties"]["status"]["enum"]
    is_known = category_name in categories
    if has_fixed_statuses(description.usage, description.round):
        # The rules allow any name of a category.
        yield from _fixed_status(description, Basis.OFFICIAL if is_known else Basis.BOTH)
    elif not is_known and is_answer(status):
        message = (
            "status is {found}; expected a category such as available, onprem, cloud, preview"
            " or research"
        )
        yield description.finding("SYS104", "status", message, expected=categories)


def _fixed_status(description: _Description, basis: Basis) -> Iterator[Finding]:
    """Check the status against the four that the official checker accepts."""
    status = description.fields["status"]
    options = statuses(description.usage, description.round)
    if status in options:
        return
    hint = None
    if isinstance(status, str):
        formerly = spelled_statuses() | {option.lower(): option for option in options}
        similar = nearest(status.strip().lower(), formerly, SIMILAR)
        if similar:
            hint = f"for {shown(status)}, did you mean {shown(formerly[similar])}?"
    yield description.one_of("SYS103", "status", options, basis=basis, hint=hint)


def _answers(description: _Description) -> Iterator[Finding]:
    """Warn about placeholders and empty fields, in one finding.

    One answer is enough for fields that replace one another, such as cores or virtual processors.
    """
    unanswered: list[Sequence[str]] = []
    for group in description.needing_answer:
        fields = [field for field in group if field in description.fields]
        if fields and not any(_is_answered(description, field) for field in fields):
            unanswered.append(fields)
    if unanswered:
        line = min(description.line(fields[0]) for fields in unanswered)
        expected = [" or ".join(fields) for fields in unanswered]
        message = "fields without a value, or with only a placeholder: {expected:s}"
        yield system_finding("SYS202", description.path, line, message, expected=expected)


def _is_answered(description: _Description, field: str) -> bool:
    """Return whether a field has an answer.

    Without accelerators, nothing about them needs one; with them, a name such as N/A is none.
    """
    value = description.fields[field]
    number = description.accelerators_per_node
    if number == 0 and field.startswith("accelerator_"):
        return True
    if number and field == "accelerator_model_name" and isinstance(value, str):
        return is_answer(value) and bool(words_of(value))
    return is_answer(value)


_NOT_TESTED = ("system_type", "host_network_card_count")
"""Fields that the rules require, and whose presence the official checker does not test."""


def _untested_fields(description: _Description) -> Iterator[Finding]:
    """Check for fields of the rules that most published descriptions lack."""
    is_strict = description.usage == TRAINING and version_of(description.round) >= STRICT_FROM
    for field in _NOT_TESTED:
        if field not in description.fields and [field] in description.needing_answer:
            message = "missing fields: {expected:s}"
            fields = {} if is_strict else {"severity": Severity.NOTE}
            yield system_finding(
                "SYS305", description.path, None, message, expected=field, **fields
            )


def _software(description: _Description) -> Iterator[Finding]:
    """Check that a version or a commit identifies the software, if all of it is named."""
    software = [description.fields.get(name) for name in ("framework", "other_software_stack")]
    if all(map(is_answer, software)) and not re.search(r"\d", str(software)):
        message = "framework is {found}, and no software has a version; expected {expected}"
        yield description.finding("SYS306", "framework", message, expected="a version or commit")


def _nodes(description: _Description) -> Iterator[Finding]:
    """Check that the system has a node."""
    value = description.fields.get("number_of_nodes")
    text = str(value).strip()
    if whole_number(value) == 0 or (text[:1] == "-" and whole_number(text[1:]) is not None):
        message = "number_of_nodes is {found}; expected at least 1"
        yield description.finding("SYS204", "number_of_nodes", message, expected="at least 1")


_NUMBER_IN_NAME = re.compile(
    r"^(\d+)x|[-_](\d+)x(?![a-z0-9])|_n(\d+)(?![a-z0-9])|ngpu(\d+)|-n(\d+)(?:-|$)|(\d+)[-_ ]?nodes?"
)


def _number_in_name(description: _Description) -> Iterator[Finding]:
    """Check that the number of nodes or accelerators in the name is that of the fields.

    In HPC it may be that of one model of weak scaling. A number in the name of a processor or an
    accelerator counts nothing.
    """
    number = _stated_number(description)
    nodes = whole_number(description.fields.get("number_of_nodes"))
    per_node = description.accelerators_per_node
    if number is None or not nodes or per_node is None:
        return
    accelerators = nodes * per_node
    is_part = description.usage != TRAINING and number and nodes % number == 0
    if number not in (nodes, accelerators) and not is_part:
        message = (
            f"number_of_nodes is {{found}}, with {accelerators} accelerators in all"
            "; expected one of these numbers to be {expected}, as in the name of the file"
        )
        yield description.finding("SYS206", "number_of_nodes", message, expected=number)


def _stated_number(description: _Description) -> int | None:
    """Return the first number in the name of the file that is not in the name of a model.

    A number of accelerators counts neither.
    """
    names = [description.text(field) for field in NAME_FIELDS]
    stem = description.stem.lower()
    for numbered in numbered_accelerators(stem):
        stem = stem.replace(numbered.text, "")
    for match in _NUMBER_IN_NAME.finditer(stem):
        if not is_of_model(match[0].strip("-_"), names):
            return int(next(filter(None, match.groups())))
    return None


def _accelerators_in_name(description: _Description) -> Iterator[Finding]:
    """Check that the accelerators in the name of the file are those of the fields."""
    field = "accelerator_model_name"
    models = accelerators_in(description.stem)
    own_models = accelerators_in(description.text(field))
    if models and own_models and models.isdisjoint(own_models):
        message = f"{field} is {{found}}; expected {{expected:s}}, as in the name of the file"
        expected = sorted(model.upper() for model in models)
        yield description.finding("SYS207", field, message, expected=expected)
    per_node = description.accelerators_per_node
    nodes = whole_number(description.fields.get("number_of_nodes"))
    if not per_node or not nodes:
        return
    for numbered in numbered_accelerators(description.stem):
        if numbered.number not in (per_node, per_node * nodes):
            message = (
                f"accelerators_per_node is {{found}}, with {per_node * nodes} accelerators in all"
                "; expected one of these numbers to be {expected}, as"
                f" {shown(numbered.text)} in the name of the file"
            )
            yield description.finding(
                "SYS207", "accelerators_per_node", message, expected=numbered.number
            )
            return


def _letters(description: _Description) -> Iterator[Finding]:
    """Check that the names of the system and of the submitter are in one alphabet."""
    for field in ("submitter", "system_name"):
        message = of_two_alphabets(field, description.text(field))
        if message:
            yield description.finding("SYS208", field, message)
    message = of_two_alphabets("the file name", description.stem)
    if message:
        yield system_finding("SYS208", description.path, None, message, found=description.stem)


def _names(description: _Description) -> Iterator[Finding]:
    """Note names of processors and accelerators that published descriptions spell otherwise."""
    for field in NAME_FIELDS:
        name = description.text(field)
        spelling = published_spelling(field, name)
        if spelling and spelling != name:
            message = f"{field} is {{found}}; expected {{expected:,}}, as in published descriptions"
            if name.lower() == spelling.lower():
                message = f"{message} (only the case differs)"
            yield description.finding("SYS304", field, message, found=name, expected=spelling)


def _to_fill_in(description: _Description) -> Iterator[Finding]:
    """Report, as one finding, the values that ``system init`` left to fill in."""
    left: list[tuple[tuple[str, ...], str]] = []
    for path, value in _values(description.fields):
        if is_to_fill_in(value):
            left.append((path, value))
    if not left:
        return
    count = len(left)
    names = [".".join(path)[:_LONGEST_NAME] for path, _ in left[:_MOST_NAMED]]
    if count == 1:
        message = f"{names[0]} is {{found}}; expected the value of the system"
        finding = _left_to_fill_in(description, left, message, left[0][1])
    else:
        message = f"{count} fields are not filled in: {', '.join(names)}"
        if count > _MOST_NAMED:
            message = f"{message} and {count - _MOST_NAMED} more"
        finding = _left_to_fill_in(description, left, message, names)
    yield finding


def _left_to_fill_in(
    description: _Description, left: Sequence[tuple[tuple[str, ...], str]], message: str, value: Any
) -> Finding:
    """Return the finding that values are ``left`` to fill in, with the lines of their fields."""
    lines: list[int] = []
    for path, _ in left:
        line = description.document.line(path)
        if line:
            lines.append(line)
    first_line = lines[0] if lines else None
    finding = system_finding("SYS203", description.path, first_line, message, found=value)
    values = values_of(finding.found)
    place = Occurrence(finding.path, tuple(lines[:MAX_LINES]), len(left), values)
    return replace(finding, places=(place,))


def _values(fields: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values of all fields and of their members, each with its path."""
    for field, value in fields.items():
        if isinstance(value, dict):
            yield from (((field, name), member) for name, member in value.items())
        else:
            yield (field,), value


def _counts(description: _Description) -> Iterator[Finding]:
    """Check counts, of which the results table takes int(); the package checker accepts any."""
    for field, counted in _COUNTS.items():
        if field in description.fields and whole_number(description.fields[field]) is None:
            message = (
                f"{field} is {{found}}; expected a whole number of at most {_MAX_COUNT:,}, as"
                f" the results table computes the number of {counted} from this field"
            )
            yield description.finding("SYS301", field, message)


RULES: tuple[Callable[[_Description], Iterator[Finding]], ...] = (
    _file_name,
    _required_fields,
    _status,
    _answers,
    _untested_fields,
    _software,
    _nodes,
    _number_in_name,
    _accelerators_in_name,
    _letters,
    _to_fill_in,
    _counts,
    _names,
)
"""The rules on a system description. That on its submitter is in ``tree``, with the folder."""


# ---- fields that published results also have ----------------------------------------------

PREVIEW = "preview"
AVAILABLE = ("onprem", "cloud")

CATEGORIES = {  # in the order of the rules
    "cloud": "Available cloud",
    "onprem": "Available on-premise",
    PREVIEW: "Preview",
    "research": "Research, Development, or Internal (RDI)",
}
"""The titles of availabilities by ``category``. Source: submission_rules, Results categories"""

TEXTS = {
    "system_name": "system_name",
    "accelerator_model": "accelerator_model_name",
    "host_processor": "host_processor_model_name",
    "framework": "framework",
}
COUNTS = {"accelerators_per_node": "accelerators_per_node", "nodes": "number_of_nodes"}
"""Fields of ``PublishedSet`` and their names in a description."""


def published_fields(system: SystemFile | None) -> dict[str, Any]:
    """Return texts and numbers of a description by fields of ``PublishedSet``.

    Texts that are missing are empty.
    """
    contents = (system and system.contents) or {}
    texts = {name: _stripped(contents.get(field)) for name, field in TEXTS.items()}
    return texts | {name: whole_number(contents.get(field)) for name, field in COUNTS.items()}


class DescribedSystems(Struct, frozen=True):
    """Every system of a submission, and what all its result sets ask of them.

    ``available`` holds the last system that is Available, by the letters of its accelerator;
    ``names`` are those of all systems, one a line, to look at once for one that is in none.
    ``folder`` is where descriptions are: its path from the workspace or the submission.
    """

    every: tuple[SystemFile, ...] = ()
    available: Mapping[str, SystemFile] = {}
    names: str = ""
    folder: str = SYSTEMS


def described_systems(systems: tuple[SystemFile, ...], folder: str = SYSTEMS) -> DescribedSystems:
    """Return the systems in a folder, prepared for the result sets of their submission."""
    available: dict[str, SystemFile] = {}
    for system in systems:
        if category(system.status or "") in AVAILABLE:
            available[letters(published_fields(system)["accelerator_model"])] = system
    names = "\n".join(chain.from_iterable(map(names_of, systems)))
    return DescribedSystems(systems, available, names, folder)


def names_of(system: SystemFile) -> set[str]:
    """Return the id and the name of a system, in letters and digits."""
    return {letters(system.id), letters(system.system_name or "")} - {""}


def as_published(
    row: ResultSetRow, runs: Sequence[Run], system: SystemFile | None, batch_size: int | None = None
) -> PublishedSet:
    """Return a checked result set as if it were published."""
    contents = (system and system.contents) or {}
    return PublishedSet(
        usage=runs[0].usage if runs else TRAINING,
        round=row.round,
        submitter=row.submitter or "",
        system=row.system or "",
        benchmark=row.benchmark,
        division=_stripped(contents.get("division")),
        path=row.path if set_name(row.path) else row.id,  # the path of raw logs does not name a set
        status=_stripped(contents.get("status")),
        accelerators=system.accelerators if system else None,
        **published_fields(system),
        global_batch_size=batch_size,
        runs=len(runs),
        score_minutes=row.score_minutes,
        unscaled_minutes=row.unscaled_minutes,
        official_minutes=row.official_minutes,
        energy_joules=row.energy_joules,
    )


def batch_size_of(runs: Sequence[Run]) -> int | None:
    """Return the batch size of all runs, None if they differ or log none."""
    sizes = {size for run in runs for size in run.batch_sizes}
    return _size_in(sizes.pop()) if len(sizes) == 1 else None


@lru_cache(maxsize=256)
def _size_in(text: str) -> int | None:
    """Return a batch size that a log holds as JSON, None unless it is a whole number."""
    try:
        return whole_number(json.loads(text))
    except (ValueError, RecursionError):
        return None


def different_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields in which two descriptions differ.

    Spellings of one availability, division or number are the same.
    """
    different: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        before = (name in old, _meaning(name, old.get(name)))
        after = (name in new, _meaning(name, new.get(name)))
        if before != after:
            different.append(name[:80])
    return different


def _meaning(field: str, value: Any) -> Any:
    """Return what the value of a field means, whatever its spelling."""
    if isinstance(value, str):
        value = value.strip()
        if field == "status":
            return category(value) or value
        if field == "division":
            return known_division(value)
    number = whole_number(value)
    return value if number is None else number


def _stripped(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def category(status: str) -> str | None:
    """Return the name of an availability in logs, for any round; None for other text."""
    return next(iter(logged_statuses(status)), None)
