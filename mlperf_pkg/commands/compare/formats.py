"""Results of systems beside each other, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from mlperf_pkg.commands.compare.ratios import Entry, Row
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import tables
from mlperf_pkg.render.markdown import section
from mlperf_pkg.render.terminal import HEADING, PLAIN, Column, Group, Span, Terminal
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.report import as_json

FORMAT = "mlperf-pkg/compare/1"

_LEGEND = (
    "Speed is the minutes of the baseline (*) over those of the system; it and speed per"
    " accelerator, node and dollar, and training per joule, are relative to the baseline."
)
_JOULES_IN_MJ = 1e6


class _Field(Struct, frozen=True):
    """A column of a table: its title, width, and the text of a row, empty where it has none."""

    title: str
    width: int
    text: Callable[[Row], str]
    numbers: bool = True


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def _rate(value: float | None) -> str:
    """Three digits at least, and all before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)


def _energy(entry: Entry) -> str:
    joules = entry.energy_joules
    return "" if joules is None else f"{joules / _JOULES_IN_MJ:.1f}"


_SPEED = (
    _Field("Accel.", 7, lambda row: _whole(row.entry.accelerators)),
    _Field("Minutes", 9, lambda row: words.minutes(row.entry.minutes)),
    _Field("Speed", 7, lambda row: _times(row.speed)),
    _Field("/accel.", 7, lambda row: _times(row.speed_per_accelerator)),
    _Field("/node", 7, lambda row: _times(row.speed_per_node)),
    _Field("/dollar", 7, lambda row: _times(row.performance_per_dollar)),
    _Field("/joule", 7, lambda row: _times(row.performance_per_joule)),
)
_RATES = (
    _Field("Per second", 11, lambda row: _rate(row.entry.samples_per_second)),
    _Field("/accel.", 8, lambda row: _rate(row.samples_per_second_per_accelerator)),
    _Field("/node", 8, lambda row: _rate(row.samples_per_second_per_node)),
    _Field("Logged", 11, lambda row: _rate(row.entry.logged_throughput)),
    _Field("MJ", 7, lambda row: _energy(row.entry)),
    _Field("Precision", 9, lambda row: row.entry.precision or "", numbers=False),
)


def text(rows: Sequence[Row], view: View) -> str:
    """For a terminal or a pipe."""
    terminal = Terminal(view)
    name = _naming(rows)
    for fields_, title in ((_SPEED, "Time to train"), (_RATES, "Throughput")):
        used = _used(fields_, rows)
        columns = [Column(title), *(Column(f.title, f.width, f.numbers) for f in used)]
        remarks = _remarks if fields_ is _SPEED else _units
        groups = [
            Group(
                _heading(each[0].entry),
                [_cells(row, used, name) for row in each],
                list(remarks(each, name)),
            )
            for each in _groups(rows)
        ]
        if used:
            terminal.table(columns, groups, apart=True)
    terminal.paragraph((_LEGEND, PLAIN))
    return terminal.text()


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    return [list(members) for _, members in groupby(rows, key=lambda row: row.entry.group)]


def _used(fields_: Sequence[_Field], rows: Sequence[Row]) -> list[_Field]:
    """The columns that hold something."""
    return [field for field in fields_ if any(field.text(row) for row in rows)]


def _heading(entry: Entry) -> str:
    benchmark, division, scaling = entry.group
    about = [division or "no division"] + ([f"{scaling} scaling"] if scaling else [])
    return f"{benchmark} ({', '.join(about)})"


def _naming(rows: Sequence[Row]) -> Callable[[Entry], str]:
    """Systems by name alone, with what tells apart those that share it."""
    rounds = {row.entry.round for row in rows}
    owners = {(row.entry.system, row.entry.submitter) for row in rows}
    shared = Counter(system for system, _ in owners)

    def name(entry: Entry) -> str:
        round_ = f"{entry.round} " if len(rounds) > 1 and entry.round else ""
        owner = f"{entry.submitter}/" if shared[entry.system] > 1 and entry.submitter else ""
        return f"{round_}{owner}{entry.system}"

    return name


