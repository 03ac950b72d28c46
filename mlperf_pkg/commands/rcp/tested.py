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
from mlperf_pkg.commands.rcp.reference import PointsOrigin, benchmarks_in, reference_of
from mlperf_pkg.commands.rcp.table import number, size
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, Column, Group, Table, by_key, json_text, table_of
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
    """All result sets of a report with their tests; ``source`` names the file of points, if any."""

    report: Report
    sets: tuple[TestedSet, ...]
    source: str | None = None

    @property
    def status(self) -> int:
        """The exit status: 0 if all sets that must pass do, 1 if not, 2 if no set was tested."""
        if {item.state for item in self.sets} <= {Verdict.NOT_CHECKED}:
            return 2
        required = (item for item in self.sets if item.must_pass)
        return int(any(item.state is not Verdict.PASS for item in required))


def tested_sets(checked: Checked, origin: PointsOrigin) -> TestedSets:
    """Test all result sets of a check.

    Raises:
        UserError: the file of points cannot be used, or is of other benchmarks than the sets.
    """
    names = set(benchmarks_in(origin.file)) if origin.file else set()
    file = visible(str(origin.file)) if origin.file else None
    pairs = list(zip(checked.report.result_sets, checked.contexts, strict=True))
    tested = tuple(_tested(*pair, origin, names) for pair in pairs)
    if file and not any(item.is_custom for item in tested):
        raise UserError(
            f"{file}: points of {_joined(names)}; expected a benchmark of the result sets:"
            f" {_joined({row.benchmark for row, _ in pairs})}"
        )
    return TestedSets(checked.report, tested, file)


def _joined(names: set[str]) -> str:
    return ", ".join(map(visible, sorted(names))) or "no benchmark"


def _tested(
    row: ResultSetRow, context: SetContext, origin: PointsOrigin, names: set[str]
) -> TestedSet:
    """Test a result set, against the points of ``origin`` if they are of its benchmark."""
    package, reason = _test(context, None)
    if context.rules is None or context.rules.name not in names:
        return TestedSet(row, package, reason)
    points = reference_of(context.round, context.rules, origin).used
    return TestedSet(row, *_test(context, points), is_custom=True, before=package)


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
        return None, "a log of the set could not be read"
    if context.round.version < (1, 0):
        return None, "the RCP test exists from round 1.0 on"
    crash = crash_of(context, points)
    reason = f"the official checker crashes: {crash}" if crash else "the set could not be tested"
    return None, reason


def _state(test: RcpRow | None) -> Verdict:
    if test is None or (test.mean is not None and isnan(test.mean)):
        return Verdict.NOT_CHECKED
    return Verdict.PASS if test.official_pass else Verdict.FAIL


# ---- output -------------------------------------------------------------------------------

_OF_SET = ("id", "submitter", "system", "benchmark", "division", "round", "path")
_OF_TEST = ("normalization", "message", "no_limit_reason", "explanation")


def _column(name: str, title: str | None = None, **more: Any) -> Column:
    """Return the column of a field of the set or of its test, if there is one."""
    row, _, field = name.partition(".")

    def value(item: TestedSet) -> Any:
        return getattr(getattr(item, row), field, None)

    return Column(title, **{"key": field, "of": value, **more})


def _columns(title: Callable[[ResultSetRow], str] = attrgetter("id")) -> Sequence[Column]:
    """Return the columns; ``title`` names the system of a set."""
    return (
        *(_column(f"row.{name}") for name in _OF_SET),
        Column(key="state", of=attrgetter("state")),
        Column("System", of=lambda item: title(item.row)),
        _column("test.batch_size", "Batch size", width=10, numbers=True, show=_size),
        _column("test.mean", "Mean", width=13, numbers=True, show=_mean),
        Column("Limit", 13, numbers=True, of=_limit),
        _column("test.minimum"),
        _column("test.margin_percent", "Margin", width=8, numbers=True, show=_margin),
        Column("Factor", 6, numbers=True, of=_factor),
        Column("Test", 11, of=lambda i: VERDICTS[i.state], style=lambda i: STYLES[i.state]),
        *(_column(f"test.{name}") for name in _OF_TEST),
        Column(key="reason", of=attrgetter("reason")),
        Column(key="before", of=lambda item: _state(item.before) if item.is_custom else None),
    )


