"""The changes of reference points and their limits between two rounds."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from mlperf_pkg.commands.rcp.records import points_folder
from mlperf_pkg.commands.rcp.reference import other_points, reference_of
from mlperf_pkg.commands.rcp.table import add_item, number, size
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, csv_text, json_text
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import has_limit
from mlperf_pkg.results.report import as_json
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.explain import RoundComparison, compare, loaded
from mlperf_pkg.rulebook.model import Benchmark, Round

FORMAT = "mlperf-pkg/rcp-diff/1"
_NOW_USED = {True: "now used by the RCP test", False: "no longer used by the RCP test"}
_MARKS = {"added": "+", "removed": "-", "changed": "~", "pruned": "~", "used": "~"}


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
    """The differences of all benchmarks of two rounds of a usage.

    ``source`` names mlperf-logging if its points are not those that the rulebook was verified
    against.
    """

    usage: str
    old: str
    new: str
    benchmarks: tuple[BenchmarkDifference, ...]
    source: str | None = None


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
    benchmarks = []
    for old_rules, new_rules in comparison.pairs:
        old_name = old_rules.name if old_rules else None
        old_states = _states(comparison.old, old_rules) if old_rules else {}
        new_states = _states(comparison.new, new_rules)
        benchmarks.append(_difference(new_rules, old_name, old_states, new_states))
    for name in comparison.gone:
        rules = loaded(comparison.old, name)
        states = _states(comparison.old, rules)
        benchmarks.append(_difference(rules, name, states, {}, gone=True))
    return Differences(
        usage,
        comparison.old.name,
        comparison.new.name,
        tuple(benchmarks),
        _source(comparison, benchmarks),
    )


def _source(comparison: RoundComparison, benchmarks: Iterable[BenchmarkDifference]) -> str | None:
    """Return mlperf-logging in words if its points are not the verified ones."""
    rounds = []
    for round_ in (comparison.old, comparison.new):
        rounds.append((round_.usage, round_.name))
    names = {difference.name for difference in benchmarks}
    names |= {difference.old_name for difference in benchmarks if difference.old_name}
    return other_points(rounds, names)


_RunsAndState = tuple[tuple[float, ...], PointState]
_States = Mapping[float, _RunsAndState]


def _states(round_: Round, rules: Benchmark) -> _States:
    """Return the runs and the state of each point by its batch size."""
    reference = reference_of(round_, rules)
    used = reference.used
    states = {}
    for point in reference.points:
        runs = point.to_converge
        minimum = point.minimum if has_limit(point) else None
        state = PointState(len(runs), point.mean, minimum, point in used)
        states[point.batch_size] = (runs, state)
    return states


def _difference(
    rules: Benchmark,
    old_name: str | None,
    old_states: _States,
    new_states: _States,
    *,
    gone: bool = False,
) -> BenchmarkDifference:
    """Return the differences of a benchmark, whose newest rules are ``rules``."""
    batch_sizes = sorted({*old_states, *new_states})
    points = []
    for batch_size in batch_sizes:
        point = _point(batch_size, old_states.get(batch_size), new_states.get(batch_size))
        if point:
            points.append(point)
    same = len(batch_sizes) - len(points)
    return BenchmarkDifference(rules.name, old_name, gone, rules.unit, tuple(points), same)


def _point(
    batch_size: float, before: _RunsAndState | None, after: _RunsAndState | None
) -> PointDifference | None:
    """Return the difference of a point, None where nothing changed."""
    old_runs, old = before or ((), None)
    new_runs, new = after or ((), None)
    if old is None:
        return PointDifference(batch_size, "added", None, new)
    if new is None:
        return PointDifference(batch_size, "removed", old, None)
    if old_runs != new_runs:
        return PointDifference(batch_size, "changed", old, new)
    if old.used and not new.used:
        return PointDifference(batch_size, "pruned", old, new)
    if new.used and not old.used:
        return PointDifference(batch_size, "used", old, new)
    return None


# ---- output -------------------------------------------------------------------------------


def text(result: Differences, view: View) -> str:
    """Render for a terminal."""
    terminal = Terminal(view)
    title = f"Reference points of {result.usage}, {result.old} -> {result.new}"
    terminal.paragraph((title, HEADING))
    if result.source:
        terminal.paragraph((f"source: {result.source}", PLAIN))
    unchanged = []
    for benchmark in result.benchmarks:
        if not benchmark.points:
            unchanged.append(benchmark.name)
            continue
        terminal.line()
        terminal.paragraph((_heading(benchmark), HEADING))
        for point in benchmark.points:
            add_item(terminal, f"  {_MARKS[point.kind]} ", _in_words(point))
    if unchanged:
        terminal.line()
        terminal.paragraph((f"Unchanged: {', '.join(unchanged)}", PLAIN))
    return terminal.text()


def _heading(benchmark: BenchmarkDifference) -> str:
    heading = f"{benchmark.name}{_change(benchmark)}, {benchmark.unit} to converge"
    if benchmark.same:
        heading += f"; {counted(benchmark.same, 'point')} unchanged"
    return heading


def _change(benchmark: BenchmarkDifference) -> str:
    """Return whether a benchmark was removed, added or renamed, in words."""
    if benchmark.gone:
        return " (removed)"
    if benchmark.old_name is None:
        return " (new)"
    if benchmark.old_name != benchmark.name:
        return f" (was {benchmark.old_name})"
    return ""


def _in_words(point: PointDifference) -> str:
    batch_size = size(point.batch_size)
    old = point.old
    new = point.new
    if old and new:
        return f"{batch_size}: {_change_in_words(point.kind, old, new)}"
    return "".join(f"{batch_size}: {_state_in_words(state)}" for state in (old, new) if state)


def _state_in_words(state: PointState) -> str:
    words = f"{state.runs} runs, mean {number(state.mean)}, limit {_limit(state)}"
    return words if state.used else f"{words}, not used by the RCP test"


def _change_in_words(kind: str, old: PointState, new: PointState) -> str:
    if kind != "changed":
        return f"the runs are the same, but the point is {_NOW_USED[new.used]}"
    changes = [
        f"runs {_before_and_after(f'{old.runs}', f'{new.runs}')}",
        f"mean {_before_and_after(number(old.mean), number(new.mean))}",
        f"limit {_before_and_after(_limit(old), _limit(new))}",
    ]
    if old.used != new.used:
        changes.append(_NOW_USED[new.used])
    return ", ".join(changes)


def _before_and_after(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


def _limit(state: PointState) -> str:
    return "none" if state.minimum is None else number(state.minimum)


def json(result: Differences, _: View) -> str:
    """Render all fields."""
    return json_text({"format": FORMAT, **as_json(result)})


def csv(result: Differences, _: View) -> str:
    """Render one line per point that differs."""
    names = PointState.__struct_fields__
    old_titles = [f"old_{name}" for name in names]
    new_titles = [f"new_{name}" for name in names]
    rows = []
    for benchmark in result.benchmarks:
        for point in benchmark.points:
            old_values = [getattr(point.old, name, None) for name in names]
            new_values = [getattr(point.new, name, None) for name in names]
            place = (benchmark.name, point.batch_size, point.kind)
            rows.append([*place, *old_values, *new_values])
    return csv_text(["benchmark", "batch_size", "kind", *old_titles, *new_titles], rows)


DIFF_FORMATS = {"text": text, "csv": csv, "json": json}