def _cells(row: Row, used: Sequence[_Field], name: Callable[[Entry], str]) -> list[Span]:
    style = HEADING if row.baseline else PLAIN
    marked = f"{name(row.entry)}{' *' if row.baseline else ''}"
    return [(marked, style), *((field.text(row) or words.NOTHING, style) for field in used)]


# ---- remarks ------------------------------------------------------------------------------


def _remarks(rows: Sequence[Row], name: Callable[[Entry], str]) -> Iterator[str]:
    """What a reader must know of a group, and what came of each round."""
    if not any(row.baseline for row in rows):
        yield "no result of the baseline here"
    if len({row.entry.target for row in rows if row.entry.target}) > 1:
        yield "the rounds ask for different quality: times compare with care"
    for row in rows:
        if row.improvement is not None:
            system = "" if row.previous_system == row.entry.system else f" ({row.previous_system})"
            since = f"{row.improvement:.2f}x as fast as in round {row.previous_round}{system}"
            yield f"{name(row.entry)}: {since}"
        if row.entry.note:
            yield f"{name(row.entry)}: {row.entry.note}"
        if row.entry.rules is Verdict.FAIL:
            yield f"{name(row.entry)}: against the written rules, see mlperf-pkg check"
    yield from _prices(rows)


def _prices(rows: Sequence[Row]) -> Iterator[str]:
    """Each price with its source once, and whose it is."""
    priced: dict[str, list[str]] = {}
    for row in rows:
        if row.price_usd is not None:
            date = f", {row.price_date}" if row.price_date else ""
            price = f"${row.price_usd:,.0f} ({row.price_source}{date})"
            priced.setdefault(price, []).append(row.entry.system)
    for price, systems in priced.items():
        yield f"{', '.join(dict.fromkeys(systems))}: {price}"


def _units(rows: Sequence[Row], _: object = None) -> Iterator[str]:
    if units := sorted({row.entry.unit for row in rows if row.entry.unit}):
        yield f"{' or '.join(units)} per second"


# ---- other formats ------------------------------------------------------------------------


def json(rows: Sequence[Row], _: View) -> str:
    """For programs: ``{"format": ..., "results": [...]}``, each with the fields of both."""
    return tables.json_text({"format": FORMAT, "results": [_flat(row) for row in rows]})


def csv(rows: Sequence[Row], _: View) -> str:
    """One row per result."""
    return tables.csv_text(_NAMES, ([_flat(row)[name] for name in _NAMES] for row in rows))


_HIDDEN = ("argument", "hardware", "framework")
_NAMES = tuple(
    name
    for name in [f.name for f in fields(Entry)] + [f.name for f in fields(Row)]
    if name not in ("entry", *_HIDDEN)
)


def _flat(row: Row) -> dict[str, Any]:
    """The fields of a row and its entry in one."""
    known = {**as_json(row.entry), **as_json(row)}
    return {name: known[name] for name in _NAMES}


def markdown(rows: Sequence[Row], _: View) -> str:
    """For a report: a section per benchmark."""
    used = _used((*_SPEED, *_RATES), rows)
    titles = _titles(used)
    sections = [
        section(
            titles,
            Group(
                _heading(each[0].entry),
                [_cells(row, used, _full) for row in each],
                [*_remarks(each, _full), *_units(each)],
            ),
        )
        for each in _groups(rows)
    ]
    return "\n\n".join(["## MLPerf results compared", *sections, escape_markdown(_LEGEND)]) + "\n"


def _full(entry: Entry) -> str:
    return entry.name


def _titles(used: Sequence[_Field]) -> dict[str, bool]:
    """In one table the titles of rates tell that they are."""
    return {"System": False} | {
        f"Per second {field.title}" if field in _RATES and field.title[0] == "/" else field.title: (
            field.numbers
        )
        for field in used
    }


COMPARE_FORMATS: Mapping[str, Callable[[Sequence[Row], View], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "csv": csv,
}
