"""Show a plan and the built tree as text."""

from __future__ import annotations

from collections.abc import Iterator

from mlperf_pkg.commands.builder.contents import remarks_on
from mlperf_pkg.commands.builder.judge import JudgedSet, report
from mlperf_pkg.commands.builder.prepare import Prepared
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.tables import results_markdown
from mlperf_pkg.render.text import warnings_text
from mlperf_pkg.results import wording as words


def plan_text(prepared: Prepared, *, logs: bool = False) -> str:
    """Return the submission with its result sets; ``logs`` adds the source of every log."""
    round_ = prepared.workspace.round
    who = prepared.plan.submitter or "no submitter"
    lines = [f"{round_.usage} {round_.name}, {who} ({prepared.workspace.round_reason})"]
    width = max((len(judged.planned.name) for judged in prepared.judged), default=0)
    for judged in prepared.judged:
        lines.append(f"  {judged.planned.name:<{width}}  {_set_line(judged)}")
        if logs:
            lines += _log_lines(judged)
    return _printable(lines)


def _set_line(judged: JudgedSet) -> str:
    row = judged.result.row
    score = f"{words.minutes(row.score_minutes):>10} minutes"
    result = f"{row.division:<6}  {words.runs(row):>5} runs  {score}"
    return ", ".join([result, *_state(judged), f"system found by {row.system_by}"])


def _state(judged: JudgedSet) -> Iterator[str]:
    verdict = judged.result.row.verdict
    if judged.failures:
        yield "NOT VALID"
    elif Verdict.NOT_CHECKED in (verdict.official, verdict.rules):
        yield "not checked: the rulebook or the official checker does not cover it"


def _log_lines(judged: JudgedSet) -> Iterator[str]:
    for run, target in zip(judged.planned.runs, judged.planned.targets, strict=True):
        yield f"    {target} <- {run.path}"


def built_text(prepared: Prepared) -> str:
    """Return the paths of the tree and its tables, the results and the warnings."""
    plan, target = prepared.plan, prepared.target
    counts = (
        words.counted(len(plan.systems), "system"),
        words.counted(len(plan.sets), "result set"),
        words.counted(sum(len(planned.runs) for planned in plan.sets), "log"),
    )
    lines = [
        f"built {target}: {', '.join(counts)}",
        f"tables {target}/results.html, .md, .csv, .json",
        "",
    ]
    results = report(prepared.judged, prepared.workspace)
    tables = results_markdown(results, remarks_on(prepared.judged, prepared.workspace))
    warnings = warnings_text(results, View())
    return f"{_printable(lines)}{tables}\n{warnings}{findings.counts_in_words(results)}\n"


def _printable(lines: list[str]) -> str:
    return "".join(f"{visible(line)}\n" for line in lines)
