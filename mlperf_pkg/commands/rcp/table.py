"""The reference points of benchmarks as text, CSV, JSON and charts."""

import base64
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.rcp.reference import Reference
from mlperf_pkg.infra.text import escape_html, visible
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.rules import wrapped
from mlperf_pkg.render.table import HEADING, PLAIN, Column, json_text, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import FOUND, INTERPOLATED, SMALLER, ReferencePoint, has_limit
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
    PRUNED: "pruned: not used by the test, as neighbouring points converge as fast",
    BELOW: "below all: compared with the smallest point",
    MISSING: "missing: larger than all points; new reference runs are required",
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
    places: list[tuple[float, str, tuple[str, ...], ReferencePoint | None]]
    if batch_sizes:
        compared = ((batch_size, reference.at(batch_size)) for batch_size in batch_sizes)
        places = [(n, _STATES.get(c.message, MISSING), c.points, c.point) for n, c in compared]
    else:
        used = reference.used
        of_points = ((USED if p in used else PRUNED, p) for p in reference.points)
        places = [(p.batch_size, state, (p.name,), p) for state, p in of_points]
        places = [place for place in places if not (pruned and place[1] == PRUNED)]
    return [PointRow(reference, *place[:3], *_figures(place[3])) for place in places]


def _figures(point: ReferencePoint | None) -> tuple[Any, ...]:
    """Return the values of a row from its runs on."""
    if point is None:
        return ()
    return len(point.to_converge) or None, point.mean, point.stdev, point.minimum, has_limit(point)


# ---- text ---------------------------------------------------------------------------------


def number(value: float | None) -> str:
    """Return epochs or samples in words: up to four decimals below 1000, else a whole number."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.4f}".rstrip("0").rstrip(".")


def size(value: float) -> str:
    """Return a batch size with all its digits and with commas."""
    return f"{value:,.15g}"


def _remark(row: PointRow) -> str:
    sizes = [size(p.batch_size) for p in row.reference.points if p.name in row.points]
    remarks = {USED: "", BETWEEN: " to ".join(sizes), BELOW: "below all"}
    return remarks.get(row.state, row.state)


def _column(name: str, title: str | None = None, **more: Any) -> Column:
    """Return the column of a field of the row, in data if it has no title."""
    key = None if title else name.rpartition(".")[2]
    return Column(title, **{"key": key, "of": attrgetter(name), **more})


_COLUMNS = (
    *map(_column, ("reference.usage", "reference.round", "reference.benchmark")),
    _column("batch_size", "Batch size", width=12, numbers=True, key="batch_size", show=size),
    _column("runs", "Runs", width=4, numbers=True, show=lambda n: "" if n is None else f"{n}"),
    _column("mean", "Mean", width=14, numbers=True, key="mean", show=number),
    _column("deviation", "Deviation", width=13, numbers=True, show=number),
    Column("Limit", 14, numbers=True, of=lambda r: number(r.minimum) if r.limits else "none"),
    *map(_column, ("minimum", "reference.unit", "runs", "deviation", "state")),
    Column(key="points", of=lambda row: " ".join(row.points)),
    Column("", 16, of=_remark),
)
_OVERVIEW = (
    _column("benchmark", "Benchmark", width=24),
    _column("unit", "Unit", width=8),
    _column("runs.required", "N", width=4, numbers=True),
    Column("Points", 6, numbers=True, of=lambda item: len(item.points)),
    Column("Used", 4, numbers=True, of=lambda item: len(item.used)),
    Column(
        "Batch sizes",
        24,
        of=lambda r: f"{size(r.points[0].batch_size)} to {size(r.points[-1].batch_size)}",
    ),
)


def text(items: Sequence[Sequence[PointRow]], view: View) -> str:
    """Render for a terminal: the table of one benchmark, or one line per benchmark."""
    terminal = Terminal(view)
    if len(items) > 1:
        _add_overview(terminal, [rows[0].reference for rows in items])
        return terminal.text()
    reference = items[0][0].reference
    _add_heading(terminal, reference)
    terminal.table(table_of(_COLUMNS, items[0]))
    for paragraph in (*_legend(items[0]), *reference.notes):
        terminal.paragraph((paragraph, PLAIN))
    if view.verbose:  # the reference runs of all points
        terminal.line()
        for point in reference.points:
            values = " ".join(f"{value:.15g}" for value in point.to_converge)
            terminal.paragraph((f"{point.name} ({size(point.batch_size)}): {values}", PLAIN))
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
    dropped = "fastest and the slowest" if runs.drop == 1 else f"{runs.drop} fastest and slowest"
    yield (
        f"limit: the smallest acceptable mean of {runs.required} runs without the {dropped}"
        " (t-test, p = 0.05)"
    )
    states = {row.state for row in rows}
    yield from (words for state, words in _LEGEND.items() if state in states)
    if not all(row.limits for row in rows):
        yield "none: no lower limit, as the reference runs differ too much"


def _add_overview(terminal: Terminal, references: Sequence[Reference]) -> None:
    first = references[0]
    terminal.paragraph((f"Reference convergence points of {first.usage} {first.round}", HEADING))
    terminal.line()
    terminal.table(table_of(_OVERVIEW, references))
    for reference in references:
        for note in () if reference.in_round else reference.notes:
            terminal.paragraph((note, PLAIN))
    count = counted(len(references), "benchmark")
    terminal.paragraph((f"{count}; 'mlperf-pkg rcp show BENCHMARK' shows the points of one", PLAIN))


def add_item(terminal: Terminal, mark: str, text: str) -> None:
    """Add an item of a list; its continuation lines are indented by two columns."""
    for line in wrapped(mark, visible(text), len(mark) + 2).split("\n"):
        terminal.line((line, PLAIN))


# ---- data ---------------------------------------------------------------------------------

_POINT_FIELDS = ("batch_size", "state", "points", "mean", "deviation", "minimum")


def csv(items: Sequence[Sequence[PointRow]], _: View) -> str:
    """Render one line per point; means and minima are those of the official viewer."""
    return tables.csv(table_of(_COLUMNS, list(chain.from_iterable(items))))


def json(items: Sequence[Sequence[PointRow]], _: View) -> str:
    """Render all fields, with the reference runs of each point."""
    return json_text({"format": FORMAT, "references": list(map(_fields, items))})


def _fields(rows: Sequence[PointRow]) -> dict[str, Any]:
    reference = rows[0].reference
    runs: dict[tuple[str, ...], tuple[float, ...]]
    runs = {(point.name,): point.to_converge for point in reference.points}
    points = [
        {name: getattr(row, name) for name in _POINT_FIELDS}
        | {"has_limit": row.limits, "to_converge": runs.get(row.points, ())}
        for row in rows
    ]
    return {**_about(reference), "points": points}


def _about(reference: Reference) -> dict[str, Any]:
    """Return the fields of a benchmark in a round for JSON."""
    runs = {"runs_required": reference.runs.required, "runs_dropped": reference.runs.drop}
    first = ("usage", "round", "benchmark", "unit")
    last = ("in_round", "covered", "source")
    names = (*first, *runs, "allowance", *last)
    return {name: runs[name] if name in runs else getattr(reference, name) for name in names}


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
        result = picture_of(chart, "svg" if format_ == "html" else format_, file)
        values = {
            "title": escape_html(f"{chart.title}: {chart.subject}"),
            "description": escape_html(chart.description),
            "picture": base64.b64encode(result).decode(),
        }
        return _PAGE.format(**values).encode() if format_ == "html" else result

    return picture
