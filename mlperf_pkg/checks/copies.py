"""Rules on several result sets: runs that they share, and Previews with later results."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.consistency import repetition
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import (
    AVAILABLE,
    PREVIEW,
    category,
    different_fields,
    names_of,
)
from mlperf_pkg.checks.resubmission import RULE, Outcome, judge, submitted_set
from mlperf_pkg.findings import MAX_MESSAGES, NOTE, Finding, Severity
from mlperf_pkg.infra.text import letters
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.relations import Related, RunRelation, is_known, originals, related_pairs
from mlperf_pkg.submission.model import SCALINGS, Place
from mlperf_pkg.submission.submitters import SubmitterNames, is_same_submitter

Members: TypeAlias = dict[int, list[Run]]  # the runs of sets, by the index of the set


def related_runs(contexts: Sequence[SetContext]) -> list[Related]:
    """Return the related pairs among the runs of all sets, by their indexes among these."""
    return list(related_pairs(_runs_of(contexts)[1]))


def shared_runs(
    contexts: Sequence[SetContext], pairs: Iterable[Related] | None = None
) -> list[Members]:
    """Return groups of runs that may be copies of one run, each in several sets.

    Runs that are not known by their evaluations are copies only if their bytes are the same.
    Placeholders, which have no start, are not in a group. ``pairs`` are those of ``related_runs``,
    if they are known already.
    """
    indexes, runs = _runs_of(contexts)
    groups: dict[Hashable, Members] = {}
    for index, run, original in zip(indexes, runs, originals(runs, pairs), strict=True):
        if run.start_ms is not None:
            key = original if is_known(run) else (run.records, run.start_ms, run.stop_ms)
            groups.setdefault(key, {}).setdefault(index, []).append(run)
    return [members for members in groups.values() if len(members) > 1]


def _runs_of(contexts: Sequence[SetContext]) -> tuple[list[int], list[Run]]:
    """Return the runs of all sets, each with the index of its set."""
    indexes: list[int] = []
    runs: list[Run] = []
    for index, context in enumerate(contexts):
        indexes += [index] * len(context.runs)
        runs += context.runs
    return indexes, runs


def has_several_rounds(contexts: Sequence[SetContext]) -> bool:
    """Return whether sets of several rounds of one usage are checked together."""
    rounds = {(context.round.usage, context.round.name) for context in contexts}
    return len(rounds) > len({usage for usage, _ in rounds})


# ---- pairs of sets with the same runs: which is the original, which the copy --------------


class Owner(Struct, frozen=True, dict=True):
    """A result set with copied runs, by its index, and what identifies it.

    ``run`` is one of its runs that are in other sets, too.
    """

    index: int
    context: SetContext
    run: Run

    @cached_property
    def submitter(self) -> str:
        """The name of the folder of its submission."""
        return self.context.submitter or self.context.tree.name

    @property
    def round(self) -> tuple[str, str]:
        """The usage and the name of its round."""
        return self.context.round.usage, self.context.round.name

    @property
    def name(self) -> tuple[str, str]:
        """The usage, and the name that no other set of a round shares."""
        return self.context.round.usage, self.context.files.name_of(self.submitter)

    @cached_property
    def names(self) -> set[str]:
        """The names of its system, in letters and digits."""
        system = self.context.system
        return names_of(system) if system else {letters(self.context.files.system or "")}

    @cached_property
    def rank(self) -> tuple[Hashable, ...]:
        """The sort key of originals: the round, whether the logs name the set, start, path."""
        organisation = self.run.text("org")
        platform = letters(self.run.text("platform"))
        names = (SubmitterNames(organisation), SubmitterNames(self.submitter))
        is_foreign = not (organisation and is_same_submitter(*names))
        is_of_other_system = platform not in self.names
        version = self.context.round.version
        start_ms = self.run.start_ms or 0
        return (version, is_foreign, is_of_other_system, start_ms, self.context.path)


class Pair(Struct):
    """Two result sets with the same runs.

    ``runs`` maps the paths of the runs in the copy to those in the original; ``identical`` of them
    have the same bytes, ``noisy`` of them other times or values.
    """

    original: Owner
    copy: Owner
    runs: dict[str, str]
    identical: int = 0
    noisy: int = 0


def pairs_of(
    contexts: Sequence[SetContext], groups: Sequence[Members], digests: Mapping[str, bytes]
) -> list[Pair]:
    """Return the pairs of sets in these groups; ``digests`` are those of the logs, by path."""
    owners: dict[int, Owner] = {}
    for members in groups:
        for index, runs in members.items():
            owners[index] = Owner(index, contexts[index], runs[0])
    pairs: dict[tuple[int, int], Pair] = {}
    for members in _of_one_run(groups, digests):
        order = sorted(members, key=lambda index: owners[index].rank)
        for first, second in _paired(order, owners):
            pair = pairs.setdefault((first, second), Pair(owners[first], owners[second], {}))
            _add_copies(pair, members[first][0], members[second], digests)
    return list(pairs.values())


def _paired(order: Sequence[int], owners: Mapping[int, Owner]) -> Iterator[tuple[int, int]]:
    """Pair each set that has a run with one before it.

    That is the first of its own name, in this or an earlier round, else the first of its round,
    else the first of all.
    """
    firsts: dict[Hashable, int] = {}
    for second in order:
        owner = owners[second]
        candidates = [firsts.setdefault(key, second) for key in (owner.name, owner.round, None)]
        earlier = [first for first in candidates if first != second]
        if earlier:
            yield earlier[0], second


def _add_copies(
    pair: Pair, original: Run, copies: Sequence[Run], digests: Mapping[str, bytes]
) -> None:
    """Add the copies of a run to a pair of sets."""
    digest = digests.get(original.path)
    for run in copies:
        pair.runs[run.path] = original.path
        if digest and digest == digests.get(run.path):
            pair.identical += 1
        if run.fingerprint != original.fingerprint:
            pair.noisy += 1


def _of_one_run(groups: Sequence[Members], digests: Mapping[str, bytes]) -> Iterator[Members]:
    """Split the groups into those of a single run."""
    for members in groups:
        if is_known(next(iter(members.values()))[0]):
            yield members
            continue
        by_digest: dict[bytes, Members] = {}
        for index, runs in members.items():
            for run in runs:
                digest = digests.get(run.path)
                if digest:
                    by_digest.setdefault(digest, {}).setdefault(index, []).append(run)
        yield from (same for same in by_digest.values() if len(same) > 1)


# ---- whether two result sets may have the same runs ---------------------------------------

_COPIED = "SET150"


def findings_on(pairs: Sequence[Pair], with_power: Collection[Place]) -> Iterator[Finding]:
    """Yield the findings on the copies of one result set: one for each original and run.

    ``with_power`` are the trees with power measurements. If there are more than ``MAX_MESSAGES``
    originals, those with the fewest runs share a finding.
    """
    by_runs = sorted(pairs, key=lambda pair: (-len(pair.runs), pair.original.context.path))
    apart = len(pairs)
    if len(pairs) > MAX_MESSAGES:
        apart = MAX_MESSAGES - 1
    for pair in by_runs[:apart]:
        opinion = _opinion(pair, with_power)
        for copy, original in pair.runs.items():
            yield replace(opinion, path=copy, found=original)
    if by_runs[apart:]:
        yield from _shared_finding(by_runs[apart:], with_power)


def _shared_finding(pairs: Sequence[Pair], with_power: Collection[Place]) -> Iterator[Finding]:
    """Yield the worst finding on copies of several originals, for each run."""
    opinions = [_opinion(pair, with_power) for pair in pairs]
    worst = min(opinions, key=lambda finding: tuple(Severity).index(finding.severity))
    more = wording.counted(len(pairs) - 1, "more result set")
    message = _copied(f"{pairs[0].original.context.label} and {more}")
    shared = finding_of(_COPIED, message, "", severity=worst.severity, basis=worst.basis)
    runs: dict[str, str] = {}
    for pair in pairs:
        runs |= pair.runs
    for copy, original in runs.items():
        yield replace(shared, path=copy, found=original)


def _opinion(pair: Pair, with_power: Collection[Place]) -> Finding:
    """Return the judgement of the rules on a pair, a finding without a path."""
    original = pair.original
    copy = pair.copy
    name = _name(pair)
    if not (original.context.origin.has_name and copy.context.origin.has_name):
        return finding_of(_COPIED, f"this set has the same runs as {name}", "", **NOTE)
    before = submitted_set(original.context)
    after = submitted_set(copy.context)
    runs = len(pair.runs)
    judgement = judge(before, after, runs=runs, rewritten=runs - pair.identical)
    if judgement.is_foreign:
        return finding_of(_COPIED, _copied(name), "")
    reason = _reason(pair, with_power)
    if reason:
        return finding_of(_COPIED, reason, "", **NOTE)
    if copy.round == original.round:
        return finding_of(_COPIED, _copied(name), "")
    weight = {} if judgement.outcome is Outcome.NOT_ALLOWED else NOTE
    return finding_of(RULE, f"the runs are resubmitted from {name}; {judgement.text}", "", **weight)


def _reason(pair: Pair, with_power: Collection[Place]) -> str | None:
    """Return why a submitter may use the same runs twice, without submitting them again."""
    original = pair.original
    copy = pair.copy
    name = _name(pair)
    if copy.round == original.round and copy.name == original.name:
        return f"this is the same result set as {name}"
    first = original.context.files
    second = copy.context.files
    scalings = {first.scaling_mode, second.scaling_mode}
    if scalings == {*SCALINGS} and not copy.names.isdisjoint(original.names):
        return f"this set has the same runs as {name}; one set has strong scaling, the other weak"
    is_power_measured = not {copy.context.tree, original.context.tree}.isdisjoint(with_power)
    if copy.round == original.round and is_power_measured and _are_of_one_system(original, copy):
        return (
            f"this set has the same runs as {name}; the two sets differ only in the measured power"
        )
    return None


def _are_of_one_system(original: Owner, copy: Owner) -> bool:
    """Return whether two sets are of one system, perhaps described again for its power."""
    names: set[str] = set()
    for owner in (original, copy):
        name = letters(owner.context.files.system or "")
        names.add(name.replace("power", ""))
    if len(names) == 1:
        return True
    before = original.context.system
    after = copy.context.system
    if before is None or after is None:
        return False
    return not different_fields(before.contents or {}, after.contents or {})


def _copied(name: str) -> str:
    return (
        f"the runs of this set are copies of the runs of {name}; expected the set to have its own"
        " runs"
    )


def _name(pair: Pair) -> str:
    """Return the path of the original, its round if it differs, and whether files are identical."""
    remarks: list[str] = []
    original = pair.original
    if original.round != pair.copy.round:
        remarks.append(f"round {original.context.round.name}")
    remarks.append(_likeness(pair))
    return f"{original.context.label} ({', '.join(remarks)})"


def _likeness(pair: Pair) -> str:
    """Return how many runs of a pair have the same bytes, and how equal the others are."""
    count = len(pair.runs)
    if pair.identical == count:
        return "identical files"
    equal = "the files differ, but their values agree"
    if pair.identical:
        equal = f"{pair.identical} of {count} files are identical, and the values of the rest agree"
    return f"{equal} to within 1e-5" if pair.noisy else equal


# ---- result sets whose logs name each other, and seeds of one in another --------------------


def check_swapped(contexts: Sequence[SetContext]) -> Iterator[tuple[int, Finding]]:
    """Warn about sets of two submitters whose logs name each other; with the index of the set."""
    orgs: dict[int, str] = {}  # the other organisation in the logs, by the index of the set
    for index, context in enumerate(contexts):
        org = context.runs[0].text("org") if context.runs else ""
        if context.submitter and letters(org) and not context.is_submitted_by(org):
            orgs[index] = org
    message = (
        "submission_org is {found:s} in the logs submitted by {expected}, and {expected} in those"
        " submitted by {found:s}"
    )
    for index, org in orgs.items():
        context = contexts[index]
        partners = [other for other in orgs if contexts[other].is_submitted_by(org)]
        is_swapped = any(context.is_submitted_by(orgs[other]) for other in partners)
        if is_swapped and context.origin.has_folder:
            finding = context.finding(
                "SET115", message, found=org, expected=context.submitter, severity=Severity.WARNING
            )
            yield index, finding


def check_seeds(contexts: Sequence[SetContext]) -> Iterator[tuple[int, Finding]]:
    """Note sets of a submitter and benchmark with the seeds of another; with the index of the set.

    Seeds are random, so that two sets have few or none in common.
    """
    earlier: dict[Hashable, list[tuple[SetContext, set[int]]]] = {}
    for index, context in enumerate(contexts):
        seeds = {seed.value for run in context.runs for seed in run.seeds}
        if len(seeds) <= 1 or not context.origin.has_folder:
            continue
        round_ = context.round
        others = earlier.setdefault((round_.usage, round_.name, context.files.benchmark), [])
        number, other = _most_in_common(context, seeds, others)
        if other and 2 * number >= len(seeds):
            message = f"{{found}} of {len(seeds)} seeds are the same as in {other.label}"
            yield index, context.finding("SEED106", message, found=number)
        others.append((context, seeds))


def _most_in_common(
    context: SetContext, seeds: set[int], others: Iterable[tuple[SetContext, set[int]]]
) -> tuple[int, SetContext | None]:
    """Return how many seeds the set of the submitter with most of them has, and it; None if none.

    A submitter may have several folders.
    """
    most = 0
    nearest = None
    for other, other_seeds in others:
        common = len(seeds & other_seeds)
        if common > most and is_same_submitter(context.submitter_names, other.submitter_names):
            most = common
            nearest = other
    return most, nearest


def check_repetitions(
    contexts: Sequence[SetContext], related: Iterable[Related]
) -> Iterator[tuple[int, Finding]]:
    """Note runs that repeat the training of another set; with the index of the set."""
    owners, runs = _runs_of(contexts)
    pairs: dict[int, int] = {}  # the first run by the one that repeats it
    for one, other, relation in related:
        if relation is RunRelation.REPEATED and owners[one] != owners[other]:
            by_start = sorted((one, other), key=lambda index: (runs[index].start_ms or 0, index))
            pairs.setdefault(by_start[1], by_start[0])
    for later, earlier in sorted(pairs.items()):
        index = owners[later]
        yield index, repetition(contexts[index], runs[later], runs[earlier])


# ---- Previews of an earlier round with Available results in a later one -------------------

_ALLOWED = 1.02  # times the minutes of the Preview
_MOST = 100  # Available results with which a Preview is compared


class Costs(NamedTuple):
    """What a result and a Preview cost, by time or energy, and what is allowed of the latter."""

    by: str
    own: float
    preview: float
    allowed: float = _ALLOWED

    @property
    def is_matched(self) -> bool:
        """Whether the result costs no more than is allowed; without allowance, it costs less."""
        if self.allowed == 1:
            return self.own < self.preview
        return self.own <= self.preview * self.allowed

    @property
    def percent(self) -> float:
        """By how many percent the performance of the result exceeds that of the Preview."""
        return 100 * (self.preview / self.own - 1)


class Performance(Struct, frozen=True):
    """A score in minutes on a number of accelerators (or nodes), and the energy if measured."""

    scale: int
    minutes: float
    energy_joules: float | None = None

    @property
    def in_words(self) -> str:
        """The score and the number of accelerators."""
        scale = wording.counted(self.scale, "accelerator")
        return f"{wording.minutes(self.minutes)} minutes on {scale}"

    def costs(self, preview: Performance) -> Costs:
        """Return what is compared with a Preview.

        More accelerators must be faster; fewer must not take more minutes times accelerators. If
        the energy of both was measured, it is compared instead: it is minutes times power.
        """
        if self.energy_joules and preview.energy_joules:
            return Costs("energy", self.energy_joules, preview.energy_joules)
        if self.scale > preview.scale:
            return Costs("time", self.minutes, preview.minutes, 1)
        by = "time" if self.scale == preview.scale else "time x scale"
        return Costs(by, self.minutes * self.scale, preview.minutes * preview.scale)


_Scored: TypeAlias = tuple[SetContext, Performance]
"""A result set with its score on all accelerators of its system."""


def check_previews(
    contexts: Sequence[SetContext], minutes: Sequence[float | None]
) -> Iterator[tuple[int, Finding]]:
    """Compare Previews with the Available results of the first later round that has any.

    These have the same submitter, benchmark, division and accelerator, but no runs of the Preview.
    ``minutes`` are the scores; each finding has the index of its Preview.
    """
    previews: dict[int, _Scored] = {}
    available: dict[tuple[str, ...], dict[str, list[_Scored]]] = {}
    for index, (context, score) in enumerate(zip(contexts, minutes, strict=True)):
        system = context.system
        if system is None or not system.accelerators or not score:
            continue
        scored = context, Performance(system.accelerators, score)
        status = category(system.status or "")
        if status == PREVIEW:
            previews[index] = scored
        elif status in AVAILABLE:
            rounds = available.setdefault(_key(context), {})
            rounds.setdefault(context.round.name, []).append(scored)
    for index, (context, performance) in previews.items():
        candidates = _proofs(context, available.get(_key(context), {}))
        if candidates:
            yield index, _preview_finding(context, performance, candidates)


def _key(context: SetContext) -> tuple[str, ...]:
    """Return what a Preview and its Available results have in common."""
    contents = (context.system.contents if context.system else None) or {}
    accelerator = contents.get("accelerator_model_name")
    spelled_alike = [letters(str(name)) for name in (context.division_by_rules, accelerator)]
    return (context.round.usage, context.files.benchmark, *spelled_alike)


def _proofs(preview: SetContext, by_round: dict[str, list[_Scored]]) -> list[_Scored]:
    """Return the results with other runs from the first later round that has any."""
    later = [name for name in by_round if version_of(name) > preview.round.version]
    for name in sorted(later, key=version_of):
        results = (result for result in by_round[name] if _is_of_submitter(preview, result[0]))
        fresh = [result for result in islice(results, _MOST) if _has_other_runs(preview, result[0])]
        if fresh:
            return fresh
    return []


def _is_of_submitter(preview: SetContext, context: SetContext) -> bool:
    return is_same_submitter(preview.submitter_names, context.submitter_names)


def _has_other_runs(preview: SetContext, context: SetContext) -> bool:
    """Return whether no run of a set is one of a Preview."""
    number = len(preview.runs)
    indexes = originals([*preview.runs, *context.runs])[number:]
    return all(index >= number for index in indexes)


def _preview_finding(
    preview: SetContext, score: Performance, candidates: Sequence[_Scored]
) -> Finding:
    """Report the best result; among several, that with the nearest number of accelerators."""

    def rank(candidate: _Scored) -> tuple[bool, int, float]:
        _, performance = candidate
        distance = abs(performance.scale - score.scale)
        return not performance.costs(score).is_matched, distance, performance.minutes

    best, performance = min(candidates, key=rank)
    message = (
        f"the set was submitted as Preview with {score.in_words}; the Available result of round"
        f" {best.round.name} ({best.label}) has {performance.in_words}"
    )
    if performance.costs(score).is_matched:
        return preview.finding("SET152", f"{message}, which is within what the rules allow", **NOTE)
    return preview.finding("SET152", f"{message}, which is too slow")
