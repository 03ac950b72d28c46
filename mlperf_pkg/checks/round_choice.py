"""Whether the round that was chosen fits the times of the runs: a warning where it may not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.rulebook.rounds import Sureness, Window, day_of, window
from mlperf_pkg.run.model import Run


def check_round_choice(runs: Iterable[Run]) -> Iterator[Finding]:
    """Check the rounds of the runs of one input, unless the user gave the round.

    The newest round is a guess for a run that has no timestamps or is later than every submission.
    Another round is doubtful if none of its runs is in its window: single runs may be older, as
    logs of an earlier round may be submitted again.
    """
    rounds: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.sureness is Sureness.GUESS:
            if run.records:  # a run without records could not be read
                yield _guess(run)
        elif run.sureness is not Sureness.GIVEN:
            rounds.setdefault((run.usage, run.round), []).append(run)
    for (usage, name), members in rounds.items():
        yield from _outside_window(members, name, window(usage, name))


def _guess(run: Run) -> Finding:
    day = _day(run)
    if day is None:
        return _finding(
            "ROUND102", f"no run has a time; assuming the newest round, {run.round}", run
        )
    return _finding(
        "ROUND102",
        "the runs are dated {found:s}; expected {expected}: assuming the newest round",
        run,
        found=str(day),
        expected=f"{window(run.usage, run.round).last} or earlier (round {run.round})",
    )


def _outside_window(runs: Sequence[Run], name: str, expected: Window) -> Iterator[Finding]:
    if any((day := _day(run)) and expected.first <= day <= expected.last for run in runs):
        return
    for run in runs:
        if day := _day(run):
            is_older = day < expected.first
            limit = f"{expected.first} or later" if is_older else f"{expected.last} or earlier"
            yield _finding(
                "ROUND101" if is_older else "ROUND103",
                "the runs are dated {found:s}; expected {expected}",
                run,
                found=str(day),
                expected=f"{limit} (round {name})",
            )


def _day(run: Run) -> date | None:
    time_ms = run.start_ms or run.stop_ms
    return day_of(time_ms) if time_ms else None


def _finding(code: str, message: str, run: Run, **fields: Any) -> Finding:
    return Finding(
        code=code,
        message=message,
        path=run.path,
        severity=Severity.WARNING,
        basis=Basis.ADVICE,
        hint="name the round with --round",
        source="mlperf-pkg: the round of a run",
        **fields,
    )
