"""The scores of several result sets as one table, a line per set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlperf_pkg.checker.values import ScoredSet, Scores
from mlperf_pkg.commands.score.ranks import standing_in_short
from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.render.markdown import section
from mlperf_pkg.render.terminal import PLAIN, STYLES, Column, Group, Span, Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow

_COLUMNS = (
    Column("Submitter, system", whole=True),
    Column("Benchmark", 16),
    Column("Minutes", 9, numbers=True),
    Column("RCP margin", 16),
    Column("Verdict", 14),
)
_TITLES = {  # column: whether it holds numbers
    "System": False,
    "Benchmark": False,
    "Minutes": True,
    "RCP margin": False,
    "Verdict": False,
}
_FEW = 10  # result sets; each one has another line
_GRAVITY = (Verdict.PASS, Verdict.NOT_CHECKED, Verdict.FAIL)


def add_table(terminal: Terminal, scores: Scores) -> None:
    """Add a line per result set, grouped by submitter and division, and how to see more."""
    terminal.table(_COLUMNS, _groups(scores), apart=True)
    number = wording.counted(len(scores.sets), "result set")
    details = "--verbose shows the runs and how each score is computed"
    terminal.paragraph((f"{number}; {details}", PLAIN))


def sections(scores: Scores) -> Iterator[str]:
    """Yield a Markdown section per submitter and division."""
    yield from (section(_TITLES, group) for group in _groups(scores))


def verdict_in_short(verdicts: Verdicts) -> str:
    """Return both verdicts in a few words: ``pass``, ``FAIL``, ``rules FAIL``, ``rules pass``.

    A verdict that is alone in failing is named; so is one that passes where the other was not
    checked.
    """
    if verdicts.official is verdicts.rules:
        return wording.VERDICTS[verdicts.rules]
    telling = Verdict.FAIL if Verdict.FAIL in _both(verdicts) else Verdict.PASS
    name = "official" if verdicts.official is telling else "rules"
    return f"{name} {wording.VERDICTS[telling]}"


def _both(verdicts: Verdicts) -> tuple[Verdict, Verdict]:
    return verdicts.official, verdicts.rules


def _groups(scores: Scores) -> list[Group]:
    """Return the result sets in the order of the report, below their submitter and division."""
    by_title: dict[str, list[ScoredSet]] = {}
    for scored in scores.sets:
        by_title.setdefault(_title(scored.row, scores.report), []).append(scored)
    is_short = len(scores.sets) <= _FEW
    return [
        Group(
            title,
            [_cells(scored.row) for scored in sets],
            [*_notes(sets), *(_standings(sets) if is_short else ())],
        )
        for title, sets in by_title.items()
    ]


def _title(row: ResultSetRow, report: Report) -> str:
    details = [row.division or "no division"]
    if report.round is None:
        details.append(f"round {row.round}")
    loose = "raw logs" if row.path == "." else f"logs in {row.path}"
    return f"{row.submitter or loose} ({', '.join(details)})"


def _cells(row: ResultSetRow) -> list[Span]:
    scaling = f" ({row.scaling})" if row.scaling == "weak" else ""
    style = STYLES[Verdict.FAIL] if wording.rcp_state(row) == "fail" else PLAIN
    worst = max(_both(row.verdict), key=_GRAVITY.index)
    return [
        (_system(row), PLAIN),
        (f"{row.benchmark}{scaling}", PLAIN),
        (wording.minutes(row.score_minutes), PLAIN),
        (wording.rcp(row), style),
        (verdict_in_short(row.verdict), STYLES[worst]),
    ]


def _system(row: ResultSetRow) -> str:
    return row.system or "unnamed system"


def _notes(sets: Sequence[ScoredSet]) -> Iterator[str]:
    """Yield what qualifies a score, or why there is none."""
    for scored in sets:
        if scored.row.score_note:
            yield f"{_name(scored.row)}: {scored.row.score_note}"


def _standings(sets: Sequence[ScoredSet]) -> Iterator[str]:
    """Yield the ranks of scores among the published ones."""
    for scored in sets:
        if scored.published:
            yield f"{_name(scored.row)}: published: {standing_in_short(scored.published)}"


def _name(row: ResultSetRow) -> str:
    return f"{_system(row)}, {row.benchmark}"
