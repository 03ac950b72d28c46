"""The hyperparameters of all submitters side by side, with the reference, and the outliers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.commands.review.round import (
    Cell,
    ReviewedRound,
    ReviewSection,
    column,
    table_of_cells,
    with_rows,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.infra.json_values import digits, finite_number
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import shown
from mlperf_pkg.render.table import Table, table_of
from mlperf_pkg.render.table import shown as table_cell
from mlperf_pkg.results.rcp import reference_hyperparameters
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.explain import benchmark_layers, conditions
from mlperf_pkg.rulebook.model import Benchmark, Rule
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import in_words, is_hyperparameter

UNPUBLISHED = "SET162"  # hyperparameters unlike all published ones
_EXACT = 1e15  # whole values of hyperparameters below it have all digits
_MOST_COLUMNS = 60  # in one table; hostile logs have more
_TEXT = (
    "A marked value differs from the reference at this batch size: from the reference convergence"
    " point (RCP), from the range of the two nearest points, or from the only value that the rules"
    " allow. If the runs of a set have several values, the value of most runs counts. Values that"
    " follow from the scale, such as the number of gradient accumulation steps, are not compared.",
    "In Closed, a value that the reference does not have is an outlier in four cases: (1) at least"
    " two other submitters at this batch size agree on another value; (2) the value differs from"
    " the reference by a factor of at least two, and this factor is at least the cube of the"
    " largest factor of other submitters; (3) there is no reference, and the value differs from"
    " all other values by a factor of ten; (4) the value is unlike all published values (SET162).",
)


class BenchmarkGroup(Struct, frozen=True):
    """The result sets of a benchmark in one division, by batch size and submitter."""

    benchmark: str
    division: str
    entries: tuple[LoggedHyperparameters, ...]
    reference: ReferenceHyperparameters

    @property
    def keys(self) -> list[str]:
        """The keys of hyperparameters in the logs."""
        keys = set[str]()
        for entry in self.entries:
            keys.update(entry.counts)
        keys.discard(BATCH_SIZE)
        return sorted(keys)


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the hyperparameters of a round: the outliers first, then a table of each benchmark."""
    contexts = reviewed.checked.contexts
    groups = groups_of(contexts, reviewed.companies)
    unlike = outliers_of(groups, reviewed.report.findings)
    tables = {"outliers": _outliers_table(unlike)}
    for group in groups:
        tables[f"{group.benchmark}-{group.division}"] = benchmark_table(group)
    text: tuple[str, ...] = _TEXT
    others = sum(context.rules is None for context in contexts)
    if others:
        sets = counted(others, "result set")
        text = (*text, f"Not shown: {sets} of a benchmark that is not in the round.")
    summary = tuple(_summary(unlike))
    return ReviewSection("hyperparameters", "Hyperparameters", text, with_rows(tables), summary)


def groups_of(
    contexts: Iterable[SetContext], companies: Mapping[str, Sequence[str]]
) -> list[BenchmarkGroup]:
    """Return the result sets by benchmark and division, Closed before Open.

    Result sets of a benchmark that is not in the round are left out. ``companies`` are those that
    submit a set, by its id.
    """
    by_name: dict[tuple[str, str], list[SetContext]] = {}
    for context in contexts:
        if context.rules is not None:
            name = (context.files.benchmark, division_of(context))
            by_name.setdefault(name, []).append(context)
    groups = []
    for (benchmark, division), members in sorted(by_name.items()):
        entries = []
        for context in members:
            owner = "+".join(companies.get(context.id, ()))
            entries.append(_entry(context, owner))
        entries.sort(key=lambda entry: (entry.size or 0, entry.submitter, entry.system, entry.path))
        keys = set[str]()
        for entry in entries:
            keys.update(entry.counts)
        reference = reference_of(members[0], keys)
        groups.append(BenchmarkGroup(benchmark, division, tuple(entries), reference))
    return groups


def _summary(unlike: Sequence[Outlier]) -> Iterator[str]:
    yield counted(len(unlike), "outlier")
    values_by_set: dict[tuple[str, str, str], list[str]] = {}
    for outlier in unlike:
        entry = outlier.entry
        result_set = (outlier.group.benchmark, entry.submitter, entry.system)
        values = values_by_set.setdefault(result_set, [])
        values.append(f"{outlier.key} {outlier.value}")
    for (benchmark, submitter, system), values in values_by_set.items():
        yield f"{benchmark} of {submitter} ({system}): {', '.join(values)}"


