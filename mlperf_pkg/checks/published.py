"""Rules on a set and the published results: logs of earlier rounds, and values unlike all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, partial
from itertools import chain, takewhile
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from mlperf_pkg.checks.consistency import broken_keys
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import AVAILABLE, PREVIEW, category, published_fields
from mlperf_pkg.checks.names import plain_name
from mlperf_pkg.checks.resubmission import Outcome, judge, published_set, submitted_set
from mlperf_pkg.findings import NOTE, Finding
from mlperf_pkg.infra.json_values import digits, finite_number
from mlperf_pkg.infra.paths import with_slashes
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.text import letters
from mlperf_pkg.published.model import (
    PublishedName,
    PublishedSet,
    digests_of,
    known_division,
    log_hash,
    run_hash,
)
from mlperf_pkg.published.results import (
    PublishedResults,
    PublishedResultsError,
    published_results,
    usable_results,
)
from mlperf_pkg.rulebook.load import finding_of, target_of
from mlperf_pkg.rulebook.model import is_round_name, version_of
from mlperf_pkg.rulebook.rounds import TRAINING
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.submitters import SubmitterNames, companies, is_same_submitter


class PublishedEvidence(StrEnum):
    """What shows that a run was published: its bytes, its clock, or no more than its values.

    BYTES: the log has the same bytes. CLOCK: the evaluations have the same times, or the set has
    the same mean. VALUES: the training may have been repeated, as the record has no clock.
    """

    BYTES = "bytes"
    CLOCK = "clock"
    VALUES = "values"


PublishedRuns: TypeAlias = Mapping[str, Mapping[PublishedName, PublishedEvidence]]
"""By the path of a run: the published sets that have it, the earliest first, and the evidence.

