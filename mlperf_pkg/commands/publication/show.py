"""The text that ``results`` prints: about 30 lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten, wrap

from mlperf_pkg.commands.publication.files import OFFICIAL, Written
from mlperf_pkg.commands.publication.tables import Kind, Table
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, Column, Group
from mlperf_pkg.render.table import Table as TextTable
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.wording import counted

_WIDTH = 80
_SHOWN_MISSING, _SHOWN_NOTES = 5, 2  # of two lines at most
_COLUMNS = (
    Column("Table", whole=True),
    Column("Systems", 7, numbers=True),
    Column("Scores", 6, numbers=True),
)


def summary(written: Written, folder: Path, view: View) -> str:
    """Return the tables and files that were written, and the missing parts."""
    result = written.publication
    terminal = Terminal(view)
    numbers = (
        counted(len(result.submitters), "submitter"),
        counted(len({score.row for score in result.scores}), "system"),
        counted(len(result.scores), "result set"),
        f"{len(result.scores) - len(result.without_score)} with a score",
    )
    terminal.paragraph((f"{result.title}: {', '.join(numbers)}", PLAIN))
    terminal.line()
    if written.tables:
        terminal.table(
            TextTable(_COLUMNS, [Group("", [_cells(table) for table in written.tables])])
        )
    for line in (*_written(written, folder), *_remarks(written, folder)):
        terminal.line((line, PLAIN))
    return terminal.text()


def _cells(table: Table) -> list[tuple[str, str]]:
    values = [cell for cells in table.scores.values() for cell in cells if cell is not None]
    number = len(values) // (3 if table.kind is Kind.WEAK else 1)
    return [(text, PLAIN) for text in (table.title, str(len(table.rows)), str(number))]


def _written(written: Written, folder: Path) -> Iterator[str]:
    yield from _folded(f"In {folder}: {', '.join(written.files)}")
    more = [f"{written.new} new"] if written.new else []
    more += [f"{written.withdrawn} of withdrawn systems"] if written.withdrawn else []
    in_brackets = f" ({', '.join(more)})" if more else ""
    rows = counted(len(written.publication.rows), "system")
    yield from _folded(f"Private ids of {rows} in {written.ids}{in_brackets}")


def _remarks(written: Written, folder: Path) -> Iterator[str]:
    result = written.publication
    file = folder / "results.json"
    notes = list(result.notes)
    if gaps := len(result.official_gaps):
        notes.append(f"{OFFICIAL}: {counted(gaps, 'gap')} in the official tables: see {file}")
    yield from _listed("Missing", result.missing, _SHOWN_MISSING, file)
    yield from _listed("Notes", notes, _SHOWN_NOTES, file)


def _listed(title: str, remarks: Sequence[str], limit: int, file: Path) -> Iterator[str]:
    if remarks:
        yield from ("", f"{title} ({len(remarks)}):")
    for remark in remarks[:limit]:
        yield from _folded(f"  {shorten(visible(remark), 2 * _WIDTH - 8, placeholder='...')}")
    if len(remarks) > limit:
        yield from _folded(f"  and {len(remarks) - limit} more: see {file}")


def _folded(text: str) -> list[str]:
    return wrap(visible(text), _WIDTH, subsequent_indent="    ", break_on_hyphens=False)