# ---- a benchmark --------------------------------------------------------------------------

_HEADS = ("Batch size", "Submitter", "System")


class _Line(Struct, frozen=True):
    """What the rules, a reference point or a result set say of the keys of a table.

    ``cells`` are the values of the keys, in their order; ``marked`` are the keys whose values
    differ from the reference.
    """

    size: Cell
    submitter: str
    system: str
    cells: tuple[Cell, ...]
    marked: Sequence[str] = ()


def benchmark_table(group: BenchmarkGroup) -> Table:
    """Return the hyperparameters that differ between sets, or from the reference."""
    keys = [key for key in group.keys if _differs(group, key)]
    shown = keys[:_MOST_COLUMNS]
    # Points come before the sets of their batch size.
    lines = sorted(_lines(group, shown), key=_place_in_table)
    marked = set[tuple[int, int]]()
    for row, line in enumerate(lines):
        for key in line.marked:
            marked.add((row, len(_HEADS) + shown.index(key)))
    rows = [(line.size, line.submitter, line.system, *line.cells) for line in lines]
    table = table_of_cells((*_HEADS, *shown), rows, marked=frozenset(marked))
    columns = [replace(column, show=_with_all_digits) for column in table.columns]
    title = f"{group.benchmark}, {group.division}: {counted(len(group.entries), 'result set')}"
    return replace(table, columns=columns, title=title, note=_note(group, keys))


def _place_in_table(line: _Line) -> int:
    if isinstance(line.size, int):
        return line.size
    return 0


def _differs(group: BenchmarkGroup, key: str) -> bool:
    """Return whether sets have different values of a key, or one that the reference lacks."""
    texts = {entry.words(key).lower() for entry in group.entries if entry.counts}
    return len(texts) > 1 or any(_is_marked(group, entry, key) for entry in group.entries)


def _is_marked(group: BenchmarkGroup, entry: LoggedHyperparameters, key: str) -> bool:
    value = entry.value(key)
    is_compared = bool(value) and key not in OF_SCALE
    return is_compared and group.reference.has(value, key, entry.size) is False


def _lines(group: BenchmarkGroup, keys: Sequence[str]) -> Iterator[_Line]:
    """Yield the lines of the rules, the points and the sets."""
    reference = group.reference
    if any(key in reference.rules for key in keys):
        yield _Line(None, "rules", "", tuple(map(reference.rules.get, keys)))
    sizes = set[float]()
    for entry in group.entries:
        sizes.update(reference.near(entry.size))
    for size in sizes:
        point = reference.points[size]
        cells = [_cell(point.get(key, "")) for key in keys]
        yield _Line(_size(size), "RCP", "", tuple(cells))
    for entry in group.entries:
        cells = [_cell(entry.words(key)) for key in keys]
        marked = [key for key in keys if _is_marked(group, entry, key)]
        yield _Line(_size(entry.size), entry.submitter, entry.system, tuple(cells), marked)


def _note(group: BenchmarkGroup, differing: Sequence[str]) -> str:
    """Return the hyperparameters that are equal in all sets, and the number of those not shown.

    ``differing`` are the keys of the others, of which a table shows the first.
    """
    empty = [f"{entry.submitter} {entry.system}" for entry in group.entries if not entry.counts]
    if len(empty) == len(group.entries):
        return "The logs have no hyperparameters."
    notes = list(_equal_in_all(group, differing))
    if empty:
        notes.append(f"Without hyperparameters in the logs: {', '.join(empty)}.")
    more = len(differing) - _MOST_COLUMNS
    if more > 0:
        notes.append(f"{counted(more, 'further hyperparameter')} not shown.")
    return " ".join(notes)


def _equal_in_all(group: BenchmarkGroup, differing: Sequence[str]) -> Iterator[str]:
    first = next(entry for entry in group.entries if entry.counts)
    referenced = []
    unreferenced = []
    for key in group.keys:
        if key in differing:
            continue
        text = f"{key} {first.words(key)}"
        if group.reference.values(key, first.size):
            referenced.append(text)
        else:
            unreferenced.append(text)
    if referenced:
        yield f"Equal in all sets and in the reference: {', '.join(referenced)}."
    if unreferenced:
        yield f"Equal in all sets, without a reference: {', '.join(unreferenced)}."


