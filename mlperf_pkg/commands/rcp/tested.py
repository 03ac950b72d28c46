"""The RCP test of result sets, by the points of mlperf-logging or of a file."""

from collections.abc import Callable, Iterator, Sequence
from math import isnan
from operator import attrgetter
from typing import Any

from msgspec import Struct

from mlperf_pkg.checker.reading import guarded
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.rcp import Points, crash_of, rcp_row, rcp_test
from mlperf_pkg.commands.rcp.reference import (
    PointsOrigin,
    benchmarks_in,
    other_points,
    reference_of,
)
from mlperf_pkg.commands.rcp.table import number, size
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, Column, RowGroup, Table, by_key, json_text, table_of
from mlperf_pkg.render.terminal import STYLES, Terminal
from mlperf_pkg.results.rcp import margin_in_words
from mlperf_pkg.results.report import RcpRow, Report, ResultSetRow, as_json
from mlperf_pkg.results.wording import VERDICTS, counted

FORMAT = "mlperf-pkg/rcp-check/1"
_FEW = 3  # result sets, of which all explanations are shown
_MANY = 20  # result sets, of which only those that do not pass are shown


class TestedSet(Struct, frozen=True):
    """A result set and its test.

    ``test`` is None if the set cannot be tested; ``reason`` says why. ``before`` is the test
    against the points of mlperf-logging if other points were used.
    """

    row: ResultSetRow
    test: RcpRow | None
    reason: str | None = None
    is_custom: bool = False
    before: RcpRow | None = None

    @property
    def state(self) -> Verdict:
        """The outcome; a set with too few runs was not checked."""
        return _state(self.test)

    @property
    def must_pass(self) -> bool:
        """Whether the rules require that the set passes, as they do except for Open sets."""
        return (self.row.division or "").lower() != "open"


class TestedSets(Struct, frozen=True):
    """All result sets of a report with their tests.

    ``source`` names the file of points, if any, and mlperf-logging if its points are not those that
    the rulebook was verified against.
    """

    report: Report
    sets: tuple[TestedSet, ...]
    source: str | None = None

    @property
    def status(self) -> int:
        """The exit status: 0 if all sets that must pass do, 1 if not, 2 if no set was tested."""
        if all(tested.state is Verdict.NOT_CHECKED for tested in self.sets):
            return 2
        required = [tested for tested in self.sets if tested.must_pass]
        return int(any(tested.state is not Verdict.PASS for tested in required))


def tested_sets(checked: Checked, origin: PointsOrigin) -> TestedSets:
    """Test all result sets of a check.

    Raises:
        UserError: the file of points cannot be used, or is of other benchmarks than the sets.
    """
    rows = checked.report.result_sets
    covered = set(benchmarks_in(origin.file)) if origin.file else set()
    tested = []
    for row, context in zip(rows, checked.contexts, strict=True):
        tested.append(_tested(row, context, origin, covered))
    rounds = sorted({(context.round.usage, context.round.name) for context in checked.contexts})
    official_source = other_points(rounds, {row.benchmark for row in rows})
    if origin.file is None:
        return TestedSets(checked.report, tuple(tested), official_source)
    source = visible(str(origin.file))
    if not any(result.is_custom for result in tested):
        raise UserError(
            f"{source}: points of {_joined(covered)}; expected a benchmark of the result sets:"
            f" {_joined({row.benchmark for row in rows})}"
        )
    if official_source:
        source = f"{source}; {official_source}"
    return TestedSets(checked.report, tuple(tested), source)


def _joined(names: set[str]) -> str:
    return ", ".join(map(visible, sorted(names))) or "no benchmark"


def _tested(
    row: ResultSetRow, context: SetContext, origin: PointsOrigin, covered: set[str]
) -> TestedSet:
    """Test a result set, against the points of ``origin`` if they are of its benchmark."""
    test, reason = _test(context, None)
    if context.rules is None or context.rules.name not in covered:
        return TestedSet(row, test, reason)
    points = reference_of(context.round, context.rules, origin).used
    custom_test, custom_reason = _test(context, points)
    return TestedSet(row, custom_test, custom_reason, is_custom=True, before=test)


