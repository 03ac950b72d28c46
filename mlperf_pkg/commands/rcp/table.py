"""The reference points of benchmarks as text, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.rcp.reference import Reference
from mlperf_pkg.render import tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Span, Table, csv_text
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import FOUND, INTERPOLATED, SMALLER, ReferencePoint
from mlperf_pkg.results.rcp_margin import has_limit
from mlperf_pkg.results.wording import counted

FORMAT = "mlperf-pkg/rcp/1"
_LARGE = 1000  # samples or epochs, from which on fractions are not shown

USED, PRUNED, BETWEEN, BELOW, MISSING = "used", "pruned", "interpolated", "smaller", "missing"
_STATES = {FOUND: USED, INTERPOLATED: BETWEEN, SMALLER: BELOW}
_LEGEND = {
    PRUNED: "pruned: not used by the test, as neighbouring points converge as fast",
    BELOW: "below all: compared with the smallest point",
    MISSING: "missing: larger than all points; new reference runs are required",
}

_FIELDS = (
    *("usage", "round", "benchmark", "batch_size", "mean", "minimum", "unit", "runs", "deviation"),
    *("state", "points"),
)


class PointRow(Struct, frozen=True):
    """A line of a table: the reference at a batch size, measured or interpolated.

    ``state`` is ``used``, ``pruned``, ``interpolated``, ``smaller`` (compared with the smallest
    point) or ``missing``. ``runs`` are the reference runs, ``points`` the names of those used.
    """

    batch_size: float
    state: str
    points: tuple[str, ...]
    runs: int | None = None
    mean: float | None = None
    deviation: float | None = None
    minimum: float | None = None
    limits: bool = True


class Shown(Struct, frozen=True):
    """A reference with the rows to show."""

    reference: Reference
    rows: tuple[PointRow, ...]


def shown(
    reference: Reference, batch_sizes: Sequence[float] = (), *, pruned: bool = False
) -> Shown:
    """Return a row for each point or, if ``pruned``, for each one that remains after pruning.

    With ``batch_sizes``, return instead the rows with which the test compares sets of these sizes.
    """
    if batch_sizes:
        return Shown(reference, tuple(_at(reference, size) for size in batch_sizes))
    used = reference.used
    rows = (_row(point, USED if point in used else PRUNED) for point in reference.points)
    return Shown(reference, tuple(row for row in rows if row.state == USED or not pruned))


def _at(reference: Reference, batch_size: float) -> PointRow:
    comparison = reference.at(batch_size)
    if comparison.point is None:
        return PointRow(batch_size, MISSING, ())
    return _row(comparison.point, _STATES[comparison.message], batch_size, comparison.points)


def _row(
    point: ReferencePoint,
    state: str,
    batch_size: float | None = None,
    points: tuple[str, ...] = (),
) -> PointRow:
    return PointRow(
        batch_size=point.batch_size if batch_size is None else batch_size,
        state=state,
        points=points or (point.name,),
        runs=len(point.to_converge) or None,
        mean=point.mean,
        deviation=point.stdev,
        minimum=point.minimum,
        limits=has_limit(point),
    )


# ---- text ---------------------------------------------------------------------------------

_COLUMNS = (
    Column("Batch size", 12, numbers=True),
    Column("Runs", 4, numbers=True),
    Column("Mean", 14, numbers=True),
    Column("Deviation", 13, numbers=True),
    Column("Limit", 14, numbers=True),
    Column("", 16),
)


def text(items: Sequence[Shown], view: View) -> str:
    """Render for a terminal: the table of one benchmark, or one line per benchmark."""
    terminal = Terminal(view)
    if len(items) > 1:
        _add_overview(terminal, [item.reference for item in items])
    for item in items if len(items) == 1 else ():
        _add(terminal, item)
        if view.verbose:
            _add_runs(terminal, item.reference)
    return terminal.text()


def _add(terminal: Terminal, item: Shown) -> None:
    reference = item.reference
    terminal.paragraph((heading(reference), HEADING))
    terminal.line((f"source: {reference.source}", PLAIN))
    terminal.line()
    terminal.table(Table(_COLUMNS, [Group("", [_cells(row, reference) for row in item.rows])]))
    for paragraph in (*_legend(item), *reference.notes):
        terminal.paragraph((paragraph, PLAIN))


def _add_runs(terminal: Terminal, reference: Reference) -> None:
    """Add the reference runs of all points."""
    terminal.line()
    for point in reference.points:
        values = " ".join(f"{value:.15g}" for value in point.to_converge)
        terminal.paragraph((f"{point.name} ({point.batch_size:.15g}): {values}", PLAIN))


def _legend(item: Shown) -> Iterator[str]:
    runs = item.reference.runs
    dropped = "fastest and the slowest" if runs.drop == 1 else f"{runs.drop} fastest and slowest"
    yield (
        f"limit: the smallest acceptable mean of {runs.required} runs without the {dropped}"
        " (t-test, p = 0.05)"
    )
    states = {row.state for row in item.rows}
    yield from (words for state, words in _LEGEND.items() if state in states)
    if not all(row.limits for row in item.rows):
        yield "none: no lower limit, as the reference runs differ too much"


def heading(reference: Reference) -> str:
    """Return the benchmark, its round and its unit in words."""
    return (
        f"{reference.benchmark}, {reference.usage} {reference.round}: {reference.unit} to converge"
    )


def _cells(row: PointRow, reference: Reference) -> list[Span]:
    cells = [
        f"{row.batch_size:.15g}",
        "" if row.runs is None else f"{row.runs}",
        number(row.mean),
        number(row.deviation),
        number(row.minimum) if row.limits else "none",
        _remark(row, reference),
    ]
    return [(cell, PLAIN) for cell in cells]


def _remark(row: PointRow, reference: Reference) -> str:
    sizes = [f"{p.batch_size:.15g}" for p in reference.points if p.name in row.points]
    remarks = {USED: "", BETWEEN: f"{' to '.join(sizes)}", BELOW: "below all"}
    return remarks.get(row.state, row.state)


def number(value: float | None) -> str:
    """Return epochs or samples in words: up to four decimals below 1000, else a whole number."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.4f}".rstrip("0").rstrip(".")


