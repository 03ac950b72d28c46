"""The changes of reference points and their limits between two rounds."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.rcp.reference import Reference, reference_of
from mlperf_pkg.commands.rcp.table import add_item, number, size
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, json_text, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results.rcp import has_limit
from mlperf_pkg.results.report import as_json
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.changes import compare
from mlperf_pkg.rulebook.explain import loaded
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
    pairs: list[tuple[Benchmark | None, Benchmark | None]] = [*comparison.pairs, *gone]
    old_round, new_round = comparison.old, comparison.new
    benchmarks = tuple(_of_benchmark(old_round, a, new_round, b) for a, b in pairs)
    return Differences(usage, old_round.name, new_round.name, benchmarks)


def _of_benchmark(
    old_round: Round, before: Benchmark | None, new_round: Round, after: Benchmark | None
) -> BenchmarkDifference:
    old = _states(reference_of(old_round, before)) if before else {}
    new = _states(reference_of(new_round, after)) if after else {}
    points = [_point(n, old.get(n), new.get(n)) for n in sorted({*old, *new})]
    different = tuple(point for point in points if point)
    newest = after or before
    assert newest  # noqa: S101
    return BenchmarkDifference(
        name=newest.name,
        old_name=before.name if before else None,
        gone=after is None,
        unit=newest.unit,
        points=different,
        same=len(points) - len(different),
    )


_State = tuple[tuple[float, ...], PointState]


def _states(reference: Reference) -> Mapping[float, _State]:
    """Return the runs and the state of each point by its batch size."""
    states, used = {}, reference.used
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
    (old_runs, old), (new_runs, new) = before, after
    if old_runs != new_runs:
        return PointDifference(batch_size, "changed", old, new)
    if old.used != new.used:
        return PointDifference(batch_size, "used" if new.used else "pruned", old, new)
    return None


# ---- output -------------------------------------------------------------------------------

_Row = tuple[BenchmarkDifference, PointDifference]


def _of_state(side: str, name: str) -> Column:
    """Return the column of a field of a point in the ``old`` or in the ``new`` round."""

    def value(row: _Row) -> Any:
        state = getattr(row[1], side)
        return getattr(state, name) if state else None

    return Column(key=f"{side}_{name}", of=value)


_COLUMNS = (
    Column(key="benchmark", of=lambda row: row[0].name),
    Column(key="batch_size", of=lambda row: row[1].batch_size),
    Column(key="kind", of=lambda row: row[1].kind),
    *(_of_state(side, name) for side in ("old", "new") for name in PointState.__struct_fields__),
)


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
    if unchanged := [item.name for item in result.benchmarks if not item.points]:
        terminal.line()
        terminal.paragraph((f"Unchanged: {', '.join(unchanged)}", PLAIN))
    return terminal.text()


def _heading(item: BenchmarkDifference) -> str:
    same = f"; {counted(item.same, 'point')} unchanged" if item.same else ""
    was = f" (was {item.old_name})" if item.old_name != item.name else ""
    change = " (removed)" if item.gone else was if item.old_name else " (new)"
    return f"{item.name}{change}, {item.unit} to converge{same}"


def _in_words(point: PointDifference) -> str:
    batch_size, old, new = size(point.batch_size), point.old, point.new
    if old is None or new is None:
        state = new or old
        assert state  # noqa: S101
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
    rows = [(item, point) for item in result.benchmarks for point in item.points]
    return tables.csv(table_of(_COLUMNS, rows))


DIFF_FORMATS = {"text": text, "csv": csv, "json": json}