Runs that were not published are left out.
"""


def published_index(context: SetContext, minutes: float | None) -> int | None:
    """Return the index of a set in the published results; None if it is not published.

    The published set has the same usage, round, submitter, system, benchmark, division, number of
    runs and mean in ``minutes``. No log is hashed to find it. Raw logs without a name have that of
    their place in a submission, if any.
    """
    results = usable_results()
    if results is None or minutes is None:
        return None
    if context.origin.has_name:
        name = context.files.name_of(context.submitter or context.tree.name)
    else:
        path = with_slashes(context.files.place.path.resolve())
        tree, _, name = path.rpartition("/results/")
        name = f"{tree.rpartition('/')[2]}/{name}"
    full_name = (context.round.usage, context.round.name, name)
    return results.index_of(full_name, context.division, len(context.runs), minutes)


def is_verified(context: SetContext, minutes: float | None) -> bool:
    """Return whether a set was published and its logs are those of the record, byte for byte.

    ``minutes`` is its mean. Its logs are read to hash them, unless no published set has its name.
    """
    results = usable_results()
    index = published_index(context, minutes)
    if results is None or index is None:
        return False
    logs = {run.path: context.sources[run.path] for run in context.runs}
    digests = digests_of(logs)
    for digest in digests.values():
        if index not in {name.index for name in results.names_with(log_hash(digest))}:
            return False
    return len(digests) == len(logs)


def published_runs(
    context: SetContext, minutes: float | None, index: int | None
) -> PublishedRuns | None:
    """Return which runs of a set were published; None if all were, first in this set.

    Only logs that may be published are hashed: those of runs as old as the published ones. Logs
    without a start are placeholders. The logs of a set that was published, as ``index`` says, are
    not hashed, unless some were published before it. A log whose bytes are not those of an earlier
    set is looked for by the values of its run, and with all others of its set by their mean in
    ``minutes``.
    """
    results = usable_results()
    if results is None:
        return {}
    has_name = context.origin.has_name
    if has_name and index is not None and results.is_first_of_its_runs(index):
        return None
    started = [run for run in context.runs if run.start_ms is not None]
    digests = _digests_of_old(context, started, results.provenance.end_ms)
    scored = results.names_scored(context.round.usage, len(context.runs), minutes)
    origins: dict[str, Mapping[PublishedName, PublishedEvidence]] = {}
    for run in started:
        by_values = results.names_of_run(None, run.evaluated, run.losses)
        evidence = dict.fromkeys(by_values, PublishedEvidence.VALUES)
        by_times = results.names_of_run(run_hash(run.fingerprint)) if run.fingerprint else ()
        evidence.update(dict.fromkeys((*scored, *by_times), PublishedEvidence.CLOCK))
        if digests.get(run.path):
            same = results.names_with(log_hash(digests[run.path]))
            evidence.update(dict.fromkeys(same, PublishedEvidence.BYTES))
        if evidence:
            origins[run.path] = dict(sorted(evidence.items(), key=lambda item: item[0].index))
    return origins


def _digests_of_old(context: SetContext, runs: Iterable[Run], end_ms: float) -> Mapping[str, bytes]:
    """Return digests of the logs of runs that are as old as the published ones, by path."""
    sources: dict[str, Source] = {}
    for run in runs:
        if (run.start_ms or 0) <= end_ms and run.path in context.sources:
            sources[run.path] = context.sources[run.path]
    return digests_of(sources)


def check_published(context: SetContext, published: PublishedRuns) -> Iterator[Finding]:
    """Note runs that were published before, and warn where the rules do not allow it.

    A set that is checked together with the one that had its runs is compared with that itself.
    """
    by_name: dict[PublishedName, dict[str, PublishedEvidence]] = {}
    for path, evidence in published.items():
        name = _published_as(context, tuple(evidence))
        if name and (name.usage, name.round, name.name) not in context.together:
            by_name.setdefault(name, {})[path] = evidence[name]
    for name, runs in by_name.items():
        usage = "" if name.usage == TRAINING else f"{name.usage.upper()} "
        counts = Counter(runs.values())
        judgement = judge(
            published_set(published_results().set_at(name.index)),
            submitted_set(context),
            runs=len(runs),
            rewritten=counts[PublishedEvidence.CLOCK],
            unsure=counts[PublishedEvidence.VALUES],
        )
        message = f"{judgement.subject} in round {{found:s}}"
        weight = NOTE if judgement.outcome is Outcome.LATER else {}
        fields = {"found": f"{usage}{name.round} as {name.name}", **weight}
        code = "SET161"
        if judgement.is_open:
            message = f"{message}; {judgement.text}"
        else:
            code = "SET160"
            fields["hint"] = judgement.text
        for path in runs:
            yield context.finding(code, message, path=path, **fields)


def check_readable() -> Iterator[Finding]:
    """Note that nothing is compared with the published results, as they cannot be read."""
    try:
        published_results().load()
    except PublishedResultsError as error:
        message = (
            "the published results cannot be read, so no run was compared with them ({found:s})"
        )
        yield finding_of("CHECK103", message, ".", found=str(error))


def _published_as(context: SetContext, names: Sequence[PublishedName]) -> PublishedName | None:
    """Return the published set that a run is from; None if it was first published in this set.

    Of several, it is the one of the same name, or else the first.
    """
    if context.origin.has_name:
        names = tuple(takewhile(partial(_is_before, context), names))
    for name in names:
        if _is_namesake(context, name):
            return name
    return names[0] if names else None


def _is_before(context: SetContext, name: PublishedName) -> bool:
    """Return whether a set was published before this one, or in the same round by another name."""
    own = context.round
    is_own = name.round == own.name and _is_namesake(context, name)
    return name.usage == own.usage and not is_own and version_of(name.round) <= own.version


def _is_namesake(context: SetContext, name: PublishedName) -> bool:
    """Return whether a published set has the submitter, the system and the benchmark of a set."""
    submitter = name.name.partition("/")[0]
    is_same = context.submitter in (None, submitter)
    return is_same and name.name == context.files.name_of(submitter)


# ---- availability -------------------------------------------------------------------------

_RESEARCH = "research"


class _Availability(NamedTuple):
    """The category of a system, its round, and where it is described."""

    version: tuple[int, ...]
    category: str | None
    place: str


def check_availability(context: SetContext, *, is_published: bool) -> Iterator[Finding]:
    """Note a Preview of what was Available before, and what is Available soon after Research.

    Of a set that ``is_published``, only a Preview is compared.
    """
    status = category((context.system and context.system.status) or "")
    model = letters(published_fields(context.system)["accelerator_model"])
    is_compared = status == PREVIEW or (status and not is_published)
    if len(model) < _LEAST_LETTERS or not is_compared:
        return
    before = _earlier_availability(context, model)
    available = [entry for entry in before if entry.category in AVAILABLE]
    if status == PREVIEW and available:
        last = available[-1]
        noun = "round " if last.version < context.round.version else ""
        message = (
            "the set was submitted as Preview, but its accelerators were already Available in"
            f" {noun}{{found:s}}"
        )
        yield context.finding("SET164", message, found=last.place)
    elif status in AVAILABLE:
        yield from _soon_after_research(context, before)


def _soon_after_research(context: SetContext, before: Sequence[_Availability]) -> Iterator[Finding]:
    """Note what was Research in the last round before, and Available in no earlier one."""
    earlier = [entry for entry in before if entry.version < context.round.version]
    if any(entry.category in AVAILABLE for entry in earlier):
        return
    for entry in earlier:
        if entry.version == earlier[-1].version and entry.category == _RESEARCH:
            message = (
                "the set was submitted as Available, but its accelerators were Research in round"
                " {found:s}; expected {expected}"
            )
            expected = "Available no earlier than two submissions and 221 days after that"
            yield context.finding("SET164", message, found=entry.place, expected=expected)
            return


def _earlier_availability(context: SetContext, model: str) -> list[_Availability]:
    """Return the systems of a submitter with an accelerator, by round.

    They are those of the published results in earlier rounds, and the last Available one of the
    submission itself.
    """
    results = usable_results()
    round_ = context.round
    names = context.submitter_names
    systems: list[_Availability] = []
    rows: Sequence[PublishedSet] = ()
    if results:
        rows = _sets_by_accelerator(results).get((round_.usage, model), ())
    for row in rows:
        is_earlier = is_round_name(row.round) and version_of(row.round) < round_.version
        if is_earlier and is_same_submitter(names, SubmitterNames(row.submitter)):
            place = f"{row.round}, in the system {row.system}"
            systems.append(_Availability(version_of(row.round), category(row.status), place))
    own = context.systems.available.get(model)
    if own:
        systems.append(_Availability(round_.version, category(own.status or ""), own.path))
    return sorted(systems, key=attrgetter("version"))


@per_rulebook
def _sets_by_accelerator(results: PublishedResults) -> dict[tuple[str, str], list[PublishedSet]]:
    """Return the published sets by usage and the letters of their accelerator."""
    sets: dict[tuple[str, str], list[PublishedSet]] = {}
    for row in results.sets:
        sets.setdefault((row.usage, letters(row.accelerator_model)), []).append(row)
    return sets


_LEAST_LETTERS = 3  # of the name of an accelerator: "N/A" has two
_MIN_SETS = 20  # with a hyperparameter; with fewer, values are not compared
_MIN_SUBMITTERS = 5  # of these sets
_FACTOR = 2.0  # below the least or above the greatest published value of a hyperparameter
_MIN_SCORES = 3  # on the same accelerators; with fewer, scores are not compared
_FAST = 1.3
_SLOW = 1.5

_Accelerators: TypeAlias = tuple[int, str, str | None]
"""The number of accelerators, their model, and the kind of scaling."""


def check_unlike_published(context: SetContext, score: float | None) -> Iterator[Finding]:
    """Note hyperparameters and a ``score`` in minutes that are unlike all published ones.

    They are compared with those of the Closed sets of this benchmark in rounds with the same
    target. A set of several benchmarks is not compared.
    """
    round_ = context.round
    benchmark = context.files.benchmark
    results = usable_results()
    is_one = {run.benchmark for run in context.runs} == {benchmark}
    is_compared = context.origin.is_judged and context.closed_by_rules and context.rules and is_one
    if is_compared and results is not None:
        peers = _peers(results, round_.usage, round_.name, benchmark)
        yield from _check_hyperparameters(context, peers)
        yield from _check_score(context, score, peers)


# ---- what they are compared with ----------------------------------------------------------


class _Peers(Struct, frozen=True, dict=True):
    """The published sets of a ``benchmark`` to compare with, by their index in all ``results``."""

    results: PublishedResults
    benchmark: str
    sets: Mapping[int, PublishedSet]

    @cached_property
    def settings(self) -> frozenset[tuple[str, str]]:
        """The keys of their hyperparameters, each with a value."""
        settings = self.results.settings(self.benchmark)
        return frozenset((s.key, s.value) for s in settings if s.set in self.sets)

    @cached_property
    def limits(self) -> Mapping[str, tuple[float, float]]:
        """The least and the greatest number of each hyperparameter that many of them have."""
        numbers: dict[str, list[float]] = {}
        sets: dict[str, set[int]] = {}
        owners = companies(SubmitterNames(row.submitter) for row in self.sets.values())
        for setting in self.results.settings(self.benchmark):
            number = finite_number(setting.value) if setting.set in self.sets else None
            if number is not None:
                numbers.setdefault(setting.key, []).append(number)
                sets.setdefault(setting.key, set()).add(setting.set)
        limits: dict[str, tuple[float, float]] = {}
        for key, key_sets in sets.items():
            # A joint entry is of one mind, however many companies submit it.
            submitters = {owners[SubmitterNames(self.sets[index].submitter)] for index in key_sets}
            if len(key_sets) >= _MIN_SETS and len(submitters) >= _MIN_SUBMITTERS:
                limits[key] = (min(numbers[key]), max(numbers[key]))
        return limits

    @cached_property
    def by_accelerators(self) -> Mapping[_Accelerators, Sequence[PublishedSet]]:
        """Those with a score, by the accelerators that it was reached on."""
        rows: dict[_Accelerators, list[PublishedSet]] = {}
        for row in self.sets.values():
            if row.score_minutes and row.accelerators:
                model = plain_name(row.accelerator_model)
                rows.setdefault((row.accelerators, model, row.scaling), []).append(row)
        return rows


@per_rulebook
def _peers(results: PublishedResults, usage: str, round_name: str, benchmark: str) -> _Peers:
    """Return the Closed sets of a benchmark in rounds with the same target."""
    target = target_of(usage, round_name, benchmark)
    kind = (benchmark, usage, "closed")
    sets: dict[int, PublishedSet] = {}
    has_same_target: dict[str, bool] = {}
    for index, row in enumerate(results.sets):
        if (row.benchmark, row.usage, known_division(row.division)) != kind:
            continue
        if row.round not in has_same_target:
            row_target = target_of(usage, row.round, benchmark)
            has_same_target[row.round] = row_target is not None and row_target == target
        if has_same_target[row.round]:
            sets[index] = row
    return _Peers(results, benchmark, sets)


# ---- hyperparameters ----------------------------------------------------------------------


def _check_hyperparameters(context: SetContext, peers: _Peers) -> Iterator[Finding]:
    settings = set(chain.from_iterable(run.hyperparameters.items() for run in context.runs))
    unknown = settings - peers.settings
    if not unknown:  # the usual case, and fast
        return
    unlike: dict[str, str] = {}
    broken = broken_keys(context.runs)
    for key, value in sorted(unknown):
        limits = peers.limits.get(key)
        if limits is None or key.endswith("_steps") or key in broken:
            continue
        number = finite_number(value)
        if number is not None and not _is_near(number, *limits):
            unlike[f"{key} {digits(number)}"] = f"{key} {_range(*limits)}"
    if unlike:
        benchmark = context.files.benchmark
        message = f"the runs use {{found:s}}; all published sets of {benchmark} have {{expected:s}}"
        yield context.finding("SET162", message, found=list(unlike), expected=list(unlike.values()))


def _range(least: float, greatest: float) -> str:
    if least == greatest:
        return digits(least)
    return f"{digits(least)} to {digits(greatest)}"


def _is_near(number: float, least: float, greatest: float) -> bool:
    """Return whether a number is between the published ones, or near them."""
    lower = least / _FACTOR if least > 0 else least * _FACTOR
    upper = greatest * _FACTOR if greatest > 0 else greatest / _FACTOR
    return lower <= number <= upper


# ---- scores -------------------------------------------------------------------------------


def _check_score(context: SetContext, score: float | None, peers: _Peers) -> Iterator[Finding]:
    system = context.system
    if not score or system is None or not system.accelerators:
        return
    model = plain_name(published_fields(system)["accelerator_model"])
    accelerators = (system.accelerators, model, context.files.scaling_mode)
    rows = peers.by_accelerators.get(accelerators, ())
    scores = {row.score_minutes: row for row in rows if row.score_minutes}
    names = [SubmitterNames(row.submitter) for row in scores.values()]
    if len(scores) < _MIN_SCORES or all(is_same_submitter(names[0], name) for name in names):
        return
    fastest = min(scores)
    slowest = max(scores)
    if score * _FAST <= fastest:
        words = f"{fastest / score:.1f} times as fast as the fastest"
        row = scores[fastest]
    elif score >= slowest * _SLOW:
        words = f"{score / slowest:.1f} times as long as the slowest"
        row = scores[slowest]
    else:
        return
    message = (
        f"the score of {{found:.3f}} minutes is {words} published result on"
        f" {system.accelerators} {row.accelerator_model} ({{expected:.3f}} minutes, by"
        f" {row.submitter} in round {row.round})"
    )
    yield context.finding("SET163", message, found=score, expected=row.score_minutes)