def _cell(value: str) -> Cell:
    """Return a number if all of its digits are shown, else text."""
    parsed = finite_number(value)
    if parsed is not None and abs(parsed) < _EXACT:
        return _size(parsed)
    return plain(value) or None


def _with_all_digits(value: Cell) -> str:
    """Return the text of a cell."""
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return table_cell(value)


def _size(value: float | None) -> Cell:
    if value is not None and value == int(value):
        return int(value)
    return value


# ---- the hyperparameters of a set ---------------------------------------------------------

BATCH_SIZE = "global_batch_size"
OF_SCALE = {
    "batchnorm_group_size",
    "gradient_accumulation_frequency",
    "gradient_accumulation_steps",
    "model_bn_span",
    "opt_gradient_accumulation_steps",
}
"""The hyperparameters that follow from the batch size and the number of accelerators."""

_HEAD_BYTES = 1 << 17  # of a log, which have its hyperparameters
_MOST_KEYS = 200  # of a log; the keys with rules come first

_PLAIN = frozenset({"above", "at_least", "type"})  # constraints that nearly every value meets

_SPELT = {  # names in reference points, and those of the same hyperparameters in logs
    "batchnorm_groupsize": "batchnorm_group_size",
    "lora_r": "lora_rank",
    "max_steps": "opt_learning_rate_training_steps",
    "model_eva_ema_factor": "model_eval_ema_factor",
    "opt_gradient_accumulation_steps": "gradient_accumulation_steps",
    "opt_epsilon": "opt_lamb_epsilon",
    "opt_learning_decay_factor": "opt_learning_rate_decay_factor",
    "opt_learning_decay_steps": "opt_learning_rate_decay_steps",
    "opt_max_grad_norm": "opt_gradient_clip_norm",
    "optimizer": "opt_name",
}

_OF_SAMPLE = frozenset({("stable_diffusion", "opt_base_learning_rate")})
"""The hyperparameters that reference points give per sample, and logs per batch."""


class LoggedHyperparameters(Struct, frozen=True):
    """The hyperparameters of a result set, as logged.

    ``submitter`` is the name of the submission, ``owner`` that of its companies. ``counts`` maps
    each key, including the batch size, to its values (JSON) with the number of runs that log them,
    the most frequent first; numbers have six significant digits. ``exact`` are the values with all
    digits, where they have more. ``size`` is the batch size of most runs.
    """

    path: str
    submitter: str
    owner: str
    system: str
    size: float | None
    counts: Mapping[str, Mapping[str, int]]
    exact: Mapping[tuple[str, str], str] = {}

    def value(self, key: str) -> str:
        """Return the value of most runs, empty if they do not log the key."""
        return next(iter(self.counts.get(key, ())), "")

    def words(self, key: str) -> str:
        """Return all values of the runs."""
        values = [self.exact.get((key, value), value) for value in self.counts.get(key, ())]
        return " or ".join(map(plain, values))


def division_of(context: SetContext) -> str:
    """Return the division of a set: that of its system, else that of its logs."""
    if context.division_by_rules:
        return context.division_by_rules
    for run in context.runs:
        if run.division:
            return run.division.lower()
    return "unknown division"


def _entry(context: SetContext, owner: str) -> LoggedHyperparameters:
    """Return the hyperparameters of a set, without killed runs and runs of other benchmarks."""
    name = context.files.benchmark
    runs = [run for run in context.runs if not run.killed and run.benchmark == name]
    logged: dict[str, list[str]] = {}
    for run in runs:
        for batch_size in run.batch_sizes[:1]:
            logged.setdefault(BATCH_SIZE, []).append(batch_size)
    for run in runs:
        for key, value in islice(run.hyperparameters.items(), _MOST_KEYS):
            logged.setdefault(key, []).append(value)
    counts = {key: dict(Counter(values).most_common()) for key, values in logged.items()}
    submitter = context.submitter
    if not submitter:
        submitter = context.runs[0].text("org") if context.runs else ""
    system = " ".join(filter(None, (context.files.system, context.files.scaling_mode)))
    size = next(iter(counts.get(BATCH_SIZE, ())), "")
    return LoggedHyperparameters(
        context.path,
        submitter,
        owner or submitter,
        system,
        finite_number(size),
        counts,
        _exact(runs, context.sources),
    )


