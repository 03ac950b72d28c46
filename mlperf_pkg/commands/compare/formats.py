"""The formats of a comparison: text, JSON, Markdown, CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from mlperf_pkg.commands.compare.beside import (
    HYPERPARAMETERS,
    hyperparameters,
    in_groups,
    shown_rows,
)
from mlperf_pkg.commands.compare.model import Result, Row
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Span, Table, csv_text
from mlperf_pkg.render.table import markdown as markdown_table
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json

FORMAT = "mlperf-pkg/compare/1"

_Naming = Callable[[Result], str]

_LEGEND = (
    "Speed is the minutes of the baseline (*) divided by those of the system. Speed per"
    " accelerator, node and dollar, and training per joule, are ratios to the baseline."
)
_PUBLISHED = (
    "[round]: published in that round; its score is normalised, and its system is described by its"
    " submitter."
)
_JOULES_IN_MJ = 1e6
_SETTINGS = "hyperparameters"  # in JSON only


class _Field(Struct, frozen=True):
    """A column of a table: its title, its width, and the text of a row, which may be empty.

    A ``relative`` one is left out if only baselines have it, as they are always 1.
    """

    title: str
    width: int
    text: Callable[[Row], str]
    numbers: bool = True
    relative: bool = False


def _times(value: float | None) -> str:
    """Return a ratio with two decimals, three if it is small, or at least one digit."""
    if value is None:
        return ""
    if value < 0.0005:  # noqa: PLR2004
        return f"{value:.0e}x"
    return f"{value:.2f}x" if value >= 0.1 else f"{value:.3f}x"  # noqa: PLR2004


def _rate(value: float | None) -> str:
    """Return a rate with at least three digits; millions with one decimal."""
    if value is None:
        return ""
    if value >= 1e6:  # noqa: PLR2004
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)


def _energy(result: Result) -> str:
    joules = result.energy_joules
    return "" if joules is None else f"{joules / _JOULES_IN_MJ:.1f}"


def _ratio(title: str, value: Callable[[Row], float | None]) -> _Field:
    return _Field(title, 11, lambda row: _times(value(row)), relative=True)


_SPEED = (
    _Field("Submitter", 16, lambda row: row.result.submitter or "", numbers=False),
    _Field("Avail.", 10, lambda row: row.result.availability_in_short, numbers=False),
    _Field("Accel.", 7, lambda row: _whole(row.result.accelerators)),
    _Field("Minutes", 9, lambda row: wording.minutes(row.result.minutes)),
    _Field("Speed", 8, lambda row: _times(row.speed)),
)
_RATIOS = (
    _ratio("accelerator", lambda row: row.speed_per_accelerator),
    _ratio("node", lambda row: row.speed_per_node),
    _ratio("dollar", lambda row: row.performance_per_dollar),
    _ratio("joule", lambda row: row.performance_per_joule),
)
_RATES = (
    _Field("Per second", 11, lambda row: _rate(row.result.samples_per_second)),
    _Field("/accel.", 8, lambda row: _rate(row.samples_per_second_per_accelerator)),
    _Field("/node", 8, lambda row: _rate(row.samples_per_second_per_node)),
    _Field("Logged", 11, lambda row: _rate(row.result.logged_throughput)),
    _Field("MJ", 7, lambda row: _energy(row.result)),
    _Field("Precision", 9, lambda row: row.result.precision or "", numbers=False),
)


class _Table(Struct, frozen=True):
    """A table of the text format; systems are named with their submitters if ``owned``."""

    title: str
    fields: Sequence[_Field]
    owned: bool = True


_SCORES = _Table("Time to train", _SPEED, owned=False)  # has a column for the submitter
_THROUGHPUT = _Table("Throughput", _RATES)
_TABLES = (_SCORES, _Table("Speed per", _RATIOS), _THROUGHPUT)


def text(rows: Sequence[Row], view: View) -> str:
    """Return the comparison for a terminal or a pipe."""
    terminal = Terminal(view)
    shown = shown_rows(rows, view)
    own = [row for row in shown if not row.result.published]
    for table in _TABLES:
        of_table = shown if table is _SCORES or view.verbose else own
        if used := _used(table.fields, of_table):
            columns = [Column(field.title, field.width, field.numbers) for field in used]
            columns.insert(0, Column(table.title, whole=True))
            terminal.table(
                Table(columns, list(_in_groups(table, used, of_table, rows))), apart=True
            )
    if groups := hyperparameters(shown, view):
        terminal.table(Table(HYPERPARAMETERS, groups), apart=True)
    for remark in (*_prices(shown), *_legend(shown)):
        terminal.paragraph((remark, PLAIN))
    return terminal.text()


def _legend(rows: Sequence[Row]) -> Iterator[str]:
    yield _LEGEND
    if any(row.result.published for row in rows):
        yield _PUBLISHED


def _in_groups(
    table: _Table, used: Sequence[_Field], rows: Sequence[Row], all_rows: Sequence[Row]
) -> Iterator[Group]:
    name = _naming(rows, owned=table.owned)
    for members in in_groups(rows):
        remarks = _remarks(members, all_rows, name) if table is _SCORES else ()
        units = _units(members) if table is _THROUGHPUT else ()
        cells = [_cells(row, used, name) for row in members]
        yield Group(members[0].result.group.title, cells, [*remarks, *units])


def _used(fields_: Sequence[_Field], rows: Sequence[Row]) -> list[_Field]:
    """Return the columns that are not empty."""
    return [
        field
        for field in fields_
        if any(field.text(row) for row in rows if not (field.relative and row.baseline))
    ]


def _naming(rows: Sequence[Row], *, owned: bool) -> _Naming:
    """Return a function that names a system, with its round or, ``owned``, submitter if needed."""
    rounds = {row.result.round for row in rows if not row.result.published}
    owners = {(row.result.system, row.result.submitter) for row in rows}
    shared = Counter(system for system, _ in owners)

    def name(result: Result) -> str:
        round_ = f"{result.round} " if len(rounds) > 1 and result.round else ""
        round_ = f"[{result.round}] " if result.published else round_
        ambiguous = owned and shared[result.system] > 1
        owner = f"{result.submitter}/" if ambiguous and result.submitter else ""
        return f"{round_}{owner}{result.system}"

    return name


def _cells(row: Row, used: Sequence[_Field], name: _Naming) -> list[Span]:
    style = HEADING if row.baseline else PLAIN
    marked = f"{name(row.result)}{' *' if row.baseline else ''}"
    return [(marked, style), *((field.text(row) or wording.NOTHING, style) for field in used)]


# ---- remarks ------------------------------------------------------------------------------


def _remarks(rows: Sequence[Row], all_rows: Sequence[Row], name: _Naming) -> Iterator[str]:
    """Yield remarks on the comparability of a group, and the changes between rounds."""
    hidden = sum(row.result.group == rows[0].result.group for row in all_rows) - len(rows)
    if hidden:
        results = wording.counted(hidden, "published result")
        yield f"{results} on other numbers of accelerators: --verbose shows them"
    if not any(row.baseline for row in rows):
        yield "the baseline has no result here"
    if len({row.result.target for row in rows if row.result.target}) > 1:
        yield "the rounds require different quality: compare times with care"
    names_by_remark: dict[str, list[str]] = {}
    for row in rows:
        for remark in _remarks_on(row):
            names_by_remark.setdefault(remark, []).append(name(row.result))
    for remark, names in names_by_remark.items():
        yield f"{', '.join(dict.fromkeys(names))}: {remark}"


def _remarks_on(row: Row) -> Iterator[str]:
    """Yield the change since an earlier round, and what qualifies a result."""
    if row.improvement is not None and not row.result.published:
        system = "" if row.previous_system == row.result.system else f" ({row.previous_system})"
        yield f"{row.improvement:.2f}x as fast as in round {row.previous_round}{system}"
    if row.result.note:
        yield row.result.note
    if row.result.rules is Verdict.FAIL:
        yield "violates the written rules, see mlperf-pkg check"


def _prices(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each price once, with its systems and its source; none if no column depends on it."""
    if not any(row.performance_per_dollar for row in rows if not row.baseline):
        return
    systems_by_price: dict[str, list[str]] = {}
    for row in rows:
        if row.price_usd is not None:
            date = f", {row.price_date}" if row.price_date else ""
            price = f"${row.price_usd:,.0f} ({row.price_source}{date})"
            systems_by_price.setdefault(price, []).append(row.result.system)
    for price, systems in systems_by_price.items():
        yield f"{', '.join(dict.fromkeys(systems))}: {price}"


