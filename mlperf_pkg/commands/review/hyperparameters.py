"""The hyperparameters of all submitters side by side, with the reference, and the outliers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.commands.review.model import Cell, Round, Section, Table
from mlperf_pkg.commands.review.outliers import Outlier, outliers
from mlperf_pkg.commands.review.settings import (
    BATCH_SIZE,
    OF_SCALE,
    Entry,
    Reference,
    division_of,
    entry_of,
    number,
    plain,
    reference_of,
)
from mlperf_pkg.findings import Finding
from mlperf_pkg.results.wording import counted

UNPUBLISHED = "SET162"  # hyperparameters unlike all published ones
_EXACT = 1e6  # values of hyperparameters have six digits
_MOST_LINES = 8  # that may be columns
_MOST_COLUMNS = 60  # in one table; hostile logs have more
_TEXT = (
    "A marked value differs from the reference at this batch size: from the reference convergence"
    " point (RCP), from the range of the two nearest points, or from the only value that the rules"
    " allow. The value of most runs counts. Values that follow from the scale, such as the number"
    " of gradient accumulation steps, are not compared.",
    "In Closed, a value that the reference does not have is an outlier in four cases. At least two"
    " other submitters at this batch size agree on another value. It differs from the reference by"
    " a factor of at least two, and of at least the cube of the largest factor of other submitters."
    " There is no reference, and it differs from all others by a factor of ten. It is unlike all"
    " published values (SET162).",
)


class Group(Struct, frozen=True):
    """The result sets of a benchmark in one division, by batch size and submitter."""

    benchmark: str
    division: str
    entries: tuple[Entry, ...]
    reference: Reference

    @property
    def keys(self) -> list[str]:
        """The keys of hyperparameters in the logs."""
        return sorted({key for entry in self.entries for key in entry.counts} - {BATCH_SIZE})


def section(reviewed: Round) -> Section:
    """Return the hyperparameters of a round: the outliers first, then a table of each benchmark."""
    groups = groups_of(reviewed.checked.contexts)
    unlike = outliers_of(groups, reviewed.report.findings)
    differing = list(_differing_runs(groups))
    tables = [_outliers_table(unlike), _differing_table(differing)]
    others = sum(not _is_of_round(context) for context in reviewed.checked.contexts)
    rest = f"Not shown: {counted(others, 'result set')} of a benchmark that is not in the round."
    return Section(
        "hyperparameters",
        "Hyperparameters",
        (*_TEXT, rest) if others else _TEXT,
        (*(table for table in tables if table.rows), *(table_of(group) for group in groups)),
        tuple(_summary(unlike, differing)),
    )


def groups_of(contexts: Iterable[SetContext]) -> list[Group]:
    """Return the result sets by benchmark and division, Closed before Open.

    Result sets of a benchmark that is not in the round are left out.
    """
    by_name: dict[tuple[str, str], list[SetContext]] = {}
    for context in filter(_is_of_round, contexts):
        name = (context.files.benchmark, division_of(context))
        by_name.setdefault(name, []).append(context)
    return [_group(*name, members) for name, members in sorted(by_name.items())]


def _is_of_round(context: SetContext) -> bool:
    return context.rules is not None


def _group(benchmark: str, division: str, contexts: Sequence[SetContext]) -> Group:
    unsorted = map(entry_of, contexts)
    entries = sorted(unsorted, key=lambda e: (e.size or 0, e.submitter, e.system, e.path))
    keys = {key for entry in entries for key in entry.counts}
    return Group(benchmark, division, tuple(entries), reference_of(contexts[0], keys))


# ---- outliers -----------------------------------------------------------------------------


def outliers_of(
    groups: Iterable[Group], findings: Iterable[Finding]
) -> list[tuple[Group, Outlier]]:
    """Return the outliers of a round, each with its group."""
    published = {
        (finding.about, key): f"all published sets have {expected.partition(' ')[2]}"
        for finding in findings
        if finding.code == UNPUBLISHED
        for actual, expected in zip(finding.found, finding.expected, strict=True)
        for key in [actual.partition(" ")[0]]
    }
    return [
        (group, outlier)
        for group in groups
        if group.division == "closed"
        for outlier in outliers(group.entries, group.reference, published)
    ]


def _summary(
    unlike: Sequence[tuple[Group, Outlier]], differing: Sequence[tuple[str, ...]]
) -> Iterator[str]:
    sets = len({row[:4] for row in differing})
    yield f"{counted(len(unlike), 'outlier')}; runs differ in {counted(sets, 'result set')}"
    by_set: dict[str, list[str]] = {}
    for group, outlier in unlike:
        of_set = f"{group.benchmark} of {outlier.entry.submitter} ({outlier.entry.system})"
        by_set.setdefault(of_set, []).append(f"{outlier.key} {outlier.entry.words(outlier.key)}")
    yield from (f"{of_set}: {', '.join(values)}" for of_set, values in by_set.items())


def _outliers_table(unlike: Sequence[tuple[Group, Outlier]]) -> Table:
    columns = ("Benchmark", "Batch size", "Submitter", "System", "Hyperparameter")
    rows = tuple(
        (
            group.benchmark,
            _size(outlier.entry.size),
            outlier.entry.submitter,
            outlier.entry.system,
            outlier.key,
            outlier.entry.words(outlier.key),
            " to ".join(map(plain, group.reference.values(outlier.key, outlier.entry.size))),
            outlier.why,
        )
        for group, outlier in unlike
    )
    marked = frozenset((row, len(columns)) for row in range(len(rows)))
    return Table("outliers", "Outliers", (*columns, "Value", "Reference", "Why"), rows, marked)


# ---- runs that differ ---------------------------------------------------------------------


def _differing_runs(groups: Iterable[Group]) -> Iterator[tuple[str, ...]]:
    for group in groups:
        for entry in group.entries:
            for key, counts in sorted(entry.counts.items()):
                if len(counts) > 1:
                    values = (f"{plain(v)} in {counted(n, 'run')}" for v, n in counts.items())
                    name = (group.benchmark, group.division, entry.submitter, entry.system)
                    yield (*name, key, ", ".join(values))


def _differing_table(rows: Sequence[tuple[str, ...]]) -> Table:
    columns = ("Benchmark", "Division", "Submitter", "System", "Hyperparameter", "Values")
    title = "Result sets whose runs differ"
    return Table("differing-runs", title, columns, tuple(rows))


# ---- a benchmark --------------------------------------------------------------------------


class _Line(Struct, frozen=True):
    """The values of a set, a reference point or the rules by key, and the marked keys."""

    size: Cell
    submitter: str
    system: str
    values: dict[str, Cell]
    marked: frozenset[str] = frozenset()

    @property
    def head(self) -> tuple[Cell, str, str]:
        return self.size, self.submitter, self.system

    @property
    def title(self) -> str:
        return f"{self.submitter} {self.system or self.size or ''}".strip()


def table_of(group: Group) -> Table:
    """Return the hyperparameters that differ between sets, or from the reference.

    Sets are rows; a few of them are columns if that makes the table narrower.
    """
    keys = [key for key in group.keys if _differs(group, key)]
    shown, rest = keys[:_MOST_COLUMNS], keys[_MOST_KEYS:]
    lines = list(_lines(group, shown))
    titles = ["Batch size", "Submitter", "System", *shown]
    rows = [(*line.head, *(line.values.get(key) for key in shown)) for line in lines]
    marked = {
        (row, 3 + column)
        for row, line in enumerate(lines)
        for column, key in enumerate(shown)
        if key in line.marked
    }
    turned = [tuple(row) for row in zip(titles, *rows, strict=True)]
    if len(lines) <= _MOST_LINES and _width(turned) < _width([titles, *rows]):
        titles = ["Hyperparameter", *(line.title for line in lines)]
        rows = [turned[0], *turned[3:]]
        marked = {(column - 2, row + 1) for row, column in marked}
    return Table(
        f"{group.benchmark}-{group.division}",
        f"{group.benchmark}, {group.division}: {counted(len(group.entries), 'result set')}",
        tuple(titles),
        tuple(rows),
        frozenset(marked),
        _note(group, keys, rest),
    )


def _differs(group: Group, key: str) -> bool:
    """Return whether sets have different values of a key, or one that the reference lacks."""
    texts = {entry.words(key).lower() for entry in group.entries if entry.counts}
    return len(texts) > 1 or any(_is_marked(group, entry, key) for entry in group.entries)


def _is_marked(group: Group, entry: Entry, key: str) -> bool:
    value = entry.value(key)
    is_compared = bool(value) and key not in OF_SCALE
    return is_compared and group.reference.has(value, key, entry.size) is False


def _lines(group: Group, keys: Sequence[str]) -> Iterator[_Line]:
    """Yield the rules, and the points and sets by batch size, the points first."""
    reference = group.reference
    rules = {key: reference.rules[key] for key in keys if key in reference.rules}
    if rules:
        yield _Line(None, "rules", "", dict(rules))
    sizes = {size for entry in group.entries for size in reference.near(entry.size)}
    lines = [_Line(_size(size), "RCP", "", _cells(reference.points[size])) for size in sizes]
    for entry in group.entries:
        marked = frozenset(key for key in keys if _is_marked(group, entry, key))
        values = {key: _cell(entry.words(key)) for key in keys}
        lines.append(_Line(_size(entry.size), entry.submitter, entry.system, values, marked))
    yield from sorted(lines, key=lambda line: line.size if isinstance(line.size, int) else 0)


def _note(group: Group, keys: Sequence[str], rest: Sequence[str]) -> str:
    """Return the hyperparameters that are equal in all sets, and the number of those not shown."""
    constant = [key for key in group.keys if key not in keys]
    first = next((entry for entry in group.entries if entry.counts), None)
    if first is None:
        return "The logs have no hyperparameters."
    compared = [key for key in constant if group.reference.values(key, first.size)]
    kinds = {
        " and in the reference": compared,
        ", without a reference": sorted({*constant} - {*compared}),
    }
    notes = [
        f"Equal in all sets{kind}: {', '.join(f'{key} {first.words(key)}' for key in of_kind)}."
        for kind, of_kind in kinds.items()
        if of_kind
    ]
    if empty := [f"{e.submitter} {e.system}" for e in group.entries if not e.counts]:
        notes.append(f"Without hyperparameters in the logs: {', '.join(empty)}.")
    if rest:
        notes.append(f"{counted(len(rest), 'further hyperparameter')} not shown.")
    return " ".join(notes)


def _width(rows: Sequence[Sequence[Cell]]) -> int:
    """Return the width of a table in characters: that of the widest cells of all columns."""
    return sum(max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True))


def _cells(values: Mapping[str, str]) -> dict[str, Cell]:
    return {key: _cell(value) for key, value in values.items()}


def _cell(value: str) -> Cell:
    """Return a number if all of its digits are shown, else text."""
    parsed = number(value)
    return _size(parsed) if parsed is not None and abs(parsed) < _EXACT else plain(value) or None


def _size(value: float | None) -> Cell:
    return int(value) if value is not None and value == int(value) else value
