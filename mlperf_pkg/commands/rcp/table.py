"""The reference points of benchmarks as text, CSV, JSON and charts."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.rcp.reference import Reference
from mlperf_pkg.infra.text import escape_html, visible
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.rules import wrapped
from mlperf_pkg.render.table import HEADING, PLAIN, Column, json_text, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import FOUND, INTERPOLATED, SMALLER, ReferencePoint, has_limit
from mlperf_pkg.results.scoring import extremes
from mlperf_pkg.results.wording import counted

FORMAT = "mlperf-pkg/rcp/1"
_LARGE = 1000  # samples or epochs, from which on fractions are not shown

USED = "used"
PRUNED = "pruned"
BETWEEN = "interpolated"
BELOW = "smaller"
MISSING = "missing"
_STATES = {FOUND: USED, INTERPOLATED: BETWEEN, SMALLER: BELOW}
_LEGEND = {
    PRUNED: "pruned: the RCP test does not use this point, as it converges later than the"
    " neighbouring points predict",
    BELOW: "below all: the batch size is smaller than that of every point, so the point with the"
    " smallest batch size is used",
    MISSING: "missing: the batch size is larger than that of every point, so new reference runs"
    " are needed",
}


class PointRow(Struct, frozen=True):
    """A line of a table: what ``reference`` has at a batch size, measured or interpolated.

    ``state`` is ``used``, ``pruned``, ``interpolated``, ``smaller`` (compared with the smallest
    point) or ``missing``. ``runs`` are the reference runs, ``points`` the names of those used.
    """

    reference: Reference
    batch_size: float
    state: str
    points: tuple[str, ...]
    runs: int | None = None
    mean: float | None = None
    deviation: float | None = None
    minimum: float | None = None
    limits: bool = True


def shown(
    reference: Reference, batch_sizes: Sequence[float] = (), *, pruned: bool = False
) -> Sequence[PointRow]:
    """Return a row for each point or, if ``pruned``, for each one that remains after pruning.

    With ``batch_sizes``, return instead the rows with which the test compares sets of these sizes.
    """
    rows = []
    if batch_sizes:
        for batch_size in batch_sizes:
            comparison = reference.at(batch_size)
            state = _STATES.get(comparison.message, MISSING)
            points = comparison.points
            rows.append(_row(reference, batch_size, state, points, comparison.point))
        return rows
    used = reference.used
    for point in reference.points:
        if point in used:
            rows.append(_row(reference, point.batch_size, USED, (point.name,), point))
        elif not pruned:
            rows.append(_row(reference, point.batch_size, PRUNED, (point.name,), point))
    return rows


def _row(
    reference: Reference,
    batch_size: float,
    state: str,
    names: tuple[str, ...],
    point: ReferencePoint | None,
) -> PointRow:
    """Return the row of the points with these names, with the figures of ``point``, if any."""
    if point is None:
        return PointRow(reference, batch_size, state, names)
    return PointRow(
        reference,
        batch_size,
        state,
        names,
        runs=len(point.to_converge) or None,
        mean=point.mean,
        deviation=point.stdev,
        minimum=point.minimum,
        limits=has_limit(point),
    )


# ---- columns ------------------------------------------------------------------------------


def number(value: float | None) -> str:
    """Return epochs or samples in words: up to four decimals below 1000, else a whole number."""
    if value is None:
        return "-"
    if abs(value) >= _LARGE:
        return f"{value:,.0f}"
    return f"{value:.4f}".rstrip("0").rstrip(".")


def size(value: float) -> str:
    """Return a batch size with all its digits and with commas."""
    return f"{value:,.15g}"


def _limit(row: PointRow) -> str:
    return number(row.minimum) if row.limits else "none"


def _remark(row: PointRow) -> str:
    if row.state == USED:
        return ""
    if row.state == BELOW:
        return "below all"
    if row.state == BETWEEN:
        used = [point for point in row.reference.points if point.name in row.points]
        return " to ".join(size(point.batch_size) for point in used)
    return row.state


def _range(reference: Reference) -> str:
    smallest = reference.points[0].batch_size
    largest = reference.points[-1].batch_size
    return f"{size(smallest)} to {size(largest)}"


def _data_column(name: str) -> Column:
    """Return the column of a field of the row, in data only."""
    return Column(key=name.rpartition(".")[2], of=attrgetter(name))


def _column(name: str, title: str, **attributes: Any) -> Column:
    """Return the column of a field of the row with a title, in data only if it has a key."""
    return Column(title, of=attrgetter(name), **attributes)


_COLUMNS = (
    _data_column("reference.usage"),
    _data_column("reference.round"),
    _data_column("reference.benchmark"),
    _column("batch_size", "Batch size", width=12, numbers=True, key="batch_size", show=size),
    _column("runs", "Runs", width=4, numbers=True, show=lambda runs: str(runs or "")),
    _column("mean", "Mean", width=14, numbers=True, key="mean", show=number),
    _column("deviation", "Deviation", width=13, numbers=True, show=number),
    Column("Limit", 14, numbers=True, of=_limit),
    _data_column("minimum"),
    _data_column("reference.unit"),
    _data_column("runs"),
    _data_column("deviation"),
    _data_column("state"),
    Column(key="points", of=lambda row: " ".join(row.points)),
    Column("", 16, of=_remark),
)
_OVERVIEW = (
    _column("benchmark", "Benchmark", width=24),
    _column("unit", "Unit", width=8),
    _column("runs.required", "N", width=4, numbers=True),
    Column("Points", 6, numbers=True, of=lambda reference: len(reference.points)),
    Column("Used", 4, numbers=True, of=lambda reference: len(reference.used)),
    Column("Batch sizes", 24, of=_range),
)


# ---- text ---------------------------------------------------------------------------------


def text(row_groups: Sequence[Sequence[PointRow]], view: View) -> str:
    """Render for a terminal: the table of one benchmark, or one line per benchmark."""
    terminal = Terminal(view)
    if len(row_groups) > 1:
        _add_overview(terminal, [rows[0].reference for rows in row_groups])
        return terminal.text()
    rows = row_groups[0]
    reference = rows[0].reference
    _add_heading(terminal, reference)
    terminal.table(table_of(_COLUMNS, rows))
    for paragraph in (*_legend(rows), *reference.notes):
        terminal.paragraph((paragraph, PLAIN))
    if view.verbose:
        terminal.line()
        for point in reference.points:
            runs = " ".join(f"{value:.15g}" for value in point.to_converge)
            terminal.paragraph((f"{point.name} ({size(point.batch_size)}): {runs}", PLAIN))
    return terminal.text()


def _add_heading(terminal: Terminal, reference: Reference) -> None:
    """Add the benchmark with its round and its unit, and the source of its points."""
    round_ = f"{reference.usage} {reference.round}"
    title = f"{reference.benchmark}, {round_}: {reference.unit} to converge"
    terminal.paragraph((title, HEADING))
    terminal.line((f"source: {reference.source}", PLAIN))
    terminal.line()


def _legend(rows: Sequence[PointRow]) -> Iterator[str]:
    runs = rows[0].reference.runs
    unit = rows[0].reference.unit
    counted_runs = f"{runs.required - 2 * runs.drop} of {runs.required} runs"
    yield (
        f"limit: the smallest acceptable mean number of {unit} to converge, over {counted_runs}"
        f" (without {extremes(runs.drop)}; t-test, p = 0.05)"
    )
    states = {row.state for row in rows}
    for state, meaning in _LEGEND.items():
        if state in states:
            yield meaning
    if not all(row.limits for row in rows):
        yield "none: no lower limit, as the reference runs differ too much"


def _add_overview(terminal: Terminal, references: Sequence[Reference]) -> None:
    first = references[0]
    terminal.paragraph((f"Reference convergence points of {first.usage} {first.round}", HEADING))
    terminal.line()
    terminal.table(table_of(_OVERVIEW, references))
    for reference in references:
        if not reference.in_round:
            for note in reference.notes:
                terminal.paragraph((note, PLAIN))
    count = counted(len(references), "benchmark")
    terminal.paragraph(
        (f"{count}; 'mlperf-pkg rcp show BENCHMARK' shows the points of a benchmark", PLAIN)
    )


def add_item(terminal: Terminal, mark: str, text: str) -> None:
    """Add an item of a list; its continuation lines are indented by two columns."""
    for line in wrapped(mark, visible(text), len(mark) + 2).split("\n"):
        terminal.line((line, PLAIN))


# ---- data ---------------------------------------------------------------------------------


def csv(row_groups: Sequence[Sequence[PointRow]], _: View) -> str:
    """Render one line per point; means and minima are those of the official viewer."""
    rows = list(chain.from_iterable(row_groups))
    return tables.csv(table_of(_COLUMNS, rows))


def json(row_groups: Sequence[Sequence[PointRow]], _: View) -> str:
    """Render all fields, with the reference runs of each point."""
    references = [_reference_fields(rows) for rows in row_groups]
    return json_text({"format": FORMAT, "references": references})


def _reference_fields(rows: Sequence[PointRow]) -> dict[str, Any]:
    reference = rows[0].reference
    runs_by_name = {point.name: point.to_converge for point in reference.points}
    return {
        "usage": reference.usage,
        "round": reference.round,
        "benchmark": reference.benchmark,
        "unit": reference.unit,
        "runs_required": reference.runs.required,
        "runs_dropped": reference.runs.drop,
        "allowance": reference.allowance,
        "in_round": reference.in_round,
        "covered": reference.covered,
        "source": reference.source,
        "points": [_point_fields(row, runs_by_name) for row in rows],
    }


def _point_fields(row: PointRow, runs_by_name: Mapping[str, tuple[float, ...]]) -> dict[str, Any]:
    runs: tuple[float, ...] = ()
    if len(row.points) == 1:
        runs = runs_by_name.get(row.points[0], ())
    return {
        "batch_size": row.batch_size,
        "state": row.state,
        "points": row.points,
        "mean": row.mean,
        "deviation": row.deviation,
        "minimum": row.minimum,
        "has_limit": row.limits,
        "to_converge": runs,
    }


SHOW_FORMATS = {"text": text, "csv": csv, "json": json}


# ---- chart --------------------------------------------------------------------------------

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.4 system-ui, sans-serif; margin: 1rem auto; max-width: 50rem; }}
img {{ background: white; max-width: 100%; }}
</style>
<h1>{title}</h1>
<img src="data:image/svg+xml;base64,{picture}" alt="{description}">
<p>{description}</p>
</html>
"""


def points_picture(file: Path) -> Callable[[Reference], bytes]:
    """Return a function that draws reference points in the format of ``file``.

    The function raises UserError if the chart cannot be drawn.

    Raises:
        UserError: ``file`` is neither .svg, .png nor .html, or vl-convert-python is not installed.
    """
    from mlperf_pkg.commands.charts.drawing import file_format, picture_of  # noqa: PLC0415 - slow
    from mlperf_pkg.commands.charts.sets import points_chart  # noqa: PLC0415

    format_ = file_format(file, ".svg", ".png", ".html")

    def picture(reference: Reference) -> bytes:
        subject = f"{reference.benchmark}, {reference.usage} {reference.round}"
        chart = points_chart(reference.points, reference.runs.required, reference.unit, subject)
        origin = f"These are runs of the reference, not results. Source: {reference.source}."
        chart = replace(chart, notice=(origin,))
        if format_ != "html":
            return picture_of(chart, format_, file)
        page = _PAGE.format(
            title=escape_html(f"{chart.title}: {chart.subject}"),
            description=escape_html(chart.description),
            picture=base64.b64encode(picture_of(chart, "svg", file)).decode(),
        )
        return page.encode()

    return picture