def _units(rows: Sequence[Row]) -> Iterator[str]:
    if units := sorted({row.result.unit for row in rows if row.result.unit}):
        yield f"{' or '.join(units)} per second"


# ---- other formats ------------------------------------------------------------------------


def json(rows: Sequence[Row], _: View) -> str:
    """Return JSON: ``{"format": ..., "results": [...]}``, with the fields of result and row."""
    results = [{**_flat(row), _SETTINGS: as_json(row.result.hyperparameters)} for row in rows]
    return tables.json_text({"format": FORMAT, "results": results})


def csv(rows: Sequence[Row], _: View) -> str:
    """Return CSV with a row per result."""
    return csv_text(_NAMES, ([_flat(row)[name] for name in _NAMES] for row in rows))


_HIDDEN = ("argument", "hardware", "framework", _SETTINGS)
_NAMES = tuple(
    name
    for name in [f.name for f in fields(Result)] + [f.name for f in fields(Row)]
    if name not in ("result", *_HIDDEN)
)


def _flat(row: Row) -> dict[str, Any]:
    """Return the fields of a row and its result in one."""
    values = {**as_json(row.result), **as_json(row)}
    return {name: values[name] for name in _NAMES}


def markdown(rows: Sequence[Row], view: View) -> str:
    """Return Markdown with a section per benchmark, for a report."""
    shown = shown_rows(rows, view)
    used = _used((*_SPEED, *_RATIOS, *_RATES), shown)
    columns = [Column("System"), *(Column(_title(f), numbers=f.numbers) for f in used)]
    name = _naming(shown, owned=False)
    sections = [
        markdown_table(
            Table(
                columns,
                [
                    Group(
                        members[0].result.group.title,
                        [_cells(row, used, name) for row in members],
                        [*_remarks(members, rows, name), *_units(members)],
                    )
                ],
            )
        )
        for members in in_groups(shown)
    ]
    sections += [
        markdown_table(Table(HYPERPARAMETERS, [group])) for group in hyperparameters(shown, view)
    ]
    ending = [escape_markdown(remark) for remark in (*_prices(shown), *_legend(shown))]
    return "\n\n".join(["## MLPerf results compared", *sections, *ending]) + "\n"


def _title(field: _Field) -> str:
    """Return the title of a column in a table that has those of all tables."""
    if field in _RATIOS:
        return f"Speed per {field.title}"
    return f"Per second {field.title}" if field.title.startswith("/") else field.title


COMPARE_FORMATS: Mapping[str, Callable[[Sequence[Row], View], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "csv": csv,
}
