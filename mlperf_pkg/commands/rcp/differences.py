"""The changes of reference points and their limits between two rounds."""

from collections.abc import Mapping

from msgspec import Struct

from mlperf_pkg.commands.rcp.reference import reference_of
from mlperf_pkg.commands.rcp.table import add_item, number, size
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, csv_text, json_text
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import has_limit
from mlperf_pkg.results.report import as_json
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.explain import compare, loaded
from mlperf_pkg.rulebook.model import Benchmark, Round
from mlperf_pkg.rulebook.upstream.points import points_folder

FORMAT = "mlperf-pkg/rcp-diff/1"
_KINDS = {"added": "+", "removed": "-", "changed": "~", "pruned": "~", "used": "~"}


class PointState(Struct, frozen=True):
    """A point in one of two rounds; pruning keeps it if it is ``used``.

    ``minimum`` is None if the point has no lower limit.
    """

    runs: int
    mean: float
    minimum: float | None
    used: bool


class PointDifference(Struct, frozen=True):
    """A point that was ``added`` (``old`` is None), ``removed`` (``new`` is None) or ``changed``.

    The runs of a changed point differ. A point with the same runs is ``pruned`` or ``used`` if
    pruning removes it only in the new round, or only in the old one.
    """

    batch_size: float
    kind: str
    old: PointState | None
    new: PointState | None


class BenchmarkDifference(Struct, frozen=True):
    """The differences of one benchmark; ``same`` points are equal in both rounds.

    ``old_name`` is the benchmark's name in the old round, None if it is new; ``name`` the one in
    the new round, or in the old round if it is ``gone``.
    """

    name: str
    old_name: str | None
    gone: bool
    unit: str
    points: tuple[PointDifference, ...]
    same: int


class Differences(Struct, frozen=True):
    """The differences of all benchmarks of two rounds of a usage."""

    usage: str
    old: str
    new: str
    benchmarks: tuple[BenchmarkDifference, ...]


def differences(usage: str, old: str, new: str, benchmark: str | None) -> Differences:
    """Return the differences of two rounds, in all benchmarks or in one.

    Raises:
        UserError: there is no such round or benchmark, or mlperf-logging has no points of a round.
    """
    comparison = compare(usage, old, new, benchmark)
    for round_ in (comparison.old, comparison.new):
        if not points_folder(official_folder(), round_).is_dir():
            raise UserError(
                f"the installed mlperf-logging has no reference points of {usage} {round_.name}"
            )
    gone = [(loaded(comparison.old, name), None) for name in comparison.gone]
    benchmarks = []
    for before, after in (*comparison.pairs, *gone):
        newest = [rules for rules in (before, after) if rules][-1]
        states = _states(comparison.old, before)
        later = _states(comparison.new, after)
        points = [_point(n, states.get(n), later.get(n)) for n in sorted({*states, *later})]
        different = tuple(point for point in points if point)
        names = (newest.name, before.name if before else None, after is None, newest.unit)
        benchmarks.append(BenchmarkDifference(*names, different, len(points) - len(different)))
    return Differences(usage, comparison.old.name, comparison.new.name, tuple(benchmarks))


_State = tuple[tuple[float, ...], PointState]


def _states(round_: Round, rules: Benchmark | None) -> Mapping[float, _State]:
    """Return the runs and the state of each point by its batch size."""
    if rules is None:
        return {}
    reference = reference_of(round_, rules)
    states = {}
    used = reference.used
    for point in reference.points:
        minimum = point.minimum if has_limit(point) else None
        state = PointState(len(point.to_converge), point.mean, minimum, point in used)
        states[point.batch_size] = point.to_converge, state
    return states


def _point(
    batch_size: float, before: _State | None, after: _State | None
) -> PointDifference | None:
    if before is None or after is None:
        kind = "added" if after else "removed"
        return PointDifference(batch_size, kind, before and before[1], after and after[1])
    old_runs, old = before
    new_runs, new = after
    if old_runs != new_runs:
        return PointDifference(batch_size, "changed", old, new)
    if old.used != new.used:
        return PointDifference(batch_size, "used" if new.used else "pruned", old, new)
    return None


# ---- output -------------------------------------------------------------------------------


def text(result: Differences, view: View) -> str:
    """Render for a terminal."""
    terminal = Terminal(view)
    title = f"Reference points of {result.usage}, {result.old} -> {result.new}"
    terminal.paragraph((title, HEADING))
    for item in result.benchmarks:
        if item.points:
            terminal.line()
            terminal.paragraph((_heading(item), HEADING))
            for point in item.points:
                add_item(terminal, f"  {_KINDS[point.kind]} ", _in_words(point))
    unchanged = [item.name for item in result.benchmarks if not item.points]
    if unchanged:
        terminal.line()
        terminal.paragraph((f"Unchanged: {', '.join(unchanged)}", PLAIN))
    return terminal.text()


def _heading(item: BenchmarkDifference) -> str:
    same = f"; {counted(item.same, 'point')} unchanged" if item.same else ""
    was = f" (was {item.old_name})" if item.old_name != item.name else ""
    change = " (removed)" if item.gone else was if item.old_name else " (new)"
    return f"{item.name}{change}, {item.unit} to converge{same}"


def _in_words(point: PointDifference) -> str:
    batch_size = size(point.batch_size)
    old = point.old
    new = point.new
    if old is None or new is None:
        state = [state for state in (old, new) if state][-1]
        values = f"{state.runs} runs, mean {number(state.mean)}, limit {_limit(state)}"
        return f"{batch_size}: {values}{'' if state.used else ', pruned'}"
    if point.kind != "changed":
        return f"{batch_size}: the same runs, now {point.kind}"
    pruned = "" if new.used == old.used else f", now {'used' if new.used else 'pruned'}"
    sides = {
        "runs": (f"{old.runs}", f"{new.runs}"),
        "mean": (number(old.mean), number(new.mean)),
        "limit": (_limit(old), _limit(new)),
    }
    changes = (f"{name} {' -> '.join(dict.fromkeys(both))}" for name, both in sides.items())
    return f"{batch_size}: {', '.join(changes)}{pruned}"


def _limit(state: PointState) -> str:
    return "none" if state.minimum is None else number(state.minimum)


def json(result: Differences, _: View) -> str:
    """Render all fields."""
    return json_text({"format": FORMAT, **as_json(result)})


def csv(result: Differences, _: View) -> str:
    """Render one line per point that differs."""
    names = PointState.__struct_fields__
    of_sides = [f"{side}_{name}" for side in ("old", "new") for name in names]
    rows = (
        [item.name, point.batch_size, point.kind]
        + [getattr(state, name, None) for state in (point.old, point.new) for name in names]
        for item in result.benchmarks
        for point in item.points
    )
    return csv_text(["benchmark", "batch_size", "kind", *of_sides], rows)


DIFF_FORMATS = {"text": text, "csv": csv, "json": json}
