"""The formats of a comparison: text, JSON, Markdown, CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from mlperf_pkg.commands.compare.model import Result, ResultGroup, Row
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import tables
from mlperf_pkg.render.markdown import section
from mlperf_pkg.render.terminal import HEADING, PLAIN, Column, Group, Span, Terminal
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json

FORMAT = "mlperf-pkg/compare/1"

_LEGEND = (
    "Speed is the minutes of the baseline (*) divided by those of the system. Speed per"
    " accelerator, node and dollar, and training per joule, are ratios to the baseline."
)
_JOULES_IN_MJ = 1e6


class _Field(Struct, frozen=True):
    """A column of a table: its title, its width, and the text of a row, which may be empty."""

    title: str
    width: int
    text: Callable[[Row], str]
    numbers: bool = True


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def _rate(value: float | None) -> str:
    """Return a rate with at least three digits, and all digits before the decimal point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)


def _energy(result: Result) -> str:
    joules = result.energy_joules
    return "" if joules is None else f"{joules / _JOULES_IN_MJ:.1f}"


_SPEED = (
    _Field("Accel.", 7, lambda row: _whole(row.result.accelerators)),
    _Field("Minutes", 9, lambda row: wording.minutes(row.result.minutes)),
    _Field("Speed", 7, lambda row: _times(row.speed)),
    _Field("/accel.", 7, lambda row: _times(row.speed_per_accelerator)),
    _Field("/node", 7, lambda row: _times(row.speed_per_node)),
    _Field("/dollar", 7, lambda row: _times(row.performance_per_dollar)),
    _Field("/joule", 7, lambda row: _times(row.performance_per_joule)),
)
_RATES = (
    _Field("Per second", 11, lambda row: _rate(row.result.samples_per_second)),
    _Field("/accel.", 8, lambda row: _rate(row.samples_per_second_per_accelerator)),
    _Field("/node", 8, lambda row: _rate(row.samples_per_second_per_node)),
    _Field("Logged", 11, lambda row: _rate(row.result.logged_throughput)),
    _Field("MJ", 7, lambda row: _energy(row.result)),
    _Field("Precision", 9, lambda row: row.result.precision or "", numbers=False),
)


def text(rows: Sequence[Row], view: View) -> str:
    """Return the comparison for a terminal or a pipe."""
    terminal = Terminal(view)
    name = _naming(rows)
    for fields_, title in ((_SPEED, "Time to train"), (_RATES, "Throughput")):
        used = _used(fields_, rows)
        columns = [Column(title), *(Column(f.title, f.width, f.numbers) for f in used)]
        remarks = _remarks if fields_ is _SPEED else _units
        groups = [
            Group(
                _heading(members[0].result.group),
                [_cells(row, used, name) for row in members],
                list(remarks(members, name)),
            )
            for members in _groups(rows)
        ]
        if used:
            terminal.table(columns, groups, apart=True)
    terminal.paragraph((_LEGEND, PLAIN))
    return terminal.text()


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    return [list(members) for _, members in groupby(rows, key=lambda row: row.result.group)]


def _used(fields_: Sequence[_Field], rows: Sequence[Row]) -> list[_Field]:
    """Return the columns that are not empty."""
    return [field for field in fields_ if any(field.text(row) for row in rows)]


def _heading(group: ResultGroup) -> str:
    scaling = [f"{group.scaling} scaling"] if group.scaling else []
    return f"{group.benchmark} ({', '.join([group.division or 'no division', *scaling])})"


def _naming(rows: Sequence[Row]) -> Callable[[Result], str]:
    """Return a function that names a system, with its round or submitter if they differ."""
    rounds = {row.result.round for row in rows}
    owners = {(row.result.system, row.result.submitter) for row in rows}
    shared = Counter(system for system, _ in owners)

    def name(result: Result) -> str:
        round_ = f"{result.round} " if len(rounds) > 1 and result.round else ""
        owner = f"{result.submitter}/" if shared[result.system] > 1 and result.submitter else ""
        return f"{round_}{owner}{result.system}"

    return name


def _cells(row: Row, used: Sequence[_Field], name: Callable[[Result], str]) -> list[Span]:
    style = HEADING if row.baseline else PLAIN
    marked = f"{name(row.result)}{' *' if row.baseline else ''}"
    return [(marked, style), *((field.text(row) or wording.NOTHING, style) for field in used)]


# ---- remarks ------------------------------------------------------------------------------


def _remarks(rows: Sequence[Row], name: Callable[[Result], str]) -> Iterator[str]:
    """Yield remarks on the comparability of a group, and the changes between rounds."""
    if not any(row.baseline for row in rows):
        yield "the baseline has no result here"
    if len({row.result.target for row in rows if row.result.target}) > 1:
        yield "the rounds require different quality: compare times with care"
    for row in rows:
        if row.improvement is not None:
            system = "" if row.previous_system == row.result.system else f" ({row.previous_system})"
            since = f"{row.improvement:.2f}x as fast as in round {row.previous_round}{system}"
            yield f"{name(row.result)}: {since}"
        if row.result.note:
            yield f"{name(row.result)}: {row.result.note}"
        if row.result.rules is Verdict.FAIL:
            yield f"{name(row.result)}: violates the written rules, see mlperf-pkg check"
    yield from _prices(rows)


def _prices(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each price once, with its systems and its source."""
    priced: dict[str, list[str]] = {}
    for row in rows:
        if row.price_usd is not None:
            date = f", {row.price_date}" if row.price_date else ""
            price = f"${row.price_usd:,.0f} ({row.price_source}{date})"
            priced.setdefault(price, []).append(row.result.system)
    for price, systems in priced.items():
        yield f"{', '.join(dict.fromkeys(systems))}: {price}"


def _units(rows: Sequence[Row], _: object = None) -> Iterator[str]:
    if units := sorted({row.result.unit for row in rows if row.result.unit}):
        yield f"{' or '.join(units)} per second"


# ---- other formats ------------------------------------------------------------------------


def json(rows: Sequence[Row], _: View) -> str:
    """Return JSON: ``{"format": ..., "results": [...]}``, with the fields of result and row."""
    return tables.json_text({"format": FORMAT, "results": [_flat(row) for row in rows]})


def csv(rows: Sequence[Row], _: View) -> str:
    """Return CSV with a row per result."""
    return tables.csv_text(_NAMES, ([_flat(row)[name] for name in _NAMES] for row in rows))


_HIDDEN = ("argument", "hardware", "framework")
_NAMES = tuple(
    name
    for name in [f.name for f in fields(Result)] + [f.name for f in fields(Row)]
    if name not in ("result", *_HIDDEN)
)


def _flat(row: Row) -> dict[str, Any]:
    """Return the fields of a row and its result in one."""
    values = {**as_json(row.result), **as_json(row)}
    return {name: values[name] for name in _NAMES}


def markdown(rows: Sequence[Row], _: View) -> str:
    """Return Markdown with a section per benchmark, for a report."""
    used = _used((*_SPEED, *_RATES), rows)
    titles = _titles(used)
    sections = [
        section(
            titles,
            Group(
                _heading(members[0].result.group),
                [_cells(row, used, _full) for row in members],
                [*_remarks(members, _full), *_units(members)],
            ),
        )
        for members in _groups(rows)
    ]
    return "\n\n".join(["## MLPerf results compared", *sections, escape_markdown(_LEGEND)]) + "\n"


def _full(result: Result) -> str:
    return result.name


def _titles(used: Sequence[_Field]) -> dict[str, bool]:
    """Return the titles of one table, in which those of rates say that they are rates."""
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
