"""The official checker's rules, read as data from where mlperf-logging is installed.

Its YAML files hold Python code; here it is parsed and never run. A file's keys are translated
into the conditions of ``conditions.py``; what cannot be followed stays as text, to be compared
with what people have accepted.
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

from mlperf_pkg.errors import UserError
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
Asked = Mapping[str, frozenset[str]]
"""What is asked of each key, as conditions in normal form."""

_RULESET = re.compile(r"([a-z]+)_(\d+\.\d+\.\d+)")
_ENQUEUE = re.compile(
    r"(?:if v\['value'\] == '(?P<only>\w+)':\s+)?"
    r"enqueue_config\('(?P<path>[^']+)'(?:\.format\(v\['value'\](?P<lower>\.lower\(\))?\))?\)"
)
_EITHER = re.compile(r"AT_LEAST_ONE_OR\((\w+)\)")
_OCCURS = {"EXACTLY_ONE": "once", "AT_LEAST_ONE": "at least once"}
_KEY_FIELDS = {"NAME", "REQ", "CHECK", "POST", "ATLEAST_ONE_CHECK", "FIRST_CHECK"}


def rulesets(folder: Path) -> list[tuple[str, str]]:
    """Usage and ruleset of every folder of rules: ("training", "2.0.0").

    Raises:
        UserError: it is not the folder of an mlperf_logging.
    """
    rules = folder / "compliance_checker"
    if not rules.is_dir():
        raise UserError(f"{folder}: no mlperf_logging here (it has no folder {rules.name}/)")
    names = sorted(path.name for path in rules.iterdir())
    return [(match[1], match[2]) for name in names if (match := _RULESET.fullmatch(name))]


def reference_points(folder: Path, usage: str, ruleset: str) -> frozenset[str]:
    """The benchmarks with reference convergence points."""
    files = (folder / "rcp_checker" / f"{usage}_{ruleset}").glob("rcps_*.json")
    return frozenset(path.stem.removeprefix("rcps_") for path in files)


def benchmarks(folder: Path) -> Mapping[str, Mapping[str, list[str]]]:
    """The benchmarks of each usage and round."""
    listed: Mapping[str, Mapping[str, list[str]]] = _literal(folder, "_ALL_ALLOWED_BENCHMARKS")
    return listed


def runs(folder: Path) -> Mapping[str, Mapping[str, int]]:
    """How many runs each usage's benchmarks need."""
    counts: Mapping[str, Mapping[str, int]] = _literal(folder, "_ALL_RESULT_FILE_COUNTS")
    return counts