_OVERVIEW = (
    Column("Benchmark", 24),
    Column("Unit", 8),
    Column("N", 4, numbers=True),
    Column("Points", 6, numbers=True),
    Column("Used", 4, numbers=True),
    Column("Batch sizes", 24),
)


def _add_overview(terminal: Terminal, references: Sequence[Reference]) -> None:
    first = references[0]
    terminal.paragraph((f"Reference convergence points of {first.usage} {first.round}", HEADING))
    terminal.line()
    rows = [[(cell, PLAIN) for cell in _line(reference)] for reference in references]
    notes = [note for reference in references if not reference.in_round for note in reference.notes]
    terminal.table(Table(_OVERVIEW, [Group("", rows)]))
    for note in notes:
        terminal.paragraph((note, PLAIN))
    count = counted(len(references), "benchmark")
    terminal.paragraph((f"{count}; 'mlperf-pkg rcp show BENCHMARK' shows the points of one", PLAIN))


def _line(reference: Reference) -> Iterator[str]:
    sizes = [point.batch_size for point in reference.points]
    yield reference.benchmark
    yield reference.unit
    yield f"{reference.runs.required}"
    yield f"{len(sizes)}"
    yield f"{len(reference.used)}"
    yield f"{min(sizes):.15g} to {max(sizes):.15g}"


# ---- data ---------------------------------------------------------------------------------


def csv(items: Sequence[Shown], _: View) -> str:
    """Render one line per point; means and minima are those of the official viewer."""
    rows = (_csv_row(item.reference, row) for item in items for row in item.rows)
    return csv_text(_FIELDS, rows)


def _csv_row(reference: Reference, row: PointRow) -> list[Any]:
    of_point = (row.batch_size, row.mean, row.minimum, reference.unit, row.runs, row.deviation)
    names = (reference.usage, reference.round, reference.benchmark)
    return [*names, *of_point, row.state, " ".join(row.points)]


def json(items: Sequence[Shown], _: View) -> str:
    """Render all fields, with the reference runs of each point."""
    return tables.json_text({"format": FORMAT, "references": list(map(_fields, items))})


def _fields(item: Shown) -> dict[str, Any]:
    reference = item.reference
    runs_by_point = {point.name: list(point.to_converge) for point in reference.points}
    return {
        **about(reference),
        "points": [
            {
                "batch_size": row.batch_size,
                "state": row.state,
                "points": list(row.points),
                "mean": row.mean,
                "deviation": row.deviation,
                "minimum": row.minimum,
                "has_limit": row.limits,
                "to_converge": runs_by_point[row.points[0]] if len(row.points) == 1 else [],
            }
            for row in item.rows
        ],
    }


def about(reference: Reference) -> dict[str, Any]:
    """Return the fields of a benchmark in a round for JSON."""
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
    }


SHOW_FORMATS: Mapping[str, Callable[[Sequence[Shown], View], str]] = {
    "text": text,
    "csv": csv,
    "json": json,
}
