"""Choose the runs to submit, as the rules define, if there are more than required."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mlperf_pkg.commands.builder.plan import Plan, PlannedSet
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.scoring import Selection, select
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Round


def choose_runs(plan: Plan, round_: Round) -> Plan:
    """Return the plan with the runs that ``selection`` chooses from sets with too many.

    The choices are among its notes; a set whose median is invalid is among its problems.
    """
    sets, notes, problems = [], list(plan.notes), list(plan.problems)
    for planned in plan.sets:
        selection = _selection(planned, round_)
        if selection is None:
            sets.append(planned)
        elif selection.chosen:
            sets.append(replace(planned, runs=selection.chosen))
            notes += _notes(planned, selection)
        else:
            problems.append(f"{planned.name}: no runs can be chosen: {selection.choice.reason}")
    return replace(plan, sets=tuple(sets), notes=tuple(notes), problems=tuple(problems))


def _selection(planned: PlannedSet, round_: Round) -> Selection | None:
    """Return None if there is nothing to select; in weak scaling, all models count."""
    rules = load_benchmark(round_.usage, round_.name, planned.benchmark)
    if rules is None or planned.scaling == "weak" or len(planned.runs) <= rules.runs.required:
        return None
    return select(planned.runs, rules.runs)


def _notes(planned: PlannedSet, selection: Selection) -> Iterator[str]:
    window, chosen = selection.choice.chosen, {run.path for run in selection.chosen}
    if window is None:
        return
    others = [run.path for run in selection.runs if run.path not in chosen]
    yield (
        f"{planned.name}: runs {window.first + 1} to {window.last + 1} of {len(selection.runs)} are"
        f" closest to the median of {words.minutes(selection.choice.median)} minutes;"
        f" not submitted: {', '.join(others)}"
    )
