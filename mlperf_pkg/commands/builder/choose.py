"""Of more runs than required, those that the rules let be submitted."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mlperf_pkg.commands.builder.plan import Plan, PlannedSet
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.selection import Selection, select
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Round


def choose_runs(plan: Plan, round_: Round) -> Plan:
    """The plan with the runs that ``selection`` chooses, where there are more than required.

    What was chosen is among its notes; a set whose median is invalid is among its problems.
    """
    sets, notes, problems = [], list(plan.notes), list(plan.problems)
    for planned in plan.sets:
        made = _selection(planned, round_)
        if made is None:
            sets.append(planned)
        elif made.chosen:
            sets.append(replace(planned, runs=made.chosen))
            notes += _notes(planned, made)
        else:
            problems.append(f"{planned.name}: no runs can be chosen: {made.choice.reason}")
    return replace(plan, sets=tuple(sets), notes=tuple(notes), problems=tuple(problems))


def _selection(planned: PlannedSet, round_: Round) -> Selection | None:
    """None where there is nothing to select: of weak scaling, all models count."""
    rules = load_benchmark(round_.usage, round_.name, planned.benchmark)
    if rules is None or planned.scaling == "weak" or len(planned.runs) <= rules.runs.required:
        return None
    return select(planned.runs, rules.runs)


def _notes(planned: PlannedSet, made: Selection) -> Iterator[str]:
    window, taken = made.choice.chosen, {run.path for run in made.chosen}
    if window is None:
        return
    left = [run.path for run in made.runs if run.path not in taken]
    yield (
        f"{planned.name}: runs {window.first + 1} to {window.last + 1} of {len(made.runs)} are"
        f" closest to the median of {words.minutes(made.choice.median)} minutes;"
        f" not submitted: {', '.join(left)}"
    )
