"""The hyperparameters of all submitters side by side, with the reference, and the outliers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.commands.review.round import (
    Cell,
    ReviewedRound,
    ReviewSection,
    column,
    table_of_cells,
    with_rows,
)
from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.text import letters
from mlperf_pkg.render.table import Table, by_key, table_of
from mlperf_pkg.results.rcp import reference_hyperparameters
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.explain import benchmark_layers, conditions
from mlperf_pkg.rulebook.model import Benchmark, Rule
from mlperf_pkg.run.readers import in_words, is_hyperparameter

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


class BenchmarkGroup(Struct, frozen=True):
    """The result sets of a benchmark in one division, by batch size and submitter."""

    benchmark: str
    division: str
    entries: tuple[LoggedHyperparameters, ...]
    reference: ReferenceHyperparameters

    @property
    def keys(self) -> list[str]:
        """The keys of hyperparameters in the logs."""
        return sorted({key for entry in self.entries for key in entry.counts} - {BATCH_SIZE})


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the hyperparameters of a round: the outliers first, then a table of each benchmark."""
    contexts = reviewed.checked.contexts
    groups = groups_of(contexts)
    unlike = outliers_of(groups, reviewed.report.findings)
    differing = list(_differing_runs(groups))
    marked = frozenset((row, _VALUE) for row in range(len(unlike)))
    title = "Result sets whose runs differ"
    tables = {
        "outliers": table_of(_OUTLIERS, unlike, title="Outliers", marked=marked),
        "differing-runs": table_of_cells(_DIFFERING, differing, title=title),
        **{f"{group.benchmark}-{group.division}": benchmark_table(group) for group in groups},
    }
    others = sum(context.rules is None for context in contexts)
    rest = f"Not shown: {counted(others, 'result set')} of a benchmark that is not in the round."
    text = (*_TEXT, rest) if others else _TEXT
    summary = tuple(_summary(unlike, differing))
    return ReviewSection("hyperparameters", "Hyperparameters", text, with_rows(tables), summary)


def groups_of(contexts: Iterable[SetContext]) -> list[BenchmarkGroup]:
    """Return the result sets by benchmark and division, Closed before Open.

    Result sets of a benchmark that is not in the round are left out.
    """
    of_round = (context for context in contexts if context.rules is not None)
    by_name = by_key(((c.files.benchmark, division_of(c)), c) for c in of_round)
    groups = []
    for (benchmark, division), members in sorted(by_name.items()):
        entries = list(map(entry_of, members))
        entries.sort(key=lambda entry: (entry.size or 0, entry.submitter, entry.system, entry.path))
        keys = {key for entry in entries for key in entry.counts}
        reference = reference_of(members[0], keys)
        groups.append(BenchmarkGroup(benchmark, division, tuple(entries), reference))
    return groups


def _summary(unlike: Sequence[Outlier], differing: Sequence[tuple[str, ...]]) -> Iterator[str]:
    sets = len({row[:4] for row in differing})
    yield f"{counted(len(unlike), 'outlier')}; runs differ in {counted(sets, 'result set')}"
    by_set = by_key(((o.group.benchmark, o.entry.submitter, o.entry.system), o) for o in unlike)
    for (benchmark, submitter, system), members in by_set.items():
        values = ", ".join(f"{outlier.key} {outlier.value}" for outlier in members)
        yield f"{benchmark} of {submitter} ({system}): {values}"


_DIFFERING = ("Benchmark", "Division", "Submitter", "System", "Hyperparameter", "Values")


def _differing_runs(groups: Iterable[BenchmarkGroup]) -> Iterator[tuple[str, ...]]:
    for group, entry in ((one, entry) for one in groups for entry in one.entries):
        name = (group.benchmark, group.division, entry.submitter, entry.system)
        for key, counts in sorted(entry.counts.items()):
            if len(counts) > 1:
                values = (f"{plain(v)} in {counted(n, 'run')}" for v, n in counts.items())
                yield (*name, key, ", ".join(values))


# ---- a benchmark --------------------------------------------------------------------------


