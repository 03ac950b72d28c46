"""Typed rows of results, one per result set, and the tables made of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import escape_cell, escape_html, escape_markdown
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import (
    MAX_DEPTH,
    Report,
    ResultSetRow,
    as_json,
    description_path,
    plain,
)

FORMAT = "mlperf-pkg/results/1"
_TOO_DEEP = "\n" + 2 * MAX_DEPTH * " "

_TITLES = {  # column: whether it holds numbers
    "Submitter": False,
    "System": False,
    "Benchmark": False,
    "Division": False,
    "Round": False,
    "Accelerators": True,
    "Runs": True,
    "Minutes": True,
    "RCP": False,
    "Official": False,
    "Rules": False,
}


_HTML_NUMBER = ' class="n"'
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.4 system-ui, sans-serif; }}
body {{ margin: 1rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
th, td {{ border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: left; }}
.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
</style>
<h1>{title}</h1>
<div class="wide" tabindex="0" role="region" aria-label="Results">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}</tbody>
</table>
</div>
{remarks}</html>
"""


class Result(Struct, frozen=True):
    """The result of one benchmark on one system, as ``ResultSetRow`` means its fields.

    ``accelerators`` is the total over all nodes. ``rcp`` is ``pass``, ``fail``, ``bypassed``,
    ``not_checked`` or None where no test is required; ``rcp_margin_percent`` tells by how much the
    mean to converge exceeds the smallest acceptable one. ``note`` is the score's.
    """

    submitter: str | None
    system: str | None
    benchmark: str
    division: str | None
    round: str
    accelerators: int | None
    runs_found: int
    runs_required: int | None
    score_minutes: float | None
    unscaled_minutes: float | None
    scaling_factor: float
    official_minutes: float | None
    rcp: str | None
    rcp_margin_percent: float | None
    rcp_message: str | None
    official: Verdict
    rules: Verdict
    note: str
    path: str


def results(report: Report) -> tuple[Result, ...]:
    """The results of a report, by submitter, system, benchmark, division and round."""
    return tuple(_result(row, accelerators) for row, accelerators in _sorted_sets(report))


def results_csv(report: Report) -> str:
    """The results as CSV with a header; no text of it is a formula to a spreadsheet."""
    names = [field.name for field in fields(Result)]
    return csv_text(names, ([getattr(each, n) for n in names] for each in results(report)))


def results_json(report: Report) -> str:
    """The results as JSON: ``{"format": ..., "results": [...]}``."""
    return json_text({"format": FORMAT, "results": results(report)})


def results_markdown(report: Report, remarks: Sequence[str] = ()) -> str:
    """The results as one Markdown table, remarks below; a line in words where there are none."""
    rows = [_row_texts(row, accelerators) for row, accelerators in _sorted_sets(report)]
    table = markdown_table(_TITLES, rows) if rows else "No result set.\n"
    below = "".join(f"- {escape_markdown(remark)}\n" for remark in remarks)
    return f"{table}\n{below}" if below else table


def results_html(report: Report, remarks: Sequence[str] = ()) -> str:
    """The results as a page with one table; nothing on it is loaded or executed."""
    rows = "".join(
        f"<tr>{_html_cells('td', _row_texts(row, accelerators))}</tr>\n"
        for row, accelerators in _sorted_sets(report)
    )
    below = "".join(f"<li>{escape_html(remark)}</li>\n" for remark in remarks)
    return _PAGE.format(
        policy="default-src 'none'; style-src 'unsafe-inline'",
        title=escape_html(
            f"MLPerf {report.usage} {report.round or ''}: results".replace("  ", " ")
        ),
        head=_html_cells('th scope="col"', list(_TITLES)),
        rows=rows,
        remarks=f"<ul>\n{below}</ul>\n" if below else "",
    )


def _html_cells(tag: str, texts: Sequence[str]) -> str:
    cells = zip(texts, _TITLES.values(), strict=True)
    return "".join(
        f"<{tag}{_HTML_NUMBER * numbers}>{escape_html(text)}</{tag[:2]}>" for text, numbers in cells
    )


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV with ``\\n`` line ends: absent values are empty, texts are cells that cannot act."""
    import csv  # noqa: PLC0415 - slow to import

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_csv_cell(value) for value in row] for row in rows)
    return stream.getvalue()


def _csv_cell(value: Any) -> Any:
    plain = as_json(value)
    return escape_cell(plain) if isinstance(plain, str) else plain


def json_text(value: Any) -> str:
    """JSON of structs and plain values; ASCII, so that it survives any terminal or pipe."""
    try:
        text = _indented(plain(value))
        if _TOO_DEEP not in text:
            return text
    except (ValueError, msgspec.DecodeError, RecursionError):
        pass  # numbers without a value, halves of surrogate pairs, or deeper yet
    return _indented(as_json(value))


def _indented(value: Any) -> str:
    """As ``json.dumps`` with ``indent=2``, whose indenting is many times slower."""
    return msgspec.json.format(json.dumps(value, allow_nan=False), indent=2) + "\n"


def markdown_table(titles: dict[str, bool], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; ``titles`` says of each column whether it holds numbers."""
    rules = ("---:" if numbers else "---" for numbers in titles.values())
    shown = ([escape_markdown(text) for text in row] for row in rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in (titles, rules, *shown))


def _sorted_sets(report: Report) -> list[tuple[ResultSetRow, int | None]]:
    """Every result set with its accelerators."""
    counts = {system.path: system.accelerators for system in report.systems}
    rows = ((row, counts.get(description_path(row))) for row in report.result_sets)
    return sorted(rows, key=lambda pair: _sort_key(pair[0]))


def _sort_key(row: ResultSetRow) -> tuple[str, ...]:
    named = (row.submitter, row.system, row.benchmark, row.division, row.round, row.path)
    return tuple(each or "" for each in named)


def _result(row: ResultSetRow, accelerators: int | None) -> Result:
    return Result(
        submitter=row.submitter,
        system=row.system,
        benchmark=row.benchmark,
        division=row.division,
        round=row.round,
        accelerators=accelerators,
        runs_found=row.runs_found,
        runs_required=row.runs_required,
        score_minutes=row.score_minutes,
        unscaled_minutes=row.unscaled_minutes,
        scaling_factor=row.scaling_factor,
        official_minutes=row.official_minutes,
        rcp=wording.rcp_state(row),
        rcp_margin_percent=wording.rcp_margin_percent(row.rcp),
        rcp_message=row.rcp.message if row.rcp else None,
        official=row.verdict.official,
        rules=row.verdict.rules,
        note=row.score_note,
        path=row.path,
    )


def _row_texts(row: ResultSetRow, accelerators: int | None) -> list[str]:
    return [
        row.submitter or wording.NOTHING,
        row.system or wording.NOTHING,
        row.benchmark,
        row.division or wording.NOTHING,
        row.round,
        wording.NOTHING if accelerators is None else str(accelerators),
        wording.runs(row),
        wording.minutes(row.score_minutes),
        wording.rcp(row),
        wording.VERDICTS[row.verdict.official],
        wording.VERDICTS[row.verdict.rules],
    ]
