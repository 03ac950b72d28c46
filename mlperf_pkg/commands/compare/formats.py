"""The formats of a comparison: text, JSON, Markdown, CSV.

Text and Markdown show published results next to the user's own.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import fields, replace

from mlperf_pkg.commands.compare.ratios import ComparisonRow, Result
from mlperf_pkg.commands.notice import SPEED_UP, notice, score
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import table
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import (
    HEADING,
    PLAIN,
    Column,
    RowGroup,
    Table,
    records,
    table_of,
)
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.wording import NOTHING, counted

FORMAT = "mlperf-pkg/compare/1"

_Naming = Callable[[Result], str]

_LEGEND = (
    "Speed is the minutes of the baseline (*) divided by the minutes of the system. Speed per"
    " accelerator, speed per node, speed per dollar and runs per joule are also relative to the"
    " baseline."
)
_PUBLISHED = (
    "[round] marks a result that was published in this round. The score is the published score;"
    " the system is described as by its submitter."
)
_DERIVED = f"{SPEED_UP}, and speed per accelerator, per node and per dollar, and runs per joule"
_MOST_VALUES = 3  # of a hyperparameter


# ---- columns ------------------------------------------------------------------------------


def _times(value: float | None) -> str:
    """Return a ratio with two decimals, three if it is small, or at least one digit."""
    if value is None:
        return NOTHING
    if value < 0.0005:  # noqa: PLR2004
        return f"{value:.0e}x"
    if value < 0.1:  # noqa: PLR2004
        return f"{value:.3f}x"
    return f"{value:.2f}x"


def _rate(value: float | None) -> str:
    """Return a rate with at least three digits; millions with one decimal."""
    if value is None:
        return NOTHING
    if value >= 1e6:  # noqa: PLR2004
        return f"{value / 1e6:,.1f}M"
    if value >= 100:  # noqa: PLR2004
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _megajoules(joules: float | None) -> str:
    return NOTHING if joules is None else f"{joules / 1e6:.1f}"


def _of(
    name: str, title: str, width: int, show: Callable[[Any], str], *, numbers: bool = True
) -> Column:
    """Return the column of a field; the cells of a baseline are bold."""
    return Column(title, width, numbers, of=attrgetter(name), show=show, style=_style)


def _style(row: ComparisonRow) -> str:
    return HEADING if row.baseline else PLAIN


def _score(row: ComparisonRow) -> str:
    return score(row.result.minutes, is_verified=row.result.is_verified)


def _text(value: str | None) -> str:
    return value or NOTHING


_SPEED = (
    _of("result.submitter", "Submitter", 16, _text, numbers=False),
    _of("result.availability_in_short", "Avail.", 10, _text, numbers=False),
    _of("result.accelerators", "Accelerators", 12, table.shown),
    _of("result.minutes", "Minutes", 9, wording.minutes),
    _of("speed", "Speed", 8, _times),
)
_SCORE = Column("Minutes", 9, numbers=True, of=_score, style=_style)
"""The column of scores where each says whether it is unverified."""

_RATIOS = (
    _of("speed_per_accelerator", "accelerator", 11, _times),
    _of("speed_per_node", "node", 11, _times),
    _of("performance_per_dollar", "dollar", 11, _times),
    _of("performance_per_joule", "joule", 11, _times),
)
_RATES = (
    _of("result.samples_per_second", "Per second", 11, _rate),
    _of("samples_per_second_per_accelerator", "/accelerator", 12, _rate),
    _of("samples_per_second_per_node", "/node", 8, _rate),
    _of("result.logged_throughput", "Logged", 11, _rate),
    _of("result.energy_joules", "MJ", 7, _megajoules),
    _of("result.precision", "Precision", 9, _text, numbers=False),
)
_TABLES = {"Time to train": _SPEED, "Speed per": _RATIOS, "Throughput": _RATES}
_SETTINGS = (
    Column("Hyperparameters"),
    Column("Baseline", 12),
    Column("Published (result sets)", 34),
)
_SUMMARY = (
    Column("Benchmarks", of=lambda rows: rows[0].result.group.title),
    Column("Results", 7, numbers=True, of=len),
    Column("Minutes", 9, True, of=lambda rows: _fastest(rows).result.minutes, show=wording.minutes),
    Column("Speed", 8, numbers=True, of=lambda rows: _fastest(rows).speed, show=_times),
)
_HIDDEN = (
    "result",
    "argument",
    "hardware",
    "framework",
    "hyperparameters",
    "usage",
    "is_verified",
    "id",
    "assumed_round",
)


def _columns_of_data(record: type[Struct], path: str) -> list[Column]:
    columns = []
    for field in fields(record):
        if field.name not in _HIDDEN:
            columns.append(Column(key=field.name, of=attrgetter(f"{path}{field.name}")))
    return columns


_DATA = (*_columns_of_data(Result, "result."), *_columns_of_data(ComparisonRow, ""))
_DATA_OF_JSON = (*_DATA, Column(key="hyperparameters", of=attrgetter("result.hyperparameters")))


def _used(columns: Sequence[Column], rows: Sequence[ComparisonRow]) -> list[Column]:
    """Return the columns that are not empty; the ratios of baselines are always 1."""
    used = []
    for column in columns:
        shown = rows
        if column in _RATIOS:
            shown = [row for row in rows if not row.baseline]
        is_needed = column.title == "Minutes" and bool(shown)
        if is_needed or any(_cell(column, row) != NOTHING for row in shown):
            used.append(column)
    return used


def _cell(column: Column, row: ComparisonRow) -> str:
    [(text, _)] = Table((column,)).spans(row)
    return text


# ---- text and Markdown --------------------------------------------------------------------


def text(rows: Sequence[ComparisonRow], view: View) -> str:
    """Return the comparison for a terminal or a pipe."""
    terminal = Terminal(view)
    shown = shown_rows(rows, view)
    groups = _in_groups(shown)
    if len(groups) > 1:
        terminal.table(_summary(groups, shown))
    for table_title, columns in _TABLES.items():
        of_table = shown
        if columns is not _SPEED and not view.verbose:
            of_table = [row for row in shown if not row.result.published]
        used = _used(columns, of_table)
        if used:
            # The table of scores has a column for the submitter.
            name = _naming(of_table, owned=columns is not _SPEED)
            titled = _titled(of_table, rows, name, columns)
            terminal.table(Table((_named(table_title, name), *used), titled), apart=True)
    settings = hyperparameters(shown, view)
    if settings:
        terminal.table(Table(_SETTINGS, settings), apart=True)
    for remark in _ending(shown):
        terminal.paragraph((remark, PLAIN))
    return terminal.text()


def _summary(groups: Sequence[Sequence[ComparisonRow]], shown: Sequence[ComparisonRow]) -> Table:
    """Return a line for each group, with the fastest system of one category."""
    name = _naming(shown, owned=True)
    fastest = Column("Fastest of its category", 40, of=lambda rows: name(_fastest(rows).result))
    return table_of((*_SUMMARY, fastest), groups)


def _fastest(rows: Sequence[ComparisonRow]) -> ComparisonRow:
    """Return the fastest of the category of the baseline, or of all without a baseline."""
    baseline = next((row for row in rows if row.baseline), rows[0])
    category = baseline.result.availability_in_short
    return next(row for row in rows if row.result.availability_in_short == category)


def markdown(rows: Sequence[ComparisonRow], view: View) -> str:
    """Return Markdown with a section per benchmark, for a report."""
    shown = shown_rows(rows, view)
    used = _used((*_SPEED, *_RATIOS, *_RATES), shown)
    name = _naming(shown, owned=False)
    columns = [_named("System", name)]
    for column in used:  # of all tables
        title = column.title or ""
        if title == "Minutes":
            columns.append(_SCORE)
            continue
        if column in _RATIOS:
            title = f"Speed per {title}"
        elif title.startswith("/"):
            title = f"Per second {title}"
        columns.append(replace(column, title=title))
    groups = _titled(shown, rows, name)
    settings = table.markdown(Table(_SETTINGS, hyperparameters(shown, view)))
    beside = notice((row.result.shown for row in shown), [_DERIVED])
    ending = map(escape_markdown, (*_ending(shown), *beside))
    results = table.markdown(Table(columns, groups))
    return table.document("## MLPerf\u00ae results compared", results, settings, *ending)


def _titled(
    rows: Sequence[ComparisonRow],
    all_rows: Sequence[ComparisonRow],
    name: _Naming,
    columns: Sequence[Column] = (),
) -> list[RowGroup]:
    """Return the groups with their remarks, and the units of their rates.

    Remarks are below the ``columns`` of scores, units below those of rates; both if no
    ``columns`` are given.
    """
    groups = []
    for members in _in_groups(rows):
        remarks: list[str] = []
        if columns in ((), _SPEED):
            remarks += _remarks(members, all_rows, name)
        units = sorted({row.result.unit for row in members if row.result.unit})
        if units and columns in ((), _RATES):
            remarks.append(f"{' or '.join(units)} per second")
        groups.append(RowGroup(members[0].result.group.title, members, remarks))
    return groups


def shown_rows(rows: Sequence[ComparisonRow], view: View) -> list[ComparisonRow]:
    """Leave out published results on other numbers of accelerators than the user's own results.

    A group keeps all rows in a ``verbose`` view, without own results, or if no other rows remain.
    """
    if view.verbose:
        return list(rows)
    shown: list[ComparisonRow] = []
    for members in _in_groups(rows):
        shown += _near(members)
    return shown


def _in_groups(rows: Sequence[ComparisonRow]) -> list[list[ComparisonRow]]:
    return [list(members) for _, members in groupby(rows, key=lambda row: row.result.group)]


def _near(rows: Sequence[ComparisonRow]) -> Sequence[ComparisonRow]:
    own = [row for row in rows if not row.result.published]
    if not own:
        return rows
    sizes = {row.result.accelerators for row in own}
    near = []
    for row in rows:
        if row.baseline or row.result.accelerators in sizes:
            near.append(row)
    return near if len(near) > len(own) else rows


def _named(title: str, name: _Naming) -> Column:
    """Return the column of the names; a baseline is marked."""

    def marked(row: ComparisonRow) -> str:
        mark = " *" if row.baseline else ""
        return f"{name(row.result)}{mark}"

    return Column(title, of=marked, style=_style)


def _naming(rows: Sequence[ComparisonRow], *, owned: bool) -> _Naming:
    """Return a function that names a system, with its round or, ``owned``, submitter if needed."""
    rounds = {row.result.round for row in rows if not row.result.published}
    owners = {(row.result.system, row.result.submitter) for row in rows}
    shared = Counter(system for system, _ in owners)

    def name(result: Result) -> str:
        text = result.system
        is_ambiguous = owned and shared[result.system] > 1
        if is_ambiguous and result.submitter:
            text = f"{result.submitter}/{text}"
        if result.published:
            return f"[{result.round}] {text}"
        if len(rounds) > 1 and result.round:
            return f"{result.round} {text}"
        return text

    return name


# ---- hyperparameters ----------------------------------------------------------------------


def hyperparameters(rows: Sequence[ComparisonRow], view: View) -> list[RowGroup]:
    """Return the hyperparameters of the groups that have published results.

    Values that all results share appear only in a ``verbose`` view.
    """
    groups = []
    for members in _in_groups(rows):
        settings = list(_settings(members, verbose=view.verbose))
        if settings and any(row.result.published for row in members):
            groups.append(RowGroup(members[0].result.group.title, settings))
    return groups


def _settings(rows: Sequence[ComparisonRow], *, verbose: bool) -> Iterator[Sequence[str]]:
    baseline = next((row.result.hyperparameters for row in rows if row.baseline), {})
    published = [row.result.hyperparameters for row in rows if row.result.published]
    keys = set(baseline).union(*published)
    for key in sorted(keys):
        numbers = Counter(values[key] for values in published if key in values)
        different = set(numbers)
        if baseline.get(key):
            different.add(baseline[key])
        if verbose or len(different) > 1:
            yield key, _plain(baseline.get(key, NOTHING)), _in_words(numbers)


def _in_words(numbers: Counter[str]) -> str:
    """Return ``448 (4), 480 (2), 3 other values``."""
    frequent = numbers.most_common(_MOST_VALUES)
    parts = [f"{_plain(value)} ({number})" for value, number in frequent]
    others = len(numbers) - len(frequent)
    if others:
        parts.append(counted(others, "other value"))
    return ", ".join(parts) or NOTHING


def _plain(value: str) -> str:
    return value.strip('"')


# ---- remarks ------------------------------------------------------------------------------


def _remarks(
    rows: Sequence[ComparisonRow], all_rows: Sequence[ComparisonRow], name: _Naming
) -> Iterator[str]:
    """Yield remarks on the comparability of a group, and the changes between rounds."""
    group = rows[0].result.group
    of_group = [row for row in all_rows if row.result.group == group]
    hidden = len(of_group) - len(rows)
    if hidden:
        results = counted(hidden, "published result")
        yield f"{results} on other numbers of accelerators: --verbose shows them"
    if not any(row.baseline for row in rows):
        yield "the baseline has no result for this benchmark and division"
    names_by_remark: dict[str, dict[str, None]] = {}
    for row in rows:
        for remark in _remarks_on(row):
            names_by_remark.setdefault(remark, {})[name(row.result)] = None
    for remark, names in names_by_remark.items():
        yield f"{', '.join(names)}: {remark}"


def _remarks_on(row: ComparisonRow) -> Iterator[str]:
    """Yield the change since an earlier round, and what qualifies a result."""
    if row.improvement is not None and not row.result.published:
        change = wording.change(row.improvement, 1)
        since = f"since round {row.previous_round}"
        if row.previous_system != row.result.system:
            since += f" ({row.previous_system})"
        yield f"{change} {since}"
    if row.result.note:
        yield row.result.note
    if row.result.rules is Verdict.FAIL:
        yield "not valid by the written rules; 'mlperf-pkg check' shows why"


def _ending(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    """Yield each price once, with its systems and its source, and what the columns mean.

    There is no price if no column depends on it.
    """
    if any(row.performance_per_dollar for row in rows if not row.baseline):
        systems_by_price: dict[str, dict[str, None]] = {}
        for row in rows:
            if row.price_usd:
                systems_by_price.setdefault(_price(row), {})[row.result.system] = None
        for price, systems in systems_by_price.items():
            yield f"{', '.join(systems)}: {price}"
    yield _LEGEND
    if any(row.result.published for row in rows):
        yield _PUBLISHED


def _price(row: ComparisonRow) -> str:
    date = f", {row.price_date}" if row.price_date else ""
    return f"${row.price_usd:,.0f} ({row.price_source}{date})"


# ---- JSON and CSV -------------------------------------------------------------------------


def json(rows: Sequence[ComparisonRow], _: View) -> str:
    """Return JSON: ``{"format": ..., "results": [...]}``, with the fields of result and row."""
    return table.json_text({"format": FORMAT, "results": records(table_of(_DATA_OF_JSON, rows))})


def csv(rows: Sequence[ComparisonRow], _: View) -> str:
    """Return CSV with a row per result."""
    return table.csv(table_of(_DATA, rows))


COMPARE_FORMATS = {"text": text, "json": json, "markdown": markdown, "csv": csv}