def benchmark_table(group: BenchmarkGroup) -> Table:
    """Return the hyperparameters that differ between sets, or from the reference.

    Sets are rows; a few of them are columns if that makes the table narrower.
    """
    keys = [key for key in group.keys if _differs(group, key)]
    shown = keys[:_MOST_COLUMNS]
    rest = keys[_MOST_COLUMNS:]
    titles = ["Batch size", "Submitter", "System", *shown]
    # Points come before the sets of their batch size.
    lines = sorted(_lines(group, shown), key=lambda o: o[0][0] if isinstance(o[0][0], int) else 0)
    rows = [row for row, _ in lines]
    marked = {(row, 3 + shown.index(key)) for row, (_, own) in enumerate(lines) for key in own}
    turned = [tuple(row) for row in zip(titles, *rows, strict=True)]
    if len(lines) <= _MOST_LINES and _width(turned) < _width([titles, *rows]):
        names = [f"{submitter} {system or size or ''}" for size, submitter, system, *_ in rows]
        titles = ["Hyperparameter", *map(str.strip, names)]
        rows = [turned[0], *turned[3:]]
        marked = {(place - 2, row + 1) for row, place in marked}
    title = f"{group.benchmark}, {group.division}: {counted(len(group.entries), 'result set')}"
    note = _note(group, keys, rest)
    return table_of_cells(titles, rows, title=title, marked=frozenset(marked), note=note)


def _differs(group: BenchmarkGroup, key: str) -> bool:
    """Return whether sets have different values of a key, or one that the reference lacks."""
    texts = {entry.words(key).lower() for entry in group.entries if entry.counts}
    return len(texts) > 1 or any(_is_marked(group, entry, key) for entry in group.entries)


def _is_marked(group: BenchmarkGroup, entry: LoggedHyperparameters, key: str) -> bool:
    value = entry.value(key)
    is_compared = bool(value) and key not in OF_SCALE
    return is_compared and group.reference.has(value, key, entry.size) is False


def _lines(
    group: BenchmarkGroup, keys: Sequence[str]
) -> Iterator[tuple[tuple[Cell, ...], list[str]]]:
    """Yield the cells of the rules, the points and the sets, with the marked keys."""
    reference = group.reference
    if any(key in reference.rules for key in keys):
        yield (None, "rules", "", *map(reference.rules.get, keys)), []
    for size in {size for entry in group.entries for size in reference.near(entry.size)}:
        values = reference.points[size]
        yield (_size(size), "RCP", "", *(_cell(values.get(key, "")) for key in keys)), []
    for entry in group.entries:
        cells = (_cell(entry.words(key)) for key in keys)
        marked = [key for key in keys if _is_marked(group, entry, key)]
        yield (_size(entry.size), entry.submitter, entry.system, *cells), marked


def _note(group: BenchmarkGroup, keys: Sequence[str], rest: Sequence[str]) -> str:
    """Return the hyperparameters that are equal in all sets, and the number of those not shown."""
    first = next((entry for entry in group.entries if entry.counts), None)
    if first is None:
        return "The logs have no hyperparameters."
    kinds: dict[str, list[str]] = {" and in the reference": [], ", without a reference": []}
    compared, others = kinds.values()
    for key in group.keys:
        if key not in keys:
            of_kind = compared if group.reference.values(key, first.size) else others
            of_kind.append(f"{key} {first.words(key)}")
    notes = [f"Equal in all sets{kind}: {', '.join(made)}." for kind, made in kinds.items() if made]
    empty = [f"{e.submitter} {e.system}" for e in group.entries if not e.counts]
    if empty:
        notes.append(f"Without hyperparameters in the logs: {', '.join(empty)}.")
    if rest:
        notes.append(f"{counted(len(rest), 'further hyperparameter')} not shown.")
    return " ".join(notes)


def _width(rows: Sequence[Sequence[Cell]]) -> int:
    """Return the width of a table in characters: that of the widest cells of all columns."""
    return sum(max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True))


