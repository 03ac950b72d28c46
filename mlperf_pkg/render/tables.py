"""The results of a report as tables, one row per result set: JSON, CSV, Markdown and HTML."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from mlperf_pkg.infra.text import escape_html, escape_markdown
from mlperf_pkg.render import table as render
from mlperf_pkg.render.table import Column, Table, by_key, records, table_of
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, description_path

FORMAT = "mlperf-pkg/results/1"
_PLAIN: Mapping[str, str] = {}
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
{table}
</div>
{remarks}</html>
"""


def _column(title: str | None, name: str, **more: Any) -> Column:
    """Return the column of a field of the row."""
    return Column(title, key=name, of=attrgetter(name), **more)


def _verdict(title: str, name: str) -> Column:
    of = attrgetter(f"verdict.{name}")
    return Column(title, key=name, of=of, show=wording.VERDICTS.__getitem__)


_SYSTEM = (
    _column("Submitter", "submitter"),
    _column("System", "system"),
    Column("Benchmark", of=wording.benchmark),
    _column(None, "benchmark"),
    _column("Division", "division"),
    _column("Round", "round"),
)
_RUNS = (
    Column("Runs", of=wording.runs, numbers=True),
    _column(None, "runs_found"),
    _column(None, "runs_required"),
)
_RESULT = (
    _column(None, "score_minutes"),
    _column(None, "unscaled_minutes"),
    _column(None, "scaling_factor"),
    _column(None, "official_minutes"),
    Column("RCP margin", of=wording.rcp),
    Column(key="rcp", of=wording.rcp_state),
    Column(key="rcp_margin_percent", of=lambda row: row.rcp and row.rcp.margin_percent),
    Column(key="rcp_message", of=lambda row: row.rcp and row.rcp.message),
    _verdict("Official", "official"),
    _verdict("Rules", "rules"),
    Column(key="note", of=attrgetter("score_note")),
    _column(None, "path"),
    _column(None, "id"),
)


def _table(report: Report, scores: Mapping[str, str]) -> Table:
    """Return the results of a report, by submitter, system, benchmark, division and round.

    Accelerators are those of the system over all nodes. ``scores`` are in words by the id of the
    set; those of other sets are plain numbers.
    """
    by_path = {system.path: system for system in report.systems}
    by_id = by_key((system.id, system) for system in report.systems)

    def accelerators(row: ResultSetRow) -> int | None:
        system = by_path.get(description_path(row))
        if row.system_by:
            named = by_id.get(row.system or "", [])
            if len(named) == 1:
                [system] = named
        return system.accelerators if system else None

    def score(row: ResultSetRow) -> str:
        return scores.get(row.id, wording.minutes(row.score_minutes))

    size = Column("Accelerators", numbers=True, key="accelerators", of=accelerators)
    minutes = Column("Minutes", numbers=True, of=score)
    columns = (*_SYSTEM, size, *_RUNS, minutes, *_RESULT)
    return table_of(columns, sorted(report.result_sets, key=_sort_key))


def results_csv(report: Report) -> str:
    """Return the results as CSV with a header; no cell is a formula to a spreadsheet."""
    return render.csv(_table(report, {}))


def results_json(report: Report) -> str:
    """Return the results as JSON: ``{"format": ..., "results": [...]}``."""
    return render.json_text({"format": FORMAT, "results": records(_table(report, {}))})


def results_markdown(
    report: Report, remarks: Sequence[str] = (), scores: Mapping[str, str] = _PLAIN
) -> str:
    """Return the results as a Markdown table with remarks below; without results, as a sentence.

    ``scores`` are in words by the id of the set, by default plain numbers.
    """
    table = render.markdown(_table(report, scores)) or "No result set."
    if not remarks:
        return f"{table}\n"
    below = "".join(f"- {escape_markdown(remark)}\n" for remark in remarks)
    return f"{table}\n\n{below}"


def results_html(
    report: Report, remarks: Sequence[str] = (), scores: Mapping[str, str] = _PLAIN
) -> str:
    """Return the results as an HTML page with one table, which loads and executes nothing.

    ``scores`` is as for ``results_markdown``.
    """
    items = "".join(f"<li>{escape_html(remark)}</li>\n" for remark in remarks)
    title = f"MLPerf\u00ae {report.usage} {report.round or ''}: results".replace("  ", " ")
    return _PAGE.format(
        policy="default-src 'none'; style-src 'unsafe-inline'",
        title=escape_html(title),
        table=render.html(_table(report, scores)),
        remarks=f"<ul>\n{items}</ul>\n" if remarks else "",
    )


def _sort_key(row: ResultSetRow) -> tuple[str, ...]:
    names = (row.submitter, row.system, row.benchmark, row.division, row.round, row.path, row.id)
    return tuple(name or "" for name in names)