def _test(context: SetContext, points: Points | None) -> tuple[RcpRow | None, str | None]:
    """Return the test, or None and why the set cannot be tested."""
    is_read = bool(context.runs) and all(run.is_read for run in context.runs)

    def made() -> RcpRow | None:
        return rcp_row(context, rcp_test(context, points), points) if is_read else None

    test = guarded(context.label, "testing this result set", made)
    if isinstance(test, RcpRow):
        return test, None
    if context.rules is None:
        return None, f"round {context.round.name} does not have this benchmark"
    if not is_read:
        return None, "a log of the set could not be read" if context.runs else "the set has no log"
    if context.round.version < (1, 0):
        return None, "the RCP test exists from round 1.0 on"
    crash = crash_of(context, points)
    if crash:
        return None, f"the official checker crashes, as {crash}"
    return None, "the set could not be tested"


def _state(test: RcpRow | None) -> Verdict:
    if test is None or (test.mean is not None and isnan(test.mean)):
        return Verdict.NOT_CHECKED
    return Verdict.PASS if test.official_pass else Verdict.FAIL


# ---- columns ------------------------------------------------------------------------------

_OF_SET = ("id", "submitter", "system", "benchmark", "division", "round", "path")
_OF_TEST = ("normalization", "message", "no_limit_reason", "explanation")


def _column(name: str, title: str | None = None, **attributes: Any) -> Column:
    """Return the column of a field of the set or of its test, if there is one."""
    part, _, field = name.partition(".")

    def value(tested: TestedSet) -> Any:
        return getattr(getattr(tested, part), field, None)

    return Column(title, key=field, of=value, **attributes)


def _columns(title_of: Callable[[ResultSetRow], str] = attrgetter("id")) -> Sequence[Column]:
    """Return the columns; ``title_of`` names the system of a set."""
    return (
        *[_column(f"row.{name}") for name in _OF_SET],
        Column(key="state", of=attrgetter("state")),
        Column("System", of=lambda tested: title_of(tested.row)),
        _column("test.batch_size", "Batch size", width=10, numbers=True, show=_size),
        _column("test.mean", "Mean", width=13, numbers=True, show=_mean),
        Column("Limit", 13, numbers=True, of=_limit),
        _column("test.minimum"),
        _column("test.margin_percent", "Margin", width=8, numbers=True, show=_margin),
        Column("Factor", 6, numbers=True, of=_factor),
        Column("Test", 11, of=_verdict, style=lambda tested: STYLES[tested.state]),
        *[_column(f"test.{name}") for name in _OF_TEST],
        Column(key="reason", of=attrgetter("reason")),
        Column(key="before", of=_state_before),
    )


def _size(batch_size: Any) -> str:
    if batch_size is None or batch_size == -1:
        return "-"
    return size(to_float(batch_size) or 0)


def _mean(mean: float | None) -> str:
    if mean is None or isnan(mean):
        return number(None)
    return number(mean)


def _margin(percent: float | None) -> str:
    return "-" if percent is None else margin_in_words(percent)


def _limit(tested: TestedSet) -> str:
    if tested.test is None:
        return number(None)
    return "none" if tested.test.no_limit_reason else number(tested.test.minimum)


def _factor(tested: TestedSet) -> str:
    test = tested.test
    if test and test.official_pass and test.normalization > 1:
        return f"{test.normalization:.4f}"
    return "-"


def _verdict(tested: TestedSet) -> str:
    return VERDICTS[tested.state]


def _state_before(tested: TestedSet) -> Verdict | None:
    return _state(tested.before) if tested.is_custom else None


# ---- output -------------------------------------------------------------------------------