def _cell(value: str) -> Cell:
    """Return a number if all of its digits are shown, else text."""
    parsed = number(value)
    return _size(parsed) if parsed is not None and abs(parsed) < _EXACT else plain(value) or None


def _size(value: float | None) -> Cell:
    return int(value) if value is not None and value == int(value) else value


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

    ``counts`` maps each key, including the batch size, to its values (JSON) with the number of
    runs that log them, the most frequent first. ``size`` is the batch size of most runs.
    """

    path: str
    submitter: str
    system: str
    size: float | None
    counts: Mapping[str, Mapping[str, int]]

    def value(self, key: str) -> str:
        """Return the value of most runs, empty if they do not log the key."""
        return next(iter(self.counts.get(key, ())), "")

    def words(self, key: str) -> str:
        """Return all values of the runs."""
        return " or ".join(map(plain, self.counts.get(key, ())))


def division_of(context: SetContext) -> str:
    """Return the division of a set: that of its system, else that of its logs."""
    logged = (run.division.lower() for run in context.runs if run.division)
    return context.division_by_rules or next(logged, "unknown division")


def entry_of(context: SetContext) -> LoggedHyperparameters:
    """Return the hyperparameters of a set, without killed runs and runs of other benchmarks."""
    name = context.files.benchmark
    runs = [run for run in context.runs if not run.killed and run.benchmark == name]
    sizes = ((BATCH_SIZE, size) for run in runs for size in run.batch_sizes[:1])
    others = (pair for run in runs for pair in islice(run.hyperparameters.items(), _MOST_KEYS))
    logged = by_key((*sizes, *others))
    ordered = {key: dict(Counter(values).most_common()) for key, values in logged.items()}
    submitter = context.submitter or next((run.text("org") for run in context.runs), "")
    system = " ".join(filter(None, (context.files.system, context.files.scaling_mode)))
    size = next(iter(ordered.get(BATCH_SIZE, ())), "")
    return LoggedHyperparameters(context.path, submitter, system, number(size), ordered)


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
        if size is None or size in self.points:
            return [] if size is None else [size]
        below = [batch_size for batch_size in self.points if batch_size < size]
        above = [batch_size for batch_size in self.points if batch_size > size]
        return [*sorted(below)[-1:], *sorted(above)[:1]]

    def values(self, key: str, size: float | None) -> list[str]:
        """Return the value at a batch size, or those of the two points around it; may be empty.

        Outside the range of the points, return the value on which all of them agree.
        """
        is_within = size is not None and len(self.near(size)) > (size not in self.points)
        logged = self._values(key, self.near(size) if is_within else self.points)
        if logged and (is_within or len(logged) == 1):
            return logged
        return [self.fixed[key]] if key in self.fixed else []

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
        points = (self.points[size] for size in sizes)
        return list(dict.fromkeys(point[key] for point in points if key in point))


def _is_among(value: str, values: Sequence[str]) -> bool:
    parsed = number(value)
    range_ = limits(values)
    if parsed is not None and range_ is not None:
        return range_[0] <= parsed <= range_[1]
    return value.lower() in (text.lower() for text in values)


def limits(values: Sequence[str]) -> tuple[float, float] | None:
    """Return the least and the greatest of values; None if they are not all numbers."""
    numbers = [parsed for parsed in map(number, values) if parsed is not None]
    return (min(numbers), max(numbers)) if numbers and len(numbers) == len(values) else None


def number(value: str) -> float | None:
    """Return a value in JSON as a finite number, None if it is something else."""
    try:
        return to_finite(float(value))
    except ValueError:
        return None


def plain(value: str) -> str:
    """Return a value in JSON without the quotation marks of a string."""
    return value.strip('"')


def reference_of(context: SetContext, keys: Collection[str]) -> ReferenceHyperparameters:
    """Return the reference for the benchmark of a set; ``keys`` are those in logs.

    The rules on values are those of the Closed division.
    """
    ruleset = context.round.ruleset
    benchmark = context.files.benchmark
    records = reference_hyperparameters(context.round.usage, ruleset, benchmark)
    is_closed = division_of(context) == "closed"
    rules = _rules(context.rules) if context.rules and is_closed else {}
    every = ((key, rule.constraints) for key, of_key in rules.items() for rule in of_key)
    return ReferenceHyperparameters(
        {size: _as_logged(values, keys, size, benchmark) for size, values in records.items()},
        {key: in_words(limits["equals"]) for key, limits in every if "equals" in limits},
        {key: words for key, of_key in rules.items() if (words := _words(of_key))},
        frozenset(key for key, of_key in rules.items() if any(rule.formula for rule in of_key)),
    )


def _as_logged(
    values: Mapping[str, Any], keys: Collection[str], size: float, benchmark: str
) -> dict[str, str]:
    named: dict[str, str] = {}
    for name, value in values.items():
        candidates = (f"{values.get('optimizer')}_{name}", name, _SPELT.get(name, name))
        key = next((candidate for candidate in candidates if candidate in keys), name)
        is_of_sample = (benchmark, name) in _OF_SAMPLE and isinstance(value, float)
        named[key] = in_words(value * size if is_of_sample else value)
    return named


def _rules(benchmark: Benchmark) -> dict[str, list[Rule]]:
    """Return the rules of the Closed division on each hyperparameter, for all optimizers.

    Rules that only the official checker has are left out.
    """
    layers = benchmark_layers(benchmark, "closed")
    every = ((key, r) for layer in layers for key, rules in layer.rules.items() for r in rules)
    pairs = ((key, rule) for key, rule in every if is_hyperparameter(key))
    return by_key((key, rule) for key, rule in pairs if rule.basis is not Basis.OFFICIAL)


def _words(rules: Sequence[Rule]) -> str:
    """Return the requirements of rules in words, without those that nearly every value meets."""
    specific = (rule for rule in rules if rule.formula or rule.constraints.keys() - _PLAIN)
    words = (words for rule in specific for words in conditions(rule) if words)
    return " and ".join(dict.fromkeys(words))


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
    column("Benchmark", attrgetter("group.benchmark")),
    column("Batch size", lambda outlier: _size(outlier.entry.size), numbers=True),
    *(column(name, attrgetter(f"entry.{name.lower()}")) for name in ("Submitter", "System")),
    column("Hyperparameter", attrgetter("key")),
    column("Value", attrgetter("value")),
    column("Reference", lambda outlier: " to ".join(map(plain, outlier.reference))),
    column("Why", attrgetter("why")),
)
_VALUE = 5  # the place of the value among the columns


def outliers_of(groups: Iterable[BenchmarkGroup], findings: Iterable[Finding]) -> list[Outlier]:
    """Return the outliers among the Closed sets of a round."""
    published: dict[tuple[str, str], str] = {}
    for finding in (finding for finding in findings if finding.code == UNPUBLISHED):
        for actual, expected in zip(finding.found, finding.expected, strict=True):
            reason = f"all published sets have {expected.partition(' ')[2]}"
            published[finding.about, actual.partition(" ")[0]] = reason
    closed = (group for group in groups if group.division == "closed")
    return [outlier for group in closed for outlier in outliers(group, published)]


def outliers(group: BenchmarkGroup, published: Mapping[tuple[str, str], str]) -> Iterator[Outlier]:
    """Yield the outliers of a benchmark, one for each value.

    Values that the reference has at the batch size are not outliers, and neither are values that
    follow from others or from the scale. ``published`` has, by path and key, the reason why a
    value is unlike all published ones.
    """
    keys = [key for key in group.keys if key not in _APART | group.reference.derived]
    held = {key: _held(key, group.entries) for key in keys}
    for entry in group.entries:
        for key in keys:
            value = entry.value(key)
            if value and not group.reference.has(value, key, entry.size):
                why = list(_reasons(entry, key, group.reference, held[key]))
                why += filter(None, [published.get((entry.path, key))])
                if why:
                    values = group.reference.values(key, entry.size)
                    yield Outlier(group, entry, key, values, "; ".join(why))


_Held = dict[tuple[float | None, str], Counter[str]]
"""The number of result sets of each submitter by batch size and value; the value may be empty."""


def _held(key: str, entries: Iterable[LoggedHyperparameters]) -> _Held:
    owners = by_key(((entry.size, entry.value(key)), _owner(entry)) for entry in entries)
    return {pair: Counter(names) for pair, names in owners.items()}


def _owner(entry: LoggedHyperparameters) -> str:
    return letters(entry.submitter) or entry.submitter


def _reasons(
    entry: LoggedHyperparameters, key: str, reference: ReferenceHyperparameters, held: _Held
) -> Iterator[str]:
    own = _owner(entry)
    others = {pair: owners for pair, owners in held.items() if len(owners) > (own in owners)}
    yield from _alone(entry, key, others)
    if reference.values(key, entry.size):
        if not key.endswith(_IN_STEPS):
            yield from _far(entry, key, others, reference)
    elif not key.endswith(_OF_LENGTH):
        yield from _apart(entry, key, others)


def _alone(entry: LoggedHyperparameters, key: str, others: _Held) -> Iterator[str]:
    """Yield a reason if nearly all others at this batch size agree on another value."""
    names: dict[str, set[str]] = {}
    for (size, value), owners in others.items():
        if value and size == entry.size:
            names.setdefault(value.lower(), set()).update(owners.keys() - {_owner(entry)})
    total = len(set().union(*names.values()))
    value = max(names, key=lambda value: len(names[value]), default="")
    most = len(names.pop(value, ()))
    rest = len(set().union(*names.values()))
    if most < OFTEN or value == entry.value(key).lower() or most < _COMMON * rest:
        return
    share = f"{most} of {total}" if rest else "both" if most == OFTEN else f"all {most}"
    yield f"{share} other submitters at this batch size have {plain(value)}"


def _far(
    entry: LoggedHyperparameters, key: str, others: _Held, reference: ReferenceHyperparameters
) -> Iterator[str]:
    """Yield a reason if a value is much farther from the reference than those of all others."""
    factor = _factor(entry.value(key), key, entry.size, reference) or 0.0
    if factor < TWICE:  # which all reasons below need
        return
    own = _owner(entry)
    factors = {pair: _factor(pair[1], key, pair[0], reference) for pair in others}
    sets = {pair: owners.total() - owners[own] for pair, owners in others.items()}
    most = max((other for other in factors.values() if other is not None), default=None)
    differs = f"differs by a factor of {factor:.3g} from the reference"
    if most is None and factor >= TENFOLD:
        yield differs
    elif most is not None and factor >= most**CUBED:
        total = sum(sets.values())
        compared = sum(count for pair, count in sets.items() if factors[pair] is not None)
        share = f"{compared} of {total}" if compared < total else "all"
        rest = f"{share} others by at most {most:.3g}"
        yield f"{differs}, {f'which {share} others have' if most == 1 else rest}"


def _factor(
    text: str, key: str, size: float | None, reference: ReferenceHyperparameters
) -> float | None:
    """Return the factor by which a value differs from the reference, at least 1; None: unknown."""
    value = number(text)
    range_ = limits(reference.values(key, size))
    if value is None or range_ is None or value <= 0 or range_[0] <= 0:
        return None
    return max(range_[0] / value, value / range_[1], 1.0)


def _apart(entry: LoggedHyperparameters, key: str, others: _Held) -> Iterator[str]:
    """Yield a reason if a value without a reference differs from all others by a factor of ten."""
    value, range_ = number(entry.value(key)), limits([value for _, value in others if value])
    owners = (owners for (_, value), owners in others.items() if value)
    names = set().union(*owners) - {_owner(entry)}
    if value is None or range_ is None or value <= 0 or range_[0] <= 0 or len(names) < OFTEN:
        return
    if value >= TENFOLD * range_[1] or value * TENFOLD <= range_[0]:
        words = " to ".join(dict.fromkeys(f"{limit:.6g}" for limit in range_))
        yield f"{counted(len(names), 'other submitter')} have {words}"
