"""The official checker's rules, read as data from the folder of mlperf-logging.

Its YAML files contain Python code, which is parsed and never run: its expressions over a record
and a state become sets of plain expressions over ``value``, ``metadata`` and the names of other
keys, in one normal form, so that they compare as text with ours. Code that is too complex stays as
text, to be compared with what maintainers have accepted.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.rulebook.expectation import MIRRORED, same
from mlperf_pkg.rulebook.formula import OPERATORS

WHOLE_LOG = "the whole log"
"""The name used instead of a key for conditions that no single key is about."""

TRUE = ast.Constant(1.0)

_CALLED = {"math.abs": "abs", "math.greatest": "max"}


class Definition(Struct, frozen=True):
    """The expression of a state variable after a record of ``key``; None if it is too complex.

    With ``gathers``, the expression is about all records so far, of which there may be none.
    """

    key: str
    expression: ast.expr | None
    gathers: bool = False


class UpstreamState(Struct):
    """The variables that the expressions of one file of the official checker share.

    ``initial`` holds those that are set at the beginning; ``logged`` the values of keys that this
    run logs for certain, such as its division.
    """

    logged: Mapping[str, str] = field(default_factory=dict)
    initial: dict[str, ast.expr] = field(default_factory=dict)
    definitions: dict[str, list[Definition]] = field(default_factory=dict)


def conditions(
    text: str, state: UpstreamState | None = None, key: str | None = None
) -> frozenset[str]:
    """Split an expression at its ``and`` into conditions in normal form.

    ``key`` is the key of the record ``v``, where that is not the record being checked. Text that
    is not a Python expression stays as it is.
    """
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return frozenset({" ".join(text.split())})
    rewriter = Rewriter(state or UpstreamState(), key)
    parts = conjuncts(rewriter.visit(parsed))
    return frozenset(map(ast.unparse, parts)) | {f"seen({name!r})" for name in rewriter.implied}


def conjuncts(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an ``and``, without those that are always true."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in conjuncts(value)]
    return [] if isinstance(node, ast.Constant) and node.value == TRUE.value else [node]


def joined(parts: Iterable[str]) -> frozenset[str]:
    """Return conditions as one set, each without what another of them implies."""
    whole = frozenset(parts)
    choices = (part.partition(" if ") for part in whole)  # ``a if b else True`` is ``a`` with ``b``
    return frozenset(
        then if rest and rest.removesuffix(" else 1.0") in whole else then + if_ + rest
        for then, if_, rest in choices
    )


def either(key: str, other: str) -> tuple[str, str]:
    """Require that one of two keys is logged: return the key to report, and its condition."""
    first, second = sorted((key, other))
    return first, f"at least once, or {second}"


def call(function: str, argument: ast.expr) -> ast.expr:
    """Return the expression ``function(argument)``."""
    return ast.Call(ast.Name(function, ast.Load()), [argument], [])


class Rewriter(ast.NodeTransformer):
    """Rewrites an expression into normal form; numbers become floats, as ``1 == 1.0 == True``."""

    def __init__(self, state: UpstreamState, key: str | None = None) -> None:
        """Take the variables of a file; ``key`` is as in ``conditions``."""
        self._state = state
        self._key = key
        self.implied: set[str] = set()

    # ---- names and values -----------------------------------------------------------------

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Replace ``v['value']``, ``v['metadata']['x']`` and ``s['x']`` by names."""
        name = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(node.value, ast.Name) and isinstance(name, str):
            if node.value.id == "s":
                return self._variable(name)
            if node.value.id == "v":
                return self._of_record(name)
        self.generic_visit(node)
        if isinstance(name, str) and ast.unparse(node.value).endswith("metadata"):
            return ast.Attribute(node.value, name, ast.Load())
        return node

    def _of_record(self, name: str) -> ast.expr:
        if self._key and name == "value" and self._key in self._state.logged:
            return ast.Constant(self._state.logged[self._key])
        own = ast.Name(self._key or name, ast.Load())
        return ast.Attribute(own, name, ast.Load()) if self._key and name != "value" else own

    def _variable(self, name: str) -> ast.expr:
        definitions = self._state.definitions.get(name, [])
        initial = self._state.initial.get(name)
        if not definitions and initial is not None:
            return self.follow(initial, None)
        only = definitions[0] if len(definitions) == 1 else None
        if only is None or only.expression is None:
            return ast.Subscript(ast.Name("s", ast.Load()), ast.Constant(name), ast.Load())
        value = self.follow(only.expression, only.key)
        if only.gathers:
            return value
        if initial is not None and ast.unparse(initial) != "None":
            start = self.follow(initial, None)
            return _chosen(ast.IfExp(call("seen", ast.Constant(only.key)), value, start))
        if only.key not in {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}:
            self.implied.add(only.key)
        return value

    def follow(self, expression: ast.expr, key: str | None) -> ast.expr:
        """Return the normal form of an expression of the state, set by a record of ``key``."""
        inner = Rewriter(self._state, key)
        inner.implied = self.implied
        result: ast.expr = inner.visit(deepcopy(expression))
        return result

    # ---- one of several ways to write the same --------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Write every number as a float."""
        return ast.Constant(float(node.value)) if isinstance(node.value, int | float) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Give each function one name, and drop conversions that change no value."""
        if ast.unparse(node.func) == "s.get":
            return self.visit_Subscript(
                ast.Subscript(ast.Name("s", ast.Load()), node.args[0], ast.Load())
            )
        if ast.unparse(node) == "float('inf')":
            return ast.Constant(float("inf"))
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name == "double" or (name == "int" and ast.unparse(node.args[0]).startswith("math.")):
            return node.args[0]
        if name == "math.sqrt":
            return ast.BinOp(node.args[0], ast.Pow(), ast.Constant(0.5))
        if name == "sorted" and isinstance(node.args[0], ast.List):
            node.args[0].elts.sort(key=ast.unparse)
        node.func = ast.Name(_CALLED.get(name, name), ast.Load())
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Compute with constants; write ``|`` of conditions as ``or``."""
        self.generic_visit(node)
        if isinstance(node.op, ast.BitOr):
            return self.visit_BoolOp(ast.BoolOp(ast.Or(), [node.left, node.right]))
        match node.left, node.right, OPERATORS.get(type(node.op)):
            case ast.Constant(float(left)), ast.Constant(float(right)), fold if fold is not None:
                return ast.Constant(fold(left, right))
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Split chains; put the smaller side first; sort lists."""
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        links = [
            _compared(left, op, right)
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return links[0] if len(links) == 1 else ast.BoolOp(ast.And(), links)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Write alternatives for one value as a list of values."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Or) and (value := _common_value(node.values)):
            options = [part.comparators[0] for part in node.values if isinstance(part, ast.Compare)]
            return _compared(value, ast.In(), ast.List(options, ast.Load()))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Replace a choice whose condition is constant."""
        self.generic_visit(node)
        return _chosen(node)