def _literal(folder: Path, name: str) -> Any:
    path = folder / "benchmark_meta.py"
    for statement in ast.parse(path.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return ast.literal_eval(statement.value)
    raise UserError(f"{path}: no {name}: this mlperf-logging is laid out otherwise")


# ---- files --------------------------------------------------------------------------------


class Follow(Struct, frozen=True):
    """A file that a record leads to: for the value ``only``, or any if None."""

    path: str
    only: str | None
    lower: bool

    def file(self, value: str) -> str | None:
        """The file for a value of the key; None where it leads nowhere."""
        if self.only is not None and value != self.only:
            return None
        return self.path.format(value.lower() if self.lower else value)


class RuleFile(Struct, frozen=True):
    """One file: what it asks, what of that no later file replaces, and where its keys lead."""

    name: str
    asked: dict[str, frozenset[str]] = field(default_factory=dict)
    kept: dict[str, frozenset[str]] = field(default_factory=dict)
    follows: dict[str, tuple[Follow, ...]] = field(default_factory=dict)


class Layers(Struct, frozen=True):
    """The files of a run, one over the other: what they ask in the end, and who says it."""

    asked: Asked
    files: Mapping[str, str]
    follows: Mapping[str, frozenset[str]]


@lru_cache
def layers(folder: Path, start: str, values: frozenset[tuple[str, str]]) -> Layers:
    """The rules of a run that logs ``values``; ``start`` names the folder of its ruleset.

    The topmost file that names a key decides it, except for what is asked of the run as a whole.

    Raises:
        UserError: a file cannot be read.
    """
    known = dict(values)
    asked: dict[str, frozenset[str]] = {}
    kept: dict[str, frozenset[str]] = {}
    origin: dict[str, str] = {}
    follows: dict[str, frozenset[str]] = {}
    queue = [f"{start}/common.yaml"]
    while queue:
        file = read_file(folder, queue.pop(0), known.get("submission_division", ""))
        asked |= file.asked
        origin |= dict.fromkeys(file.asked, file.name)
        for key, found in file.kept.items():
            kept[key] = kept.get(key, frozenset()) | found
            origin.setdefault(key, file.name)
        for key, several in file.follows.items():
            if several:
                follows[key] = _choices(file.asked.get(key, frozenset()), several)
            named = [each.file(known[key]) for each in several if key in known]
            queue += [name for name in named if name and _path(folder, name).is_file()]
    every = {key: asked.get(key, frozenset()) | kept.get(key, frozenset()) for key in asked | kept}
    return Layers(every, origin, follows)


def _choices(asked: Iterable[str], several: Iterable[Follow]) -> frozenset[str]:
    """The values of a key that lead to further files."""
    listed = [name for text in asked for name in _listed(text)]
    return frozenset([*listed, *(each.only for each in several if each.only)])


def _listed(condition: str) -> list[Any]:
    """The members of ``value in [...]``."""
    if not condition.startswith("value in ["):
        return []
    members: list[Any] = ast.literal_eval(condition.removeprefix("value in "))
    return members


def _path(folder: Path, name: str) -> Path:
    return folder / "compliance_checker" / name


@lru_cache
def read_file(folder: Path, name: str, division: str) -> RuleFile:
    """One file, translated for runs of a division.

    Raises:
        UserError: it cannot be read.
    """
    blocks = _blocks(_path(folder, name))
    keys = {block["NAME"]: block for kind, block in blocks if kind == "KEY"}
    file = RuleFile(name)
    state = State({"submission_division": division} if division else {})
    strange = list(_begin([block for kind, block in blocks if kind == "BEGIN"], state))
    odd = {key: _define(key, block.get("POST", ""), state) for key, block in keys.items()}
    for key, block in keys.items():
        file.follows[key] = tuple(_follows(block.get("POST", "")))
        found = joined([*_asked(block, state), *_computed(key, odd[key], state)])
        file.asked[key] = frozenset(_with_files(text, folder, file.follows[key]) for text in found)
    ends = [text for kind, block in blocks if kind == "END" for text in _end(block, state)]
    of_run = [*((WHOLE_LOG, text) for text in (*strange, *ends)), *_of_run(keys, state)]
    for key, text in of_run:
        file.kept[key] = file.kept.get(key, frozenset()) | {text}
    return file


def _blocks(path: Path) -> list[tuple[str, Document]]:
    """The blocks of a file with their kinds: BEGIN, KEY or END."""
    try:
        listed = yaml.load(path.read_text("utf-8"), yaml.CBaseLoader)  # noqa: S506 - plain text only
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {error}") from error
    blocks: list[tuple[str, Document]] = []
    for each in listed or []:
        for kind, block in each.items() if isinstance(each, dict) else [("", each)]:
            if not isinstance(block, dict) or (kind == "KEY" and "NAME" not in block):
                raise UserError(f"{path}: a block is laid out otherwise: {each!r}")
            blocks.append((kind, block))
    return blocks


def _with_files(text: str, folder: Path, follows: Sequence[Follow]) -> str:
    """Where a value leads to a file that is not there, the checker dies: it is not allowed."""
    members = _listed(text) if follows else []
    for follow in follows:
        names = {member: follow.file(member) for member in members}
        members = [m for m, name in names.items() if not name or _path(folder, name).is_file()]
    return f"value in {members}" if members else text


# ---- keys ---------------------------------------------------------------------------------


def _asked(block: Document, state: State) -> Iterator[str]:
    """What a file asks of a key, until a later file names the key."""
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
    """What is asked of the run as a whole, by the key that answers for it."""
    for key, block in keys.items():
        if match := _EITHER.fullmatch(block.get("REQ", "").strip()):
            yield either(key, match[1])
        for text in _texts(block.get("ATLEAST_ONE_CHECK")):
            yield from ((key, f"one record: {part}") for part in conditions(text, state))


def _texts(given: Any) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _follows(code: str) -> Iterator[Follow]:
    for statement in _statements(code):
        if match := _ENQUEUE.fullmatch(ast.unparse(statement)):
            yield Follow(match["path"], match["only"], bool(match["lower"]))


# ---- state --------------------------------------------------------------------------------


def _begin(blocks: Iterable[Document], state: State) -> Iterator[str]:
    """Read what the state begins with; what else the code does is told as text."""
    for statement in (each for block in blocks for each in _statements(block.get("CODE", ""))):
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("s"), "update"), [ast.Dict() as given])):
                for name, value in zip(given.keys, given.values, strict=True):
                    state.initial[str(getattr(name, "value", name))] = value
            case _:
                yield f"does {ast.unparse(statement)}"


def _statements(code: str) -> list[ast.stmt]:
    try:
        return ast.parse(code.strip()).body
    except SyntaxError:
        return [ast.Expr(ast.Constant(code))]


def _define(key: str, code: str, state: State) -> list[ast.stmt]:
    """Read what a record of a key does to the state; returns the statements beyond that."""
    own = [each for each in _statements(code) if not _ENQUEUE.fullmatch(ast.unparse(each))]
    return [statement for statement in own if not _defined(key, statement, state)]


def _defined(key: str, statement: ast.stmt, state: State) -> bool:
    """Note what a statement makes of variables; False where that is too much to follow."""
    value, gathers = None, False
    match statement:
        case ast.Assign([ast.Subscript(ast.Name("s"), ast.Constant(str(name)))], given):
            if ast.unparse(given) != f"min(s['{name}'], ll.timestamp)":
                value = given
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
    """Whether a variable begins as ``text``, so that what gathers in it is complete."""
    initial = state.initial.get(name)
    return initial is not None and ast.unparse(initial) == text


def _assigned(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Subscript(ast.Name("s"), ast.Constant(str(name)), ast.Store()):
                yield name


def _computed(key: str, odd: Iterable[ast.stmt], state: State) -> Iterator[str]:
    """What the code after a record does beyond noting its value: a failure of it is one."""
    yield from (f"does {ast.unparse(statement)}" for statement in odd)
    defined = (each for several in state.definitions.values() for each in several)
    for each in defined:
        if each.key == key and each.expression is not None:
            text = rewritten(each.expression, state, key)
            if any(sign in text for sign in ("/", "*", "math.")):
                yield f"computes {text}"


def _end(block: Document, state: State) -> Iterator[str]:
    for text in _texts(block.get("CHECK")):
        yield from conditions(text, state)
    yield from (f"{name}: {block[name]}" for name in sorted(block.keys() - {"CHECK"}))
