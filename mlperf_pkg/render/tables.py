"""The results of a report as tables, one row per result set: JSON, CSV, Markdown and HTML."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from mlperf_pkg.infra.text import escape_cell, escape_html, escape_markdown
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import (
    MAX_DEPTH,
    Report,
    ResultSetRow,
    SystemRow,
    as_json,
    description_path,
    encodable,
)

FORMAT = "mlperf-pkg/results/1"
_TOO_DEEP = "\n" + 2 * MAX_DEPTH * " "
# Patterns of numbers that msgspec may write differently from Python: 1e16 and 0.00001, for which
# Python writes 1e+16 and 1e-05.
_EXPONENT, _SMALL = r"e[-1-9]\d*[],}](?! )", r"0\.0000(?<=[:,[-]0\.0000)"

_TITLES = {  # column: whether it holds numbers
    "Submitter": False,
    "System": False,
    "Benchmark": False,
    "Division": False,
    "Round": False,
    "Accelerators": True,
    "Runs": True,
    "Minutes": True,
    "RCP margin": False,
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
    """A result set, and the accelerators of its system over all nodes."""

    row: ResultSetRow
    accelerators: int | None


def _of_row(*names: str) -> dict[str, Callable[[Result], Any]]:
    return {name: attrgetter(f"row.{name}") for name in names}


# ``rcp`` is that of ``wording.rcp_state``.
_FIELDS: Mapping[str, Callable[[Result], Any]] = {
    **_of_row("submitter", "system", "benchmark", "division", "round"),
    "accelerators": attrgetter("accelerators"),
    **_of_row("runs_found", "runs_required", "score_minutes", "unscaled_minutes"),
    **_of_row("scaling_factor", "official_minutes"),
    "rcp": lambda result: wording.rcp_state(result.row),
    "rcp_margin_percent": lambda result: result.row.rcp and result.row.rcp.margin_percent,
    "rcp_message": lambda result: result.row.rcp.message if result.row.rcp else None,
    "official": attrgetter("row.verdict.official"),
    "rules": attrgetter("row.verdict.rules"),
    "note": attrgetter("row.score_note"),
    **_of_row("path", "id"),
}


def results(report: Report) -> tuple[Result, ...]:
    """Return the results of a report, by submitter, system, benchmark, division and round."""
    by_path = {system.path: system for system in report.systems}
    by_id: dict[str, list[SystemRow]] = {}
    for system in report.systems:
        by_id.setdefault(system.id, []).append(system)

    def accelerators(row: ResultSetRow) -> int | None:
        named = by_id.get(row.system or "", []) if row.system_by else []
        system = named[0] if len(named) == 1 else by_path.get(description_path(row))
        return system.accelerators if system else None

    rows = sorted(report.result_sets, key=_sort_key)
    return tuple(Result(row, accelerators(row)) for row in rows)


def results_csv(report: Report) -> str:
    """Return the results as CSV with a header; no cell is a formula to a spreadsheet."""
    return csv_text(tuple(_FIELDS), (tuple(_fields(r).values()) for r in results(report)))


def results_json(report: Report) -> str:
    """Return the results as JSON: ``{"format": ..., "results": [...]}``."""
    return json_text({"format": FORMAT, "results": [_fields(r) for r in results(report)]})


def _fields(result: Result) -> dict[str, Any]:
    """Return the fields of a result by name."""
    return {name: field(result) for name, field in _FIELDS.items()}


def results_markdown(report: Report, remarks: Sequence[str] = ()) -> str:
    """Return the results as a Markdown table with remarks below; without results, as a sentence."""
    rows = [_row_texts(result) for result in results(report)]
    table = markdown_table(_TITLES, rows) if rows else "No result set.\n"
    below = "".join(f"- {escape_markdown(remark)}\n" for remark in remarks)
    return f"{table}\n{below}" if below else table


def results_html(report: Report, remarks: Sequence[str] = ()) -> str:
    """Return the results as an HTML page with one table, which loads and executes nothing."""
    rows = "".join(
        f"<tr>{_html_cells('td', _row_texts(result))}</tr>\n" for result in results(report)
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
    """Return CSV with ``\\n`` line ends; None is empty, and no text is a formula."""
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
    """Return JSON of structs and plain values, in ASCII to survive any terminal or pipe."""
    try:
        text = _indented(encodable(value))
        if _TOO_DEEP not in text:
            return text
    except (ValueError, msgspec.DecodeError, RecursionError):
        pass  # NaN, halves of surrogate pairs, or nested too deeply
    return _indented(as_json(value))


def _indented(value: Any) -> str:
    """Return the text of ``json.dumps`` with ``indent=2``, many times faster."""
    text = msgspec.json.encode(value).decode()
    may_differ = re.search(_EXPONENT, text) or ("0.0000" in text and re.search(_SMALL, text))
    if may_differ or "\x7f" in text or not text.isascii():
        text = json.dumps(msgspec.to_builtins(value), allow_nan=False, check_circular=False)
    return msgspec.json.format(text, indent=2) + "\n"


def markdown_table(titles: dict[str, bool], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; ``titles`` maps each column to whether it holds numbers."""
    rules = ("---:" if numbers else "---" for numbers in titles.values())
    escaped = ([escape_markdown(text) for text in row] for row in rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in (titles, rules, *escaped))


def _sort_key(row: ResultSetRow) -> tuple[str, ...]:
    names = (row.submitter, row.system, row.benchmark, row.division, row.round, row.path, row.id)
    return tuple(name or "" for name in names)


def _row_texts(result: Result) -> list[str]:
    row, accelerators = result.row, result.accelerators
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