def _chosen(node: ast.IfExp) -> ast.expr:
    if isinstance(node.test, ast.Constant):
        return node.body if node.test.value else node.orelse
    if same(node.body, TRUE) and same(node.orelse, ast.Constant(0.0)):
        return node.test
    return node


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    match op, left, right:
        case ast.Eq(), ast.Constant(one), ast.Constant(other):
            return ast.Constant(float(one == other))
        case ast.Eq(), ast.Call(ast.Name("seen")), ast.Constant(TRUE.value):
            return left
        case ast.IsNot(), _, ast.Constant(None) if not ast.unparse(left).startswith("s["):
            return TRUE
        case _, ast.Constant("value"), ast.Name("v"):
            return TRUE
        case ast.In(), _, ast.List(options) | ast.Set(options):
            right = ast.List(sorted(options, key=ast.unparse), ast.Load())
    if type(op) in MIRRORED and ast.unparse(right).startswith(("value", "metadata")):
        left, op, right = right, MIRRORED[type(op)](), left
    return ast.Compare(left, [op], [right])


def _common_value(parts: list[ast.expr]) -> ast.expr | None:
    """Return the value that all parts compare by ``==``, if it is the same."""
    first, *others = (
        part.left if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq) else None
        for part in parts
    )
    return first if first and all(other and same(other, first) for other in others) else None


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
        raise UserError(f"{folder}: not a copy of mlperf_logging: it has no folder {rules.name}/")
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
            raise UserError(f"{path}: {name} is missing; expected it as in mlperf-logging 4.1")
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

    conditions: dict[str, frozenset[str]]
    kept: dict[str, frozenset[str]]
    follows: dict[str, list[Follow]]


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
    kept: dict[str, frozenset[str]] = defaultdict(frozenset)
    origin: dict[str, str] = {}
    follows: dict[str, frozenset[str]] = {}
    queue = [f"{start}/common.yaml"]
    for queued in queue:  # which grows
        file = read_file(folder, queued, logged.get("submission_division", ""))
        replaced |= file.conditions
        origin = {**dict.fromkeys(file.kept, queued), **origin}
        origin |= dict.fromkeys(file.conditions, queued)
        for key, texts in file.kept.items():
            kept[key] |= texts
        for key, loaded in file.follows.items():
            members = chain.from_iterable(map(_members, file.conditions[key]))
            follows[key] = frozenset([*members, *filter(None, (f.only for f in loaded))])
            names = [follow.file(logged[key]) for follow in loaded if key in logged]
            queue += [name for name in names if name and _path(folder, name).is_file()]
    whole = {key: replaced.get(key, frozenset()) | kept[key] for key in {**replaced, **kept}}
    return Layers(whole, origin, follows)


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
    state = UpstreamState({"submission_division": division} if division else {})
    strange = list(_begin([block for kind, block in blocks if kind == "BEGIN"], state))
    follows: dict[str, list[Follow]] = defaultdict(list)
    odd: dict[str, list[str]] = defaultdict(list)
    for key, block in keys.items():
        for part in _statements(block.get("POST", "")):
            if match := _ENQUEUE.fullmatch(text := ast.unparse(part)):
                follows[key].append(Follow(match["path"], match["only"], bool(match["lower"])))
            elif not _defined(key, part, state):
                odd[key].append(f"does {text}")
    own = {key: (*_conditions(keys[key], state), *odd[key], *_computed(key, state)) for key in keys}
    ends = [text for kind, block in blocks if kind == "END" for text in _end(block, state)]
    kept: dict[str, frozenset[str]] = defaultdict(frozenset)
    for key, text in (*((WHOLE_LOG, text) for text in (*strange, *ends)), *_of_run(keys, state)):
        kept[key] |= {text}
    conditions = {
        key: frozenset(_with_files(text, folder, follows.get(key, [])) for text in joined(texts))
        for key, texts in own.items()
    }
    return CheckerFile(conditions, kept, follows)


