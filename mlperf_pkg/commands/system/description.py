"""System descriptions: of a machine or from its nodes, and checked outside a submission."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.fold import system_row, tool
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks import descriptions as schema
from mlperf_pkg.checks.descriptions import SystemFile, check_system, unchecked_system
from mlperf_pkg.checks.names import FIELDS as NAME_FIELDS
from mlperf_pkg.checks.names import published_spelling
from mlperf_pkg.checks.tree import not_read
from mlperf_pkg.commands.system.machine import MachineSources, detected, frameworks
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Verdicts, folded, in_report
from mlperf_pkg.infra.json_values import MAX_BYTES, JsonSyntaxError, read_json
from mlperf_pkg.infra.paths import NotAFileError, is_folder, open_file, read_file
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.results.report import Report, as_json
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS, version_of
from mlperf_pkg.rulebook.rounds import TRAINING, Sureness
from mlperf_pkg.run.model import Identity, LogFile, identify
from mlperf_pkg.submission.find import find_input

ONE_NODE = "N/A, one node"
"""The network topology of a system with one node."""


class UserValues(Struct, frozen=True):
    """Values that only the user knows; their spelling depends on ``usage`` and ``round``.

    ``status`` is an availability in the words of any round. ``name`` is the system's name in the
    results table, never that of the host.
    """

    round: str
    submitter: str | None = None
    division: str | None = None
    status: str | None = None
    name: str | None = None
    nodes: int | None = None
    usage: str = TRAINING


def describe(sources: MachineSources, user_values: UserValues) -> dict[str, Any]:
    """Return the completed description of a machine, with names as published.

    Raises:
        UserError: the round has no such availability.
    """
    installed = frameworks(sources)
    values = dict(detected(sources, installed))
    for field in NAME_FIELDS:
        name = values.get(field) or ""
        values[field] = published_spelling(field, name) or name
    return completed(values, user_values, installed)


def completed(
    values: Mapping[str, Any], user_values: UserValues, installed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return every required field, in order, then others, and those that need an answer.

    The value of an unknown field begins with ``FILL IN`` where the rules require an answer, and is
    empty where they do not; ``installed`` are the frameworks to choose from.

    Raises:
        UserError: the round has no such availability.
    """
    fields: dict[str, Any] = dict.fromkeys(schema.required_fields(), "")
    for name, value in {**values, **user_fields(user_values)}.items():
        if value:
            fields[name] = value
    choices = {
        "status": schema.statuses(user_values.usage, user_values.round),
        "division": DIVISIONS,
        "framework": installed,
    }
    for group in schema.needing_answer():
        if not any(fields.get(name) for name in group):
            # What the user must fill in, or the possible answers.
            first = group[0]
            question = " or ".join(choices.get(first, ())) or schema.meaning(first)
            fields[first] = f"{schema.FILL_IN}: {question}"
    return fields


def user_fields(user_values: UserValues) -> dict[str, str]:
    """Return the fields that the user gives.

    Raises:
        UserError: the round has no such availability.
    """
    values = {
        "submitter": user_values.submitter,
        "division": user_values.division,
        "status": _status(user_values),
        "system_name": user_values.name,
        "number_of_nodes": str(user_values.nodes or ""),
        "host_networking_topology": ONE_NODE if user_values.nodes == 1 else None,
    }
    return {name: value for name, value in values.items() if value}


def _status(user_values: UserValues) -> str | None:
    """Return the user's availability in the words of the round.

    Raises:
        UserError: the round has no such availability.
    """
    text = user_values.status
    if text is None:
        return None
    status = schema.status_of_round(text, user_values.usage, user_values.round)
    if status is None:
        similar = did_you_mean(text, schema.spelled_statuses(), schema.SIMILAR)
        statuses = "; ".join(schema.statuses(user_values.usage, user_values.round))
        raise UserError(
            f"round {user_values.round} has no status {text!r}{similar} (the statuses are"
            f" {statuses})"
        )
    return status


# ---- a system with several nodes ----------------------------------------------------------

_MOST_NAMED = 3  # files with one value, and values of one field
_COUNT = "number_of_nodes"
_BY_NAME = "other_software_stack"  # its members are separate values

_Name = tuple[str, ...]  # a field, or a field and the name of a member


Node = tuple[str, dict[str, Any]]
"""The file and the fields of the description of one node."""


