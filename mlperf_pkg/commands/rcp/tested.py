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
from mlperf_pkg.commands.rcp.reference import Origin, benchmarks_in, reference_of
from mlperf_pkg.commands.rcp.table import number, size
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Unchecked, Verdict
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


def tested_sets(checked: Checked, origin: Origin) -> TestedSets:
    """Test all result sets of a check.

    Raises:
        UserError: the file of points cannot be used, or is of other benchmarks than the sets.
    """
    names = set(benchmarks_in(origin.file)) if origin.file else set()
    file = visible(str(origin.file)) if origin.file else None
    pairs = list(zip(checked.report.result_sets, checked.contexts, strict=True))
    if file and not any(_benchmark(context) in names for _, context in pairs):
        raise UserError(
            f"{file}: points of {_joined(names)}; expected a benchmark of the result sets:"
            f" {_joined({row.benchmark for row, _ in pairs})}"
        )
    origins = (origin if _benchmark(context) in names else None for _, context in pairs)
    tested = (_tested(*pair, own) for pair, own in zip(pairs, origins, strict=True))
    return TestedSets(checked.report, tuple(tested), file)


def _joined(names: set[str]) -> str:
    return ", ".join(map(visible, sorted(names))) or "no benchmark"


def _benchmark(context: SetContext) -> str:
    return context.rules.name if context.rules else ""


def _tested(row: ResultSetRow, context: SetContext, origin: Origin | None) -> TestedSet:
    package = _test(context, None)
    if context.rules is None or origin is None:
        return TestedSet(row, package, None if package else _reason(context, None))
    points = reference_of(context.round, context.rules, origin).used
    test = _test(context, points)
    reason = None if test else _reason(context, points)
    return TestedSet(row, test, reason, is_custom=True, before=package)


def _test(context: SetContext, points: Points | None) -> RcpRow | None:
    """Return the test; None where it does not apply, or a log could not be read."""
    if not context.runs or not all(run.is_read for run in context.runs):
        return None

    def tested() -> RcpRow | None:
        return rcp_row(context, rcp_test(context, points), points)

    row = guarded(context.label, "testing this result set", tested)
    return None if isinstance(row, Unchecked) else row


def _reason(context: SetContext, points: Points | None) -> str:
    if context.rules is None:
        return f"round {context.round.name} does not have this benchmark"
    if not context.runs or not all(run.is_read for run in context.runs):
        return "a log of the set could not be read"
    if context.round.version < (1, 0):
        return "the RCP test exists from round 1.0 on"
    crash = crash_of(context, points)
    return f"the official checker crashes: {crash}" if crash else "the set could not be tested"


def _state(test: RcpRow | None) -> Verdict:
    if test is None or (test.mean is not None and isnan(test.mean)):
        return Verdict.NOT_CHECKED
    return Verdict.PASS if test.official_pass else Verdict.FAIL


# ---- output -------------------------------------------------------------------------------

_OF_SET = ("id", "submitter", "system", "benchmark", "division", "round", "path")


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
        _column(
            "test.margin_percent",
            "Margin",
            width=8,
            numbers=True,
            show=lambda n: "-" if n is None else margin_in_words(n),
        ),
        Column("Factor", 6, numbers=True, of=_factor),
        Column(
            "Test",
            11,
            of=attrgetter("state"),
            show=VERDICTS.__getitem__,
            style=lambda item: STYLES[item.state],
        ),
        *map(_column, ("test.normalization", "test.message")),
        *map(_column, ("test.no_limit_reason", "test.explanation")),
        Column(key="reason", of=attrgetter("reason")),
        Column(key="before", of=lambda item: _state(item.before) if item.is_custom else None),
    )


def _size(value: Any) -> str:
    return "-" if value in (None, -1) else size(to_float(value) or 0)


def _mean(value: float | None) -> str:
    return number(None if value is None or isnan(value) else value)


def _limit(item: TestedSet) -> str:
    if item.test and item.test.no_limit_reason:
        return "none"
    return number(item.test.minimum if item.test else None)


def _factor(item: TestedSet) -> str:
    is_normalised = item.test and item.test.official_pass and item.test.normalization > 1
    return f"{item.test.normalization:.4f}" if item.test and is_normalised else "-"


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
    by_benchmark = by_key((item.row.benchmark, item) for item in rows)
    groups = []
    for name, items in sorted(by_benchmark.items()):
        titled = [(title(item.row), item) for item in items]
        groups.append(Group(name, items, _remarks(titled, is_detailed=is_detailed)))
    if groups:
        terminal.table(Table(_columns(title), groups), apart=True)
    hidden = "; --verbose shows those that pass" if hides_passing else ""
    hidden = hidden if groups else "; no row to show: every set passes (--verbose shows them)"
    terminal.paragraph((f"{_summary(result)}{hidden}", PLAIN))
    terminal.paragraph((findings.round_in_words(result.report), PLAIN))
    return terminal.text()


def _remarks(items: Sequence[tuple[str, TestedSet]], *, is_detailed: bool) -> list[str]:
    """Return the remarks on sets, with the titles of their sets; equal remarks share a line."""
    titles = by_key(
        (remark, title)
        for title, item in items
        for remark in _remarks_of(item, is_detailed=is_detailed)
    )
    subjects = (names[0] if len(names) == 1 else f"{len(names)} sets" for names in titles.values())
    return [f"{subject}: {remark}" for subject, remark in zip(subjects, titles, strict=True)]


def _remarks_of(item: TestedSet, *, is_detailed: bool) -> Iterator[str]:
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
