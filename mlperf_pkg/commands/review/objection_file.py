"""``objections.yaml``: the objections of a review and their states.

The file may be edited by hand: a change of state replaces only the values that it changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mlperf_pkg.commands.review.objections import Objection
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.plain_yaml import LARGEST, compose, key, kind, value
from mlperf_pkg.infra.text import did_you_mean, visible

if TYPE_CHECKING:
    import yaml

NAME = "objections.yaml"
WAIVED_BELOW = 2.0  # percent
_SOURCE = "submission_rules, Fixing objections"
_REQUIRED = ("id", "against", "code", "state", "about")
_OPTIONAL = ("by", "title", "issue", "percent", "note")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./+-]*")
_HEAD = """# The objections of a review. States: {states}.
# The state waived requires percent: the total difference, below 2.
# "mlperf-pkg review objections FILE TREE" shows which are settled in a corrected tree.
objections:
"""


class State(StrEnum):
    """The state of an objection. DRAFTED: written, but not yet filed as an issue."""

    DRAFTED = "drafted"
    FILED = "filed"
    ACKNOWLEDGED = "acknowledged"
    FIX_REQUIRED = "fix_required"
    FIXED = "fixed"
    WITHDRAWN = "withdrawn"
    WAIVED = "waived"

    @property
    def is_dropped(self) -> bool:
        """Whether the objection no longer requires a fix."""
        return self in (State.WITHDRAWN, State.WAIVED)


class Entry(Struct, frozen=True):
    """An objection in the file, without its text."""

    id: str
    against: str
    code: str
    state: State
    about: tuple[str, ...]
    by: str = ""
    title: str = ""
    issue: str = ""
    percent: float | None = None
    note: str = ""


class Change(Struct, frozen=True):
    """A new state, with new values of other fields; None leaves a field unchanged."""

    state: State
    issue: str | None = None
    percent: float | None = None
    note: str | None = None


def read_entries(path: Path) -> tuple[Entry, ...]:
    """Return the objections in a file.

    Raises:
        UserError: the file cannot be read, or an objection is not valid. The message has the line.
    """
    items = _items(path)
    entries = tuple(_entry(path, node) for node in (items.value if items else ()))
    ids = [entry.id for entry in entries]
    for number, name in enumerate(ids):
        if name in ids[:number]:
            raise UserError(f"{path}: the id {name!r} is repeated")
    return entries


def _items(path: Path) -> yaml.SequenceNode | None:
    """Return the list of objections, None if there is none."""
    root: Any = compose(path)
    if root is None:
        return None
    if kind(root) != "mapping" or [key(name) for name, _ in root.value] != ["objections"]:
        raise UserError(f"{path}:1: expected one key, objections, with a list of objections")
    items: yaml.SequenceNode = root.value[0][1]
    if kind(items) != "sequence" and items.value:
        raise UserError(f"{path}:{_line(items)}: objections is not a list")
    return items if items.value else None


def _line(node: yaml.Node) -> int:
    line: int = node.start_mark.line + 1
    return line


def _entry(path: Path, node: yaml.Node) -> Entry:
    where = f"{path}:{_line(node)}"
    if kind(node) != "mapping":
        raise UserError(f"{where}: expected an objection with {', '.join(_REQUIRED)}")
    fields = value(node)
    names = (*_REQUIRED, *_OPTIONAL)
    if unknown := next((name for name in fields if name not in names), None):
        raise UserError(f"{where}: unknown key {unknown!r}{did_you_mean(unknown, names)}")
    if missing := [name for name in _REQUIRED if not fields.get(name)]:
        raise UserError(f"{where}: an objection without {', '.join(missing)}")
    about = fields.pop("about")
    if not isinstance(about, list) or not all(isinstance(item, str) for item in about):
        raise UserError(f"{where}: about is not a list of paths")
    if wrong := next((name for name, text in fields.items() if not isinstance(text, str)), None):
        raise UserError(f"{where}: {wrong} is not text")
    fields["state"] = state_of(fields["state"], where)
    percent = fields.pop("percent", None)
    share = None if percent is None else _percent(percent, where)
    _require_share(fields["state"], share, where)
    return Entry(about=tuple(about), percent=share, **fields)


def state_of(text: str, where: str) -> State:
    """Return a state by its name, which may have spaces or hyphens instead of underscores.

    Raises:
        UserError: there is no such state; the message starts with ``where``.
    """
    name = text.replace(" ", "_").replace("-", "_")
    if name not in list(State):
        states = [state.value for state in State]
        raise UserError(
            f"{where}: unknown state {text!r}{did_you_mean(name, states)};"
            f" expected one of {', '.join(states)}"
        )
    return State(name)


def _percent(text: str, where: str) -> float:
    try:
        return float(text.removesuffix("%"))
    except ValueError as error:
        raise UserError(f"{where}: percent is {text!r}; expected a number") from error


def _require_share(state: State, percent: float | None, where: str) -> None:
    if state is not State.WAIVED:
        return
    if percent is None:
        raise UserError(f"{where}: waived without percent; expected the total difference")
    if not 0 <= percent < WAIVED_BELOW:
        raise UserError(
            f"{where}: waived at {percent:g} %; only total differences below {WAIVED_BELOW:g} %"
            f" that do not change the order of competitors may be waived ({_SOURCE})"
        )


# ---- writing ------------------------------------------------------------------------------


def with_new(path: Path, objections: Iterable[Objection], by: str | None) -> str:
    """Return the text of the file with these objections appended.

    Raises:
        UserError: as ``read_entries``, or the file would be too large to be read.
    """
    items, indent = _items(path) if path.exists() else None, "  "
    if items is None:
        text = _HEAD.format(states=", ".join(State))
    elif items.flow_style:
        raise UserError(f"{path}:{_line(items)}: write every objection on lines of its own")
    else:
        text = read_file(path, LARGEST).decode("utf-8").rstrip() + "\n"
        indent = " " * items.start_mark.column
    text += "".join(_item(objection, by, indent) for objection in objections)
    if len(text.encode()) > LARGEST:
        raise UserError(f"{path}: more than {LARGEST >> 10} KiB of objections; choose fewer CODES")
    return text


def _item(objection: Objection, by: str | None, indent: str) -> str:
    fields = {
        "id": objection.id,
        "against": objection.against,
        **({"by": by} if by else {}),
        "code": objection.code,
        "title": objection.title,
        "state": State.DRAFTED.value,
    }
    lines = [f"{name}: {_scalar(text)}" for name, text in fields.items()]
    lines += ["about:", *(f"  - {_scalar(path)}" for path in objection.about)]
    return "".join(
        f"{indent}{'  ' if number else '- '}{line}\n" for number, line in enumerate(lines)
    )


def _scalar(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(visible(text), ensure_ascii=False)


def change_states(path: Path, ids: Sequence[str], change: Change) -> None:
    """Write a change into the objections with these ids, and keep comments and order.

    Raises:
        UserError: an id is unknown, the change is not allowed, or the file cannot be written.
    """
    entries = {entry.id: entry for entry in read_entries(path)}
    for name in ids:
        if name not in entries:
            raise UserError(f"{path}: no objection {name!r}{did_you_mean(name, entries)}")
        percent = entries[name].percent if change.percent is None else change.percent
        _require_share(change.state, percent, name)
    text = read_file(path, LARGEST).decode("utf-8")
    items = _items(path)
    nodes = {value(node)["id"]: node for node in (items.value if items else ())}
    last_first = sorted(set(ids), key=lambda name: nodes[name].start_mark.index, reverse=True)
    for node in (nodes[name] for name in last_first):
        text = _edited(path, text, node, _fields(change))
    write_whole(path, text, replace=True)


def _fields(change: Change) -> dict[str, str]:
    fields = {"state": change.state.value, "issue": change.issue, "note": change.note}
    percent = None if change.percent is None else f"{change.percent:g}"
    return {name: text for name, text in {**fields, "percent": percent}.items() if text is not None}


def _edited(path: Path, text: str, node: Any, fields: Mapping[str, str]) -> str:
    """Replace the values of fields in the node; add missing fields below its state."""
    if node.flow_style:
        raise UserError(f"{path}:{_line(node)}: write every field of the objection on its own line")
    pairs = {key(name): (name, item) for name, item in node.value}
    state = pairs["state"][0]
    end = text.find("\n", state.start_mark.index)
    end = len(text) if end < 0 else end
    new = [
        f"\n{' ' * state.start_mark.column}{n}: {_scalar(t)}"
        for n, t in fields.items()
        if n not in pairs
    ]
    edits = [(end, end, "".join(new))]
    for name in fields.keys() & pairs.keys():
        item = pairs[name][1]
        if item.style in ("|", ">"):
            raise UserError(f"{path}:{_line(item)}: write {name} on one line, in quotation marks")
        start, stop = item.start_mark.index, item.end_mark.index
        edits.append((start, stop, " " * (start == stop) + _scalar(fields[name])))
    for start, stop, words in sorted(edits, reverse=True):
        text = text[:start] + words + text[stop:]
    return text