def text(result: TestedSets, view: View) -> str:
    """Render for a terminal: a line per set, by benchmark, and why a set does not pass."""
    terminal = Terminal(view)
    if not result.sets:
        terminal.line((findings.NO_RESULT_SET, PLAIN))
        return terminal.text()
    if result.source:
        terminal.line((f"reference points: {result.source}", PLAIN))
    explains = view.verbose or len(result.sets) <= _FEW
    hides_passing = not view.verbose and len(result.sets) > _MANY
    sets = result.sets
    if hides_passing:
        sets = tuple(tested for tested in sets if tested.state is not Verdict.PASS)
    title_of = findings.system_titles(result.report)
    groups = _groups(sets, title_of, explains=explains)
    if groups:
        terminal.table(Table(_columns(title_of), groups), apart=True)
    summary = _summary(result)
    if not groups:
        summary += "; every set passes; --verbose shows the sets"
    elif hides_passing:
        summary += "; --verbose also shows the sets that pass"
    terminal.paragraph((summary, PLAIN))
    terminal.paragraph((findings.round_in_words(result.report), PLAIN))
    return terminal.text()


def _groups(
    sets: Sequence[TestedSet], title_of: Callable[[ResultSetRow], str], *, explains: bool
) -> list[RowGroup]:
    """Return the sets by benchmark, with the remarks on them below."""
    by_benchmark = by_key((tested.row.benchmark, tested) for tested in sets)
    groups = []
    for benchmark in sorted(by_benchmark):
        of_benchmark = by_benchmark[benchmark]
        titles_by_remark: dict[str, list[str]] = {}
        for tested in of_benchmark:
            for remark in _remarks(tested, explains=explains):
                titles_by_remark.setdefault(remark, []).append(title_of(tested.row))
        remarks = [f"{_subject(titles)}: {remark}" for remark, titles in titles_by_remark.items()]
        groups.append(RowGroup(benchmark, of_benchmark, remarks))
    return groups


def _subject(titles: Sequence[str]) -> str:
    """Return the sets that a remark is about: the only one by name, several by their number."""
    return titles[0] if len(titles) == 1 else f"{len(titles)} sets"


def _remarks(tested: TestedSet, *, explains: bool) -> Iterator[str]:
    row = tested.row
    test = tested.test
    if tested.reason:
        yield tested.reason
    elif test and explains:
        yield test.explanation
    elif test and test.minimum is None:
        yield test.message
    if row.runs_required is not None and row.runs_found < row.runs_required:
        yield f"has {row.runs_found} of the {row.runs_required} required runs"
    if tested.is_custom:
        state_before = _state(tested.before)
        if tested.before is None:
            yield f"with the points of mlperf-logging: {VERDICTS[state_before]}"
        elif state_before is not tested.state:
            verdict = f"{VERDICTS[state_before]} ({tested.before.message})"
            yield f"with the points of mlperf-logging: {verdict}"


def _summary(result: TestedSets) -> str:
    states = [tested.state for tested in result.sets]
    counts = [f"{states.count(state)} {VERDICTS[state]}" for state in Verdict if state in states]
    summary = f"{counted(len(states), 'result set')}: {', '.join(counts)}"
    optional = sum(tested.state is Verdict.FAIL and not tested.must_pass for tested in result.sets)
    if optional:
        summary += (
            f"; the sets with FAIL include {counted(optional, 'Open set')}, which need not pass"
        )
    return summary


def json(result: TestedSets, _: View) -> str:
    """Render all fields; ``before`` is the test against the points of mlperf-logging."""
    sets = [_fields(tested) for tested in result.sets]
    return json_text({"format": FORMAT, "source": result.source, "result_sets": sets})


def _fields(tested: TestedSet) -> dict[str, Any]:
    fields = {name: getattr(tested.row, name) for name in (*_OF_SET, "runs_found", "runs_required")}
    fields["state"] = tested.state
    fields["must_pass"] = tested.must_pass
    fields["reason"] = tested.reason
    fields["rcp"] = as_json(tested.test)
    fields["custom"] = tested.is_custom
    fields["before"] = as_json(tested.before)
    return fields


def csv(result: TestedSets, _: View) -> str:
    """Render one line per result set."""
    return tables.csv(table_of(_columns(), result.sets))


CHECK_FORMATS = {"text": text, "csv": csv, "json": json}
