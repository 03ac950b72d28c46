"""The states of objections as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from mlperf_pkg.commands.review.settled import Judged, NewError, Outcome, Standing
from mlperf_pkg.render import tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, Column, Group, Table
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording

FORMAT = "mlperf-pkg/objections/1"
_COLUMNS = (
    Column("Objection", 60, whole=True),
    Column("State", 14),
    Column("In the tree", 30),
)
_COUNTED = {Standing.STANDS: "standing"}  # other names follow a number as they are
_ERRORS = 10


def text(outcome: Outcome, view: View) -> str:
    """Return a table of the objections, then the errors without an objection."""
    terminal = Terminal(view)
    if outcome.objections:
        rows = [[(cell, PLAIN) for cell in _row(item)] for item in outcome.objections]
        terminal.table(Table(_COLUMNS, [Group("", rows)]))
    shown = outcome.new if view.verbose else outcome.new[:_ERRORS]
    if shown:
        terminal.line(("Errors without an objection", PLAIN))
        for error in shown:
            terminal.paragraph((f"  {_error(error)}", PLAIN))
        if more := len(outcome.new) - len(shown):
            terminal.line((f"  and {more} more; -v shows them", PLAIN))
        terminal.line()
    terminal.paragraph((_summary(outcome), PLAIN))
    return terminal.text()


def _row(item: Judged) -> tuple[str, str, str]:
    entry = item.entry
    share = "" if entry.percent is None else f" ({entry.percent:g} %)"
    left = f" in {len(item.left)} of {len(entry.about)}" if len(entry.about) > 1 else ""
    standing = f"{item.standing or wording.NOTHING}{left if item.left else ''}"
    return entry.id, f"{entry.state.value.replace('_', ' ')}{share}", standing


def _error(error: NewError) -> str:
    subjects = wording.counted(len(error.about), "place")
    return f"{error.against}: {error.code} in {subjects}, first {error.about[0]}: {error.message}"


def _summary(outcome: Outcome) -> str:
    number = wording.counted(len(outcome.objections), "objection")
    standing = [item.standing for item in outcome.objections if item.standing]
    if outcome.objections and not standing:
        counts = Counter(item.entry.state.value.replace("_", " ") for item in outcome.objections)
    else:
        counts = Counter(_COUNTED.get(item, item.value) for item in standing)
        counts["not in the tree"] = len(outcome.objections) - len(standing)
        counts["new"] = len(outcome.new)
    words = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{number}: {words}" if words else number


def json(outcome: Outcome, _: View) -> str:
    """Return JSON; ``standing`` is null if there is no tree."""
    return tables.json_text(
        {
            "format": FORMAT,
            "settled": outcome.is_settled,
            "objections": outcome.objections,
            "new": outcome.new,
        }
    )


OBJECTION_FORMATS: Mapping[str, Callable[[Outcome, View], str]] = {"text": text, "json": json}