def _exact(runs: Iterable[Run], sources: Mapping[str, Source]) -> dict[tuple[str, str], str]:
    """Return the values of which runs hold six digits and logs have more, by key and value."""
    exact: dict[tuple[str, str], str] = {}
    for run in runs:
        cut = {pair for pair in run.hyperparameters.items() if finite_number(pair[1]) is not None}
        cut -= exact.keys()
        if not cut or run.path not in sources:
            continue
        keys = {key for key, _ in cut}
        source = sources[run.path]
        with suppress(OSError, UserError), source.open() as stream:
            head = BytesIO(stream.read(_HEAD_BYTES))
            for record in filter(None, LogReader(head, run.path, lambda _: None)):
                if isinstance(record.key, str) and record.key in keys:
                    exact.setdefault((record.key, in_words(record.value)), shown(record.value))
    return {
        pair: text for pair, text in exact.items() if finite_number(text) != finite_number(pair[1])
    }


# ---- the reference ------------------------------------------------------------------------


class ReferenceHyperparameters(Struct, frozen=True):
    """The hyperparameters of the reference points by batch size, named as in logs.

    ``fixed`` are the values that the rules require, ``rules`` the requirements in words;
    ``derived`` are the keys whose values follow from others by a formula of the rules.
    """

    points: Mapping[float, Mapping[str, str]]
    fixed: Mapping[str, str]
    rules: Mapping[str, str]
    derived: frozenset[str]

    def near(self, size: float | None) -> list[float]:
        """Return the batch sizes of the point of this size, or of those on either side."""
        if size is None:
            return []
        if size in self.points:
            return [size]
        below = [batch_size for batch_size in self.points if batch_size < size]
        above = [batch_size for batch_size in self.points if batch_size > size]
        return [*sorted(below)[-1:], *sorted(above)[:1]]

    def values(self, key: str, size: float | None) -> list[str]:
        """Return the value at a batch size, or those of the two points around it; may be empty.

        Outside the range of the points, return the value on which all of them agree.
        """
        near = self.near(size)
        is_within = size in self.points or len(near) > 1
        values = self._values(key, near if is_within else self.points)
        if values and (is_within or len(values) == 1):
            return values
        if key in self.fixed:
            return [self.fixed[key]]
        return []

    def has(self, value: str, key: str, size: float | None) -> bool | None:
        """Return whether the reference has a value, or values on both sides of it.

        None if that is unknown: outside the range of batch sizes, a value is only known to be
        between those of all points.
        """
        values = self.values(key, size)
        if not values:
            return _is_among(value, self._values(key, self.points)) or None
        return _is_among(value, values)

    def _values(self, key: str, sizes: Iterable[float]) -> list[str]:
        values: list[str] = []
        for size in sizes:
            value = self.points[size].get(key)
            if value is not None and value not in values:
                values.append(value)
        return values


def _is_among(value: str, values: Sequence[str]) -> bool:
    parsed = finite_number(value)
    range_ = limits(values)
    if parsed is not None and range_ is not None:
        return range_[0] <= parsed <= range_[1]
    return value.lower() in (text.lower() for text in values)


def limits(values: Sequence[str]) -> tuple[float, float] | None:
    """Return the least and the greatest of values; None if they are not all numbers."""
    numbers = []
    for value in values:
        parsed = finite_number(value)
        if parsed is None:
            return None
        numbers.append(parsed)
    if numbers:
        return (min(numbers), max(numbers))
    return None


def plain(value: str) -> str:
    """Return a value in JSON without the quotation marks of a string."""
    return value.strip('"')


def reference_of(context: SetContext, keys: Collection[str]) -> ReferenceHyperparameters:
    """Return the reference for the benchmark of a set; ``keys`` are those in logs.

    The rules on values are those of the Closed division.
    """
    fixed: dict[str, str] = {}
    requirements: dict[str, str] = {}
    derived = set[str]()
    if context.rules and division_of(context) == "closed":
        for key, rules in _rules(context.rules).items():
            for rule in rules:
                if "equals" in rule.constraints:
                    fixed[key] = in_words(rule.constraints["equals"])
                if rule.formula:
                    derived.add(key)
            words = _words(rules)
            if words:
                requirements[key] = words
    points = _points_as_logged(context, keys)
    return ReferenceHyperparameters(points, fixed, requirements, frozenset(derived))