def read_nodes(paths: Sequence[str]) -> list[Node]:
    """Return the descriptions in files, and in the ``*.json`` files of folders.

    Raises:
        UserError: a file is named twice or is not a description, or a folder has no ``*.json``.
        OSError: a file cannot be read.
    """
    files = list(chain.from_iterable(map(description_files, paths)))
    seen: set[Path] = set()
    for file in files:
        path = Path(file).resolve()
        if path in seen:
            raise UserError(f"{file}: named twice; expected a file for each node")
        seen.add(path)
    return [(file, _fields(file)) for file in files]


def _fields(file: str) -> dict[str, Any]:
    try:
        fields = as_json(read_json(read_file(Path(file), MAX_BYTES)).value)
    except JsonSyntaxError as error:
        raise UserError(f"{file}:{error.line}: {error.message}") from error
    if not isinstance(fields, dict):
        raise UserError(
            f"{file}: the file has {schema.shown(fields)}; expected an object of fields"
        )
    return fields


def merge(nodes: Sequence[Node], user_values: UserValues) -> tuple[dict[str, Any], list[str]]:
    """Return the description of the system of these nodes, and a line for each difference.

    A field in which nodes differ begins with ``FILL IN``, unless only one value is an answer, which
    then applies to the system. Fields that the user sets do not differ.

    Raises:
        UserError: the user gives another number of nodes, or an unknown availability.
    """
    number = len(nodes)
    if user_values.nodes not in (None, number):
        raise UserError(
            f"--nodes is {user_values.nodes}; expected {number}, the number of"
            " descriptions of nodes"
        )
    user_values = replace(user_values, nodes=number)
    of_user = user_fields(user_values)
    fields: dict[str, Any] = {}
    differences = list(_wrong_numbers(nodes))
    for name, values in _values(nodes).items():
        field = name[0]
        if field in of_user:
            continue
        answers = _answers(nodes, values)
        members = fields if len(name) == 1 else fields.setdefault(field, {})
        members[name[-1]] = _merged(answers)
        if len(answers) > 1:
            differences.append(f"{'.'.join(name)}: {_in_words(answers)}")
    return completed(fields, user_values), differences