def _size(value: Any) -> str:
    return "-" if value in (None, -1) else size(to_float(value) or 0)


def _mean(value: float | None) -> str:
    return number(None if value is None or isnan(value) else value)


def _margin(percent: float | None) -> str:
    return "-" if percent is None else margin_in_words(percent)


def _limit(item: TestedSet) -> str:
    if item.test and item.test.no_limit_reason:
        return "none"
    return number(item.test.minimum if item.test else None)


def _factor(item: TestedSet) -> str:
    test = item.test
    is_normalised = test and test.official_pass and test.normalization > 1
    return f"{test.normalization:.4f}" if test and is_normalised else "-"


def text(result: TestedSets, view: View) -> str:
    """Render for a terminal: a line per set, by benchmark, and why a set does not pass."""
    terminal = Terminal(view)
    if not result.sets:
        terminal.line((findings.NO_RESULT_SET, PLAIN))
        return terminal.text()
    if result.source:
        terminal.line((f"reference points: {result.source}", PLAIN))
    title = findings.system_titles(result.report)
    is_detailed = view.verbose or len(result.sets) <= _FEW
    hides_passing = not view.verbose and len(result.sets) > _MANY
    rows = [i for i in result.sets if not (hides_passing and i.state is Verdict.PASS)]
    groups = []
    for name, items in sorted(by_key((item.row.benchmark, item) for item in rows).items()):
        of_remarks = by_key(
            (r, title(item.row)) for item in items for r in _remarks(item, is_detailed=is_detailed)
        )
        remarks = [
            f"{titles[0] if len(titles) == 1 else f'{len(titles)} sets'}: {remark}"
            for remark, titles in of_remarks.items()
        ]
        groups.append(Group(name, items, remarks))
    if groups:
        terminal.table(Table(_columns(title), groups), apart=True)
    hidden = "; --verbose shows those that pass" if hides_passing else ""
    hidden = hidden if groups else "; no row to show: every set passes (--verbose shows them)"
    terminal.paragraph((f"{_summary(result)}{hidden}", PLAIN))
    terminal.paragraph((findings.round_in_words(result.report), PLAIN))
    return terminal.text()


def _remarks(item: TestedSet, *, is_detailed: bool) -> Iterator[str]:
    row = item.row
    if item.reason:
        yield item.reason
    elif item.test and is_detailed:
        yield item.test.explanation
    elif item.test and item.test.minimum is None:
        yield item.test.message
    if row.runs_required is not None and row.runs_found < row.runs_required:
        yield f"{row.runs_found} of {row.runs_required} runs"
    if item.is_custom and (item.before is None or _state(item.before) is not item.state):
        before = VERDICTS[_state(item.before)]
        message = f" ({item.before.message})" if item.before else ""
        yield f"with the points of mlperf-logging: {before}{message}"


def _summary(result: TestedSets) -> str:
    states = [item.state for item in result.sets]
    parts = [f"{states.count(state)} {VERDICTS[state]}" for state in Verdict if state in states]
    optional = sum(item.state is Verdict.FAIL and not item.must_pass for item in result.sets)
    note = f"; Open sets, which need not pass: {optional} FAIL" if optional else ""
    return f"{counted(len(states), 'result set')}: {', '.join(parts)}{note}"


def json(result: TestedSets, _: View) -> str:
    """Render all fields; ``before`` is the test against the points of mlperf-logging."""
    sets = [
        {
            **{name: getattr(item.row, name) for name in (*_OF_SET, "runs_found", "runs_required")},
            **{name: getattr(item, name) for name in ("state", "must_pass", "reason")},
            "rcp": as_json(item.test),
            "custom": item.is_custom,
            "before": as_json(item.before),
        }
        for item in result.sets
    ]
    return json_text({"format": FORMAT, "source": result.source, "result_sets": sets})


def csv(result: TestedSets, _: View) -> str:
    """Render one line per result set."""
    return tables.csv(table_of(_columns(), result.sets))


CHECK_FORMATS = {"text": text, "csv": csv, "json": json}