def _points_as_logged(context: SetContext, keys: Collection[str]) -> dict[float, dict[str, str]]:
    """Return the reference points by batch size, with the names that logs use."""
    benchmark = context.files.benchmark
    round_ = context.round
    records = reference_hyperparameters(round_.usage, round_.ruleset, benchmark)
    points: dict[float, dict[str, str]] = {}
    for size, values in records.items():
        points[size] = {}
        for name, value in values.items():
            candidates = (f"{values.get('optimizer')}_{name}", name, _SPELT.get(name, name))
            key = next((candidate for candidate in candidates if candidate in keys), name)
            is_of_sample = (benchmark, name) in _OF_SAMPLE and isinstance(value, float)
            points[size][key] = in_words(value * size if is_of_sample else value)
    return points


def _rules(benchmark: Benchmark) -> dict[str, list[Rule]]:
    """Return the rules of the Closed division on each hyperparameter, for all optimizers.

    Rules that only the official checker has are left out.
    """
    rules_by_key: dict[str, list[Rule]] = {}
    for layer in benchmark_layers(benchmark, "closed"):
        for key, rules in layer.rules.items():
            if not is_hyperparameter(key):
                continue
            for rule in rules:
                if rule.basis is not Basis.OFFICIAL:
                    rules_by_key.setdefault(key, []).append(rule)
    return rules_by_key


def _words(rules: Sequence[Rule]) -> str:
    """Return the requirements of rules in words, without those that nearly every value meets."""
    requirements: dict[str, None] = {}
    for rule in rules:
        if rule.formula or rule.constraints.keys() - _PLAIN:
            requirements.update(dict.fromkeys(filter(None, conditions(rule))))
    return " and ".join(requirements)


# ---- outliers -----------------------------------------------------------------------------

_COMMON = 3  # times as many submitters as have yet other values
OFTEN = 2  # other submitters that agree, or with which a value is compared
TWICE = 2.0
TENFOLD = 10.0
CUBED = 3  # a value is as far from the reference as the farthest other one, three times over

_APART = OF_SCALE | {BATCH_SIZE}
_IN_STEPS = ("_steps", "_step")  # reference points and logs have epochs in some of them
_OF_LENGTH = (*_IN_STEPS, "_epochs", "_samples")


class Outlier(Struct, frozen=True):
    """A value of a hyperparameter unlike that of others, and the reason in words."""

    group: BenchmarkGroup
    entry: LoggedHyperparameters
    key: str
    reference: Sequence[str]
    why: str

    @property
    def value(self) -> str:
        """All values of the runs."""
        return self.entry.words(self.key)


_OUTLIERS = (
    column("Benchmark", "group.benchmark"),
    column("Batch size", lambda outlier: _size(outlier.entry.size), numbers=True),
    column("Submitter", "entry.submitter"),
    column("System", "entry.system"),
    column("Hyperparameter", "key"),
    column("Value", "value"),
    column("Reference", lambda outlier: " to ".join(map(plain, outlier.reference))),
    column("Why", "why"),
)
_VALUE = 5  # the place of the value among the columns


def _outliers_table(unlike: Sequence[Outlier]) -> Table:
    marked = frozenset((row, _VALUE) for row in range(len(unlike)))
    return table_of(_OUTLIERS, unlike, title="Outliers", marked=marked)


def outliers_of(groups: Iterable[BenchmarkGroup], findings: Iterable[Finding]) -> list[Outlier]:
    """Return the outliers among the Closed sets of a round."""
    published: dict[tuple[str, str], str] = {}
    for finding in findings:
        if finding.code == UNPUBLISHED:
            for actual, expected in zip(finding.found, finding.expected, strict=True):
                reason = f"all published sets have {expected.partition(' ')[2]}"
                published[finding.about, actual.partition(" ")[0]] = reason
    unlike: list[Outlier] = []
    for group in groups:
        if group.division == "closed":
            unlike.extend(outliers(group, published))
    return unlike


def outliers(group: BenchmarkGroup, published: Mapping[tuple[str, str], str]) -> Iterator[Outlier]:
    """Yield the outliers of a benchmark, one for each value.

    Values that the reference has at the batch size are not outliers, and neither are values that
    follow from others or from the scale. ``published`` has, by path and key, the reason why a
    value is unlike all published ones.
    """
    reference = group.reference
    keys = [key for key in group.keys if key not in _APART | reference.derived]
    held = {key: _held(key, group.entries) for key in keys}
    for entry in group.entries:
        for key in keys:
            value = entry.value(key)
            if not value or reference.has(value, key, entry.size):
                continue
            reasons = list(_reasons(entry, key, reference, held[key]))
            if (entry.path, key) in published:
                reasons.append(published[entry.path, key])
            if reasons:
                values = reference.values(key, entry.size)
                yield Outlier(group, entry, key, values, "; ".join(reasons))