def _wrong_numbers(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield a line if descriptions say another number of nodes than one, or than there are."""
    number = len(nodes)
    values = []
    for _, fields in nodes:
        value = fields.get(_COUNT)
        is_right = schema.whole_number(value) in (1, number)
        values.append(None if is_right else value)
    answers = _answers(nodes, values)
    answers.pop("", None)
    if answers:
        yield f"{_COUNT}: {_in_words(answers)}; expected {number}, one for each file"


def _values(nodes: Sequence[Node]) -> Mapping[_Name, list[Any]]:
    """Return the values of each field, one per node, None if a node has no value."""
    named = all(isinstance(fields.get(_BY_NAME, {}), dict) for _, fields in nodes)
    values_of_nodes = [dict(_members(fields, named=named)) for _, fields in nodes]
    names = dict.fromkeys(chain.from_iterable(values_of_nodes))
    return {name: [values.get(name) for values in values_of_nodes] for name in names}


def _members(fields: Mapping[str, Any], *, named: bool) -> Iterator[tuple[_Name, Any]]:
    """Yield the values of a node, with each version of its software if it is ``named``."""
    for name, value in fields.items():
        if name == _BY_NAME and named:
            for member, version in value.items():
                yield (name, member), version
        elif value != ONE_NODE:
            yield (name,), value


_Answer = tuple[Any, list[str]]
"""A value of a field, and the files that have it."""


def _answers(nodes: Sequence[Node], values: Sequence[Any]) -> dict[str, _Answer]:
    """Return the different values by their text, which is empty for nodes without an answer."""
    answers: dict[str, _Answer] = {}
    for (path, _), value in zip(nodes, values, strict=True):
        text = ""
        if schema.is_answer(value) and not schema.is_to_fill_in(value):
            text = value if isinstance(value, str) else json.dumps(value)
        _, files = answers.setdefault(text, (value, []))
        files.append(Path(path).name)
    return answers


def _merged(answers: Mapping[str, _Answer]) -> Any:
    """Return the only answer, or a placeholder with all answers."""
    texts = [text for text in answers if text]
    if len(texts) > 1:
        return f"{schema.FILL_IN}: {' or '.join(_some(texts))}"
    value, _ = answers[texts[0] if texts else ""]
    return value


def _in_words(answers: Mapping[str, _Answer]) -> str:
    """Return the values, the most frequent first, with their files or the number of nodes."""
    files_by_text = {text: files for text, (_, files) in answers.items()}
    parts = []
    for text in sorted(files_by_text, key=lambda text: -len(files_by_text[text])):
        files = files_by_text[text]
        where = ", ".join(files) if len(files) <= _MOST_NAMED else f"{len(files)} nodes"
        value = schema.shown(text) if text else "no value"
        parts.append(f"{value} ({where})")
    return "; ".join(_some(parts))


def _some(texts: list[str]) -> list[str]:
    """Return the first texts, and the number of the others."""
    others = len(texts) - _MOST_NAMED
    if others <= 0:
        return texts
    return [*texts[:_MOST_NAMED], counted(others, "other value")]


# ---- checks -------------------------------------------------------------------------------

DEFAULT_LOGS = "logs"
"""The folder of logs in a workspace, beside that of the descriptions."""


class SystemRound(Struct, frozen=True):
    """The round whose rules apply to a description, and the reason for it."""

    usage: str
    name: str
    reason: str


def round_of_systems(options: Options, paths: Sequence[str] = ()) -> SystemRound:
    """Return the round of the options, or else of the configuration, the logs, or else the newest.

    The logs are those in a folder ``logs`` beside the folder of a description in ``paths``.

    Raises:
        UserError: the rulebook has no such round.
    """
    usage = options.usage or options.config.usage
    if options.round:
        return _as_loaded(usage, options.round, "as given")
    if options.config.round:
        return _as_loaded(usage, options.config.round, f"as {options.origin} says")
    of_logs = _round_of_logs(paths, usage)
    if of_logs:
        return of_logs
    newest = rounds(usage or TRAINING)[-1]
    return _as_loaded(usage, newest, "the newest round that mlperf-pkg knows")


def _as_loaded(usage: str | None, name: str, reason: str) -> SystemRound:
    """Return a round as the rulebook names it."""
    usage = usage or TRAINING
    return SystemRound(usage, load_round(usage, name).name, reason)


def _round_of_logs(paths: Sequence[str], usage: str | None) -> SystemRound | None:
    """Return the newest round that follows from the times of logs; None if there is none."""
    inferred = []
    for identity in _identities_of_logs(paths, usage):
        if identity.choice.sureness is Sureness.INFERRED:
            inferred.append(identity)
    if not inferred:
        return None
    newest = max(inferred, key=lambda identity: version_of(identity.choice.name))
    reason = f"from the logs in {DEFAULT_LOGS}/, {newest.choice.reason}"
    return SystemRound(newest.usage, newest.choice.name, reason)


def _identities_of_logs(paths: Sequence[str], usage: str | None) -> list[Identity]:
    """Return usage and round of the logs beside the folders of descriptions."""
    folders: dict[Path, None] = {}
    for path in map(Path, paths):
        folder = path if is_folder(path) else path.parent
        folders[folder.absolute().parent / DEFAULT_LOGS] = None
    identities: list[Identity] = []
    for logs in filter(is_folder, folders):
        with suppress(UserError, OSError):  # logs that cannot be read do not show the round
            for place in find_input(str(logs)).every_log:
                identities.append(identify(LogFile(place.source, usage=usage)))
    return identities


def check_descriptions(paths: Sequence[str], round_: SystemRound) -> Report:
    """Check descriptions, and all ``*.json`` of folders, by the rules of a round.

    Raises:
        UserError: a folder has no ``*.json``.
        OSError: a file does not exist.
    """
    files = list(chain.from_iterable(map(description_files, paths)))
    systems = [checked_description(file, round_) for file in files]
    rows = tuple(system_row(system, round_.usage, round_.name) for system in systems)
    findings: list[Finding] = []
    for system in systems:
        findings += folded(system.findings, system.path)
    return Report(
        tool=tool(),
        usage=round_.usage,
        round=round_.name,
        round_reason=round_.reason,
        verdict=Verdicts.worst(row.verdict for row in rows),
        systems=rows,
        findings=in_report(findings),
    )


def checked_description(file: str, round_: SystemRound) -> SystemFile:
    """Check one description by the rules of a round.

    Raises:
        OSError: the file does not exist.
    """
    try:
        with open_file(Path(file)) as stream:
            data = stream.read(MAX_BYTES + 1)
    except (PermissionError, NotAFileError) as error:
        return unchecked_system(file, not_read(file, str(error.strerror)))
    return check_system(file, data, round_.usage, round_.name)


def description_files(path: str) -> list[str]:
    """Return a file, or the ``*.json`` of a folder.

    Raises:
        UserError: the folder has none.
    """
    if not is_folder(Path(path)):
        return [path]
    files = sorted(str(file) for file in Path(path).glob("*.json") if file.is_file())
    if not files:
        raise UserError(f"{path}: no system description in this folder (no file named *.json)")
    return files
