"""The official checker's rules, read as data from the folder of mlperf-logging.

Its YAML files contain Python code, which is parsed and never run. The keys of a file are
translated into the conditions of ``normal_form.py``. Code that is too complex stays as text, to be
compared with what maintainers have accepted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.rulebook.upstream.normal_form import (
    WHOLE_LOG,
    Definition,
    State,
    call,
    conditions,
    either,
    joined,
    rewritten,
)

Document = Mapping[str, Any]
Conditions = Mapping[str, frozenset[str]]
"""The conditions on each key, in normal form."""

_BaseLoader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # PyYAML may lack libyaml
_RULESET = re.compile(r"([a-z]+)_(\d+\.\d+\.\d+)")
_ENQUEUE = re.compile(
    r"(?:if v\['value'\] == '(?P<only>\w+)':\s+)?"
    r"enqueue_config\('(?P<path>[^']+)'(?:\.format\(v\['value'\](?P<lower>\.lower\(\))?\))?\)"
)
_EITHER = re.compile(r"AT_LEAST_ONE_OR\((\w+)\)")
_OCCURS = {"EXACTLY_ONE": "once", "AT_LEAST_ONE": "at least once"}
_KEY_FIELDS = {"NAME", "REQ", "CHECK", "POST", "ATLEAST_ONE_CHECK", "FIRST_CHECK"}


def rulesets(folder: Path) -> list[tuple[str, str]]:
    """Return usage and ruleset of every folder of rules: ("training", "2.0.0").

    Raises:
        UserError: the folder is not that of an mlperf_logging.
    """
    rules = folder / "compliance_checker"
    if not rules.is_dir():
        raise UserError(f"{folder}: not an mlperf_logging: it has no folder {rules.name}/")
    names = sorted(path.name for path in rules.iterdir())
    return [(match[1], match[2]) for name in names if (match := _RULESET.fullmatch(name))]


def benchmarks_and_runs(
    folder: Path,
) -> tuple[Mapping[str, Mapping[str, list[str]]], Mapping[str, Mapping[str, int]]]:
    """Return by usage the benchmarks of each round, and the runs that a benchmark needs."""
    path = folder / "benchmark_meta.py"
    body = ast.parse(path.read_text("utf-8")).body
    values = {ast.unparse(s.targets[0]): s.value for s in body if isinstance(s, ast.Assign)}
    for name in (names := ("_ALL_ALLOWED_BENCHMARKS", "_ALL_RESULT_FILE_COUNTS")):
        if name not in values:
            raise UserError(f"{path}: no {name}; expected one as in mlperf-logging 4.1")
    return ast.literal_eval(values[names[0]]), ast.literal_eval(values[names[1]])


# ---- files --------------------------------------------------------------------------------


class Follow(Struct, frozen=True):
    """A file that a record of a key loads: for the value ``only``, or any value if None."""

    path: str
    only: str | None
    lower: bool

    def file(self, value: str) -> str | None:
        """Return the file for a value of the key; None if the value loads none."""
        if self.only is not None and value != self.only:
            return None
        return self.path.format(value.lower() if self.lower else value)


class CheckerFile(Struct, frozen=True):
    """One file: its conditions, those that no later file replaces, and the files it loads."""

    name: str
    conditions: dict[str, frozenset[str]] = field(default_factory=dict)
    kept: dict[str, frozenset[str]] = field(default_factory=dict)
    follows: dict[str, tuple[Follow, ...]] = field(default_factory=dict)


class Layers(Struct, frozen=True):
    """The files of a run, laid over one another: the conditions on each key, and their file."""

    conditions: Conditions
    files: Mapping[str, str]
    follows: Mapping[str, frozenset[str]]


@lru_cache(maxsize=512)  # of a version of mlperf-logging
def layers(folder: Path, start: str, values: frozenset[tuple[str, str]]) -> Layers:
    """Return the rules of a run that logs ``values``; ``start`` is the folder of its ruleset.

    The topmost file that names a key decides it, but for conditions on the run as a whole.

    Raises:
        UserError: a file cannot be read.
    """
    logged = dict(values)
    replaced: dict[str, frozenset[str]] = {}
    kept: dict[str, frozenset[str]] = {}
    origin: dict[str, str] = {}
    follows: dict[str, frozenset[str]] = {}
    queue = [f"{start}/common.yaml"]
    while queue:
        file = read_file(folder, queue.pop(0), logged.get("submission_division", ""))
        replaced |= file.conditions
        origin |= dict.fromkeys(file.conditions, file.name)
        for key, texts in file.kept.items():
            kept[key] = kept.get(key, frozenset()) | texts
            origin.setdefault(key, file.name)
        for key, loaded in file.follows.items():
            if loaded:
                follows[key] = _choices(file.conditions.get(key, frozenset()), loaded)
            names = [follow.file(logged[key]) for follow in loaded if key in logged]
            queue += [name for name in names if name and _path(folder, name).is_file()]
    whole = {
        key: replaced.get(key, frozenset()) | kept.get(key, frozenset()) for key in replaced | kept
    }
    return Layers(whole, origin, follows)


def _choices(texts: Iterable[str], follows: Iterable[Follow]) -> frozenset[str]:
    """Return the values of a key that load further files."""
    members = [member for text in texts for member in _members(text)]
    return frozenset([*members, *(follow.only for follow in follows if follow.only)])


def _members(condition: str) -> list[Any]:
    """Return the members of ``value in [...]``, none of another condition."""
    if not condition.startswith("value in ["):
        return []
    members: list[Any] = ast.literal_eval(condition.removeprefix("value in "))
    return members


def _path(folder: Path, name: str) -> Path:
    return folder / "compliance_checker" / name


@lru_cache(maxsize=512)
def read_file(folder: Path, name: str, division: str) -> CheckerFile:
    """Return one file, translated for runs of a division.

    Raises:
        UserError: the file cannot be read.
    """
    blocks = _blocks(_path(folder, name))
    keys = {block["NAME"]: block for kind, block in blocks if kind == "KEY"}
    file = CheckerFile(name)
    state = State({"submission_division": division} if division else {})
    strange = list(_begin([block for kind, block in blocks if kind == "BEGIN"], state))
    odd = {
        key: [
            part
            for part in _statements(block.get("POST", ""))
            if not _ENQUEUE.fullmatch(ast.unparse(part)) and not _defined(key, part, state)
        ]
        for key, block in keys.items()
    }
    for key, block in keys.items():
        file.follows[key] = tuple(_follows(block.get("POST", "")))
        texts = joined([*_conditions(block, state), *_computed(key, odd[key], state)])
        file.conditions[key] = frozenset(
            _with_files(text, folder, file.follows[key]) for text in texts
        )
    ends = [text for kind, block in blocks if kind == "END" for text in _end(block, state)]
    of_run = [*((WHOLE_LOG, text) for text in (*strange, *ends)), *_of_run(keys, state)]
    for key, text in of_run:
        file.kept[key] = file.kept.get(key, frozenset()) | {text}
    return file


def _blocks(path: Path) -> list[tuple[str, Document]]:
    """Return the blocks of a file with their kinds: BEGIN, KEY or END."""
    try:
        entries = yaml.load(path.read_text("utf-8"), _BaseLoader)  # noqa: S506 - plain text only
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {reason_of(error)}") from error
    blocks: list[tuple[str, Document]] = []
    for entry in entries or []:
        for kind, block in entry.items() if isinstance(entry, dict) else [("", entry)]:
            if not isinstance(block, dict) or (kind == "KEY" and "NAME" not in block):
                raise UserError(f"{path}: not a block of rules: {entry!r}")
            blocks.append((kind, block))
    return blocks


def _with_files(text: str, folder: Path, follows: Sequence[Follow]) -> str:
    """Drop the values for which the checker crashes: they load a file that does not exist."""
    members = _members(text) if follows else []
    for follow in follows:
        names = {member: follow.file(member) for member in members}
        members = [m for m, name in names.items() if not name or _path(folder, name).is_file()]
    return f"value in {members}" if members else text


# ---- keys ---------------------------------------------------------------------------------


def _conditions(block: Document, state: State) -> Iterator[str]:
    """Yield the conditions of a file on a key, which hold until a later file names the key."""
    requirement = block.get("REQ", "OPTIONAL").strip()
    if match := re.fullmatch(r"AT_LEAST\((\d+)\)", requirement):
        yield f"at least {match[1]} times"
    elif requirement != "OPTIONAL" and not _EITHER.fullmatch(requirement):
        yield _OCCURS.get(requirement, requirement)
    for text in _texts(block.get("CHECK")):
        yield from conditions(text, state)
    for text in _texts(block.get("FIRST_CHECK")):
        yield from (f"first: {part}" for part in conditions(text, state))
    yield from (f"{name}: {block[name]}" for name in sorted(block.keys() - _KEY_FIELDS))


def _of_run(keys: Mapping[str, Document], state: State) -> Iterator[tuple[str, str]]:
    """Yield the conditions on the run as a whole, with the key to report."""
    for key, block in keys.items():
        if match := _EITHER.fullmatch(block.get("REQ", "").strip()):
            yield either(key, match[1])
        for text in _texts(block.get("ATLEAST_ONE_CHECK")):
            yield from ((key, f"one record: {part}") for part in conditions(text, state))


def _texts(entry: Any) -> list[str]:
    return [] if entry is None else [entry] if isinstance(entry, str) else list(entry)


def _follows(code: str) -> Iterator[Follow]:
    for statement in _statements(code):
        if match := _ENQUEUE.fullmatch(ast.unparse(statement)):
            yield Follow(match["path"], match["only"], bool(match["lower"]))


# ---- state --------------------------------------------------------------------------------


def _begin(blocks: Iterable[Document], state: State) -> Iterator[str]:
    """Read the initial state; yield everything else that the code does as text."""
    statements = [part for block in blocks for part in _statements(block.get("CODE", ""))]
    for statement in statements:
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("s"), "update"), [ast.Dict() as values])):
                for name, value in zip(values.keys, values.values, strict=True):
                    state.initial[str(getattr(name, "value", name))] = value
            case _:
                yield f"does {ast.unparse(statement)}"


def _statements(code: str) -> list[ast.stmt]:
    try:
        return ast.parse(code.strip()).body
    except SyntaxError:
        return [ast.Expr(ast.Constant(code))]


def _defined(key: str, statement: ast.stmt, state: State) -> bool:
    """Note how a statement changes variables; return False if it is too complex."""
    value, gathers = None, False
    match statement:
        case ast.Assign([ast.Subscript(ast.Name("s"), ast.Constant(str(name)))], result):
            if ast.unparse(result) != f"min(s['{name}'], ll.timestamp)":
                value = result
            elif _begins(name, "9e+99", state):
                value, gathers = call("earliest", ast.Constant(key)), True
        case ast.AugAssign(
            ast.Subscript(ast.Name("s"), ast.Constant(str(name))), ast.Add(), ast.List([element])
        ):
            if _begins(name, "[]", state):
                value, gathers = call("collected", element), True
    for name in _assigned(statement):
        state.definitions.setdefault(name, []).append(Definition(key, value, gathers))
    return value is not None


def _begins(name: str, text: str, state: State) -> bool:
    """Return whether a variable begins as ``text``, so that it gathers all records."""
    initial = state.initial.get(name)
    return initial is not None and ast.unparse(initial) == text


def _assigned(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Subscript(ast.Name("s"), ast.Constant(str(name)), ast.Store()):
                yield name


def _computed(key: str, odd: Iterable[ast.stmt], state: State) -> Iterator[str]:
    """Yield what the code after a record does beyond noting its value, as it may fail."""
    yield from (f"does {ast.unparse(statement)}" for statement in odd)
    for definition in (part for parts in state.definitions.values() for part in parts):
        if definition.key == key and definition.expression is not None:
            text = rewritten(definition.expression, state, key)
            if any(sign in text for sign in ("/", "*", "math.")):
                yield f"computes {text}"


def _end(block: Document, state: State) -> Iterator[str]:
    for text in _texts(block.get("CHECK")):
        yield from conditions(text, state)
    yield from (f"{name}: {block[name]}" for name in sorted(block.keys() - {"CHECK"}))