_Held = dict[tuple[float | None, str], Counter[str]]
"""The number of result sets of each submitter by batch size and value; the value may be empty."""


def _held(key: str, entries: Iterable[LoggedHyperparameters]) -> _Held:
    held: _Held = {}
    for entry in entries:
        owners = held.setdefault((entry.size, entry.value(key)), Counter())
        owners[entry.owner] += 1
    return held


def _reasons(
    entry: LoggedHyperparameters, key: str, reference: ReferenceHyperparameters, held: _Held
) -> Iterator[str]:
    others: _Held = {}  # held by others, too
    for pair, owners in held.items():
        if owners.keys() - {entry.owner}:
            others[pair] = owners
    yield from _alone(entry, key, others)
    if reference.values(key, entry.size):
        if not key.endswith(_IN_STEPS):
            yield from _far(entry, key, others, reference)
    elif not key.endswith(_OF_LENGTH):
        yield from _apart(entry, key, others)


def _alone(entry: LoggedHyperparameters, key: str, others: _Held) -> Iterator[str]:
    """Yield a reason if nearly all others at this batch size agree on another value."""
    owners_by_value: dict[str, set[str]] = {}
    for (size, value), owners in others.items():
        if value and size == entry.size:
            owners_by_value.setdefault(value.lower(), set()).update(owners.keys() - {entry.owner})
    if not owners_by_value:
        return
    total = len(set[str]().union(*owners_by_value.values()))
    common = max(owners_by_value, key=lambda value: len(owners_by_value[value]))
    agreeing = len(owners_by_value.pop(common))
    dissenting = len(set[str]().union(*owners_by_value.values()))
    is_common = agreeing >= OFTEN and agreeing >= _COMMON * dissenting
    if not is_common or common == entry.value(key).lower():
        return
    if dissenting:
        share = f"{agreeing} of {total}"
    elif agreeing == OFTEN:
        share = "both"
    else:
        share = f"all {agreeing}"
    yield f"{share} other submitters at this batch size have {plain(common)}"


def _far(
    entry: LoggedHyperparameters, key: str, others: _Held, reference: ReferenceHyperparameters
) -> Iterator[str]:
    """Yield a reason if a value is much farther from the reference than those of all others."""
    factor = _factor(entry.value(key), key, entry.size, reference) or 0.0
    if factor < TWICE:  # which all reasons below need
        return
    factors = []
    compared = 0
    total = 0
    for (size, value), owners in others.items():
        sets = owners.total() - owners[entry.owner]
        total += sets
        other_factor = _factor(value, key, size, reference)
        if other_factor is not None:
            factors.append(other_factor)
            compared += sets
    differs = f"differs by a factor of {factor:.3g} from the reference"
    if not factors:
        if factor >= TENFOLD:
            yield differs
        return
    most = max(factors)
    if factor < most**CUBED:
        return
    share = f"{compared} of {total}" if compared < total else "all"
    if most == 1:
        yield f"{differs}, which {share} others have"
    else:
        yield f"{differs}, {share} others by at most {most:.3g}"


def _factor(
    text: str, key: str, size: float | None, reference: ReferenceHyperparameters
) -> float | None:
    """Return the factor by which a value differs from the reference, at least 1; None: unknown."""
    value = finite_number(text)
    range_ = limits(reference.values(key, size))
    if value is None or range_ is None or value <= 0 or range_[0] <= 0:
        return None
    return max(range_[0] / value, value / range_[1], 1.0)


def _apart(entry: LoggedHyperparameters, key: str, others: _Held) -> Iterator[str]:
    """Yield a reason if a value without a reference differs from all others by a factor of ten."""
    values = []
    submitters = set[str]()
    for (_, other_value), owners in others.items():
        if other_value:
            values.append(other_value)
            submitters.update(owners)
    submitters.discard(entry.owner)
    value = finite_number(entry.value(key))
    range_ = limits(values)
    if value is None or range_ is None or len(submitters) < OFTEN:
        return
    least, greatest = range_
    if value <= 0 or least <= 0:
        return
    if value >= TENFOLD * greatest or value * TENFOLD <= least:
        words = " to ".join(dict.fromkeys(digits(limit) for limit in range_))
        yield f"{counted(len(submitters), 'other submitter')} have {words}"