def _blocks(path: Path) -> list[tuple[str, Document]]:
    """Return the blocks of a file with their kinds: BEGIN, KEY or END."""
    try:
        entries = yaml.load(path.read_text("utf-8"), _BaseLoader)  # plain text only
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


def _conditions(block: Document, state: UpstreamState) -> Iterator[str]:
    """Yield the conditions of a file on a key, which hold until a later file names the key."""
    requirement = block.get("REQ", "OPTIONAL").strip()
    match = re.fullmatch(r"AT_LEAST\((\d+)\)", requirement)
    if match:
        yield f"at least {match[1]} times"
    elif requirement != "OPTIONAL" and not _EITHER.fullmatch(requirement):
        yield _OCCURS.get(requirement, requirement)
    for text in _texts(block.get("CHECK")):
        yield from conditions(text, state)
    for text in _texts(block.get("FIRST_CHECK")):
        yield from (f"first: {part}" for part in conditions(text, state))
    yield from (f"{name}: {block[name]}" for name in sorted(block.keys() - _KEY_FIELDS))


def _of_run(keys: Mapping[str, Document], state: UpstreamState) -> Iterator[tuple[str, str]]:
    """Yield the conditions on the run as a whole, with the key to report."""
    for key, block in keys.items():
        match = _EITHER.fullmatch(block.get("REQ", "").strip())
        if match:
            yield either(key, match[1])
        for text in _texts(block.get("ATLEAST_ONE_CHECK")):
            yield from ((key, f"one record: {part}") for part in conditions(text, state))


def _texts(entry: Any) -> list[str]:
    return [] if entry is None else [entry] if isinstance(entry, str) else list(entry)


# ---- state --------------------------------------------------------------------------------


def _begin(blocks: Iterable[Document], state: UpstreamState) -> Iterator[str]:
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


def _defined(key: str, statement: ast.stmt, state: UpstreamState) -> bool:
    """Note how a statement changes variables; return False if it is too complex."""
    value = None
    gathers = False
    match statement:
        case ast.Assign([ast.Subscript(ast.Name("s"), ast.Constant(str(name)))], result):
            if ast.unparse(result) != f"min(s['{name}'], ll.timestamp)":
                value = result
            elif _begins(name, "9e+99", state):
                value = call("earliest", ast.Constant(key))
                gathers = True
        case ast.AugAssign(
            ast.Subscript(ast.Name("s"), ast.Constant(str(name))), ast.Add(), ast.List([element])
        ):
            if _begins(name, "[]", state):
                value = call("collected", element)
                gathers = True
    for name in _assigned(statement):
        state.definitions.setdefault(name, []).append(Definition(key, value, gathers))
    return value is not None


def _begins(name: str, text: str, state: UpstreamState) -> bool:
    """Return whether a variable begins as ``text``, so that it gathers all records."""
    initial = state.initial.get(name)
    return initial is not None and ast.unparse(initial) == text


def _assigned(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Subscript(ast.Name("s"), ast.Constant(str(name)), ast.Store()):
                yield name


def _computed(key: str, state: UpstreamState) -> Iterator[str]:
    """Yield what the code after a record computes beyond noting its value, as it may fail."""
    for definition in (part for parts in state.definitions.values() for part in parts):
        if definition.key == key and definition.expression is not None:
            text = ast.unparse(Rewriter(state).follow(definition.expression, key))
            if any(sign in text for sign in ("/", "*", "math.")):
                yield f"computes {text}"


def _end(block: Document, state: UpstreamState) -> Iterator[str]:
    for text in _texts(block.get("CHECK")):
        yield from conditions(text, state)
    yield from (f"{name}: {block[name]}" for name in sorted(block.keys() - {"CHECK"}))
