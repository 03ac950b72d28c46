"""A plan and its outcome in words."""

from __future__ import annotations

from collections.abc import Iterator

from mlperf_pkg.commands.builder.contents import remarks
from mlperf_pkg.commands.builder.judge import JudgedSet, report
from mlperf_pkg.commands.builder.prepare import Prepared
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.tables import results_markdown
from mlperf_pkg.results import wording as words


def plan_text(prepared: Prepared, *, logs: bool = False) -> str:
    """The submission and each of its result sets; ``logs`` adds which log goes where."""
    round_ = prepared.workspace.round
    who = prepared.plan.submitter or "nobody named"
    lines = [f"{round_.usage} {round_.name}, {who} ({prepared.workspace.round_reason})"]
    width = max((len(each.planned.name) for each in prepared.judged), default=0)
    for each in prepared.judged:
        lines.append(f"  {each.planned.name:<{width}}  {_set_line(each)}")
        if logs:
            lines += _log_lines(each)
    return _printable(lines)


def _set_line(each: JudgedSet) -> str:
    row = each.result.row
    score = f"{words.minutes(row.score_minutes):>10} minutes"
    told = [f"{row.division:<6}  {words.runs(row):>5} runs  {score}"]
    return ", ".join([*told, *_state(each), f"by {each.planned.why}"])


def _state(each: JudgedSet) -> Iterator[str]:
    verdict = each.result.row.verdict
    if each.failures:
        yield "NOT VALID"
    elif Verdict.NOT_CHECKED in (verdict.official, verdict.rules):
        yield "not checked: the rulebook does not cover it"


def _log_lines(each: JudgedSet) -> Iterator[str]:
    for run, target in zip(each.planned.runs, each.planned.targets, strict=True):
        yield f"    {target} <- {run.path}"


def built_text(prepared: Prepared) -> str:
    """Where the tree and its tables lie, and the results."""
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
    return _printable(lines) + results_markdown(
        report(prepared.judged, prepared.workspace), remarks(prepared.judged, prepared.workspace)
    )


def _printable(lines: list[str]) -> str:
    return "".join(f"{visible(line)}\n" for line in lines)
