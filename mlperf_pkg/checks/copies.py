"""Rules on several result sets: runs that they share, and Previews with later results."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.consistency import is_known, names_of, originals
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import PREVIEW, SystemFile, category, differing
from mlperf_pkg.checks.names import are_alike
from mlperf_pkg.findings import MAX_MESSAGES, NOTE, Finding, Severity, in_words
from mlperf_pkg.infra.text import letters
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.membership import submitters
from mlperf_pkg.submission.model import SCALINGS, Place

Members: TypeAlias = dict[int, list[Run]]  # the runs of sets, by the index of the set


def shared_runs(contexts: Sequence[SetContext]) -> list[Members]:
    """Return groups of runs that may be copies of one run, each in several sets.

    Runs that are not known by their evaluations are copies only if their bytes are the same.
    Placeholders, which have no start, are not in a group.
    """
    groups: dict[Hashable, Members] = {}
    runs = [(i, run) for i, context in enumerate(contexts) for run in context.runs]
    for (index, run), original in zip(runs, originals([run for _, run in runs]), strict=True):
        if run.start_ms is not None:
            key = original if is_known(run) else (run.records, run.start_ms, run.stop_ms)
            groups.setdefault(key, {}).setdefault(index, []).append(run)
    return [members for members in groups.values() if len(members) > 1]


def has_several_rounds(contexts: Sequence[SetContext]) -> bool:
    """Return whether sets of several rounds of one usage are checked together."""
    rounds = {(context.round.usage, context.round.name) for context in contexts}
    return len(rounds) > len({usage for usage, _ in rounds})


# ---- pairs of sets with the same runs: which is the original, which the copy --------------

MAX_TOGETHER = 10  # sets with one run in common that are compared pairwise
_VARIANT = str.maketrans("-+ ", "___")


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
    def identity(self) -> tuple[Hashable, ...]:
        """The names that no other set of a tree shares."""
        files = self.context.files
        return (*self.round, self.submitter, files.system, files.scaling_mode, files.benchmark)

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
        is_foreign = not (organisation and are_alike(organisation, self.submitter))
        is_of_other_system = platform not in self.names
        names = (is_foreign, is_of_other_system)
        return (self.context.round.version, *names, self.run.start_ms or 0, self.context.path)


def is_same_submitter(name: str, other: str) -> bool:
    """Return whether two submissions have a company in common, or names that are variants."""
    if any(len(names) > 1 for names in submitters((name, other)).values()):
        return True
    first, second = (text.lower().translate(_VARIANT) for text in (name, other))
    return first.split("_")[0] == second.split("_")[0] or are_alike(first, second)


class Pair(Struct):
    """Two result sets with the same runs.

    ``runs`` maps the paths of the runs in the copy to those in the original; ``identical`` of them
    have the same bytes, ``noisy`` of them other times or values. ``others`` is the number of
    further sets with one of these runs, if they are only compared with the original.
    """

    original: Owner
    copy: Owner
    runs: dict[str, str]
    identical: int = 0
    noisy: int = 0
    others: int = 0


def pairs_of(
    contexts: Sequence[SetContext], groups: Sequence[Members], digests: Mapping[str, bytes]
) -> list[Pair]:
    """Return the pairs of sets in these groups; ``digests`` are those of the logs, by path.

    If more than ``MAX_TOGETHER`` sets have a run in common, all are only paired with the first, so
    that the number of pairs is in proportion to that of the runs.
    """
    shared = {index: runs[0] for members in groups for index, runs in members.items()}
    owners = {index: Owner(index, contexts[index], run) for index, run in shared.items()}
    pairs: dict[tuple[int, int], Pair] = {}
    for members in _of_one_run(groups, digests):
        order = sorted(members, key=lambda index: owners[index].rank)
        is_star = len(order) > MAX_TOGETHER
        for first, second in product(order[:1], order[1:]) if is_star else combinations(order, 2):
            pair = pairs.setdefault((first, second), Pair(owners[first], owners[second], {}))
            pair.others = max(pair.others, is_star * (len(order) - 2))
            original = members[first][0]
            copies = members[second]
            digest = digests.get(original.path)
            pair.runs |= dict.fromkeys((run.path for run in copies), original.path)
            pair.identical += sum(digest == digests.get(r.path) for r in copies if digest)
            pair.noisy += sum(run.fingerprint != original.fingerprint for run in copies)
    return list(pairs.values())


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
_RESUBMITTED = "SET151"


def findings_on(pairs: Sequence[Pair], with_power: Collection[Place]) -> Iterator[Finding]:
    """Yield the findings on the copies of one result set: one for each original and run.

    ``with_power`` are the trees with power measurements. If there are more than ``MAX_MESSAGES``
    originals, those with the fewest runs share a finding.
    """
    by_runs = sorted(pairs, key=lambda pair: (-len(pair.runs), pair.original.context.path))
    apart = MAX_MESSAGES - 1 if len(pairs) > MAX_MESSAGES else len(pairs)
    opinions = [(_opinion(pair, with_power), pair.runs) for pair in by_runs]
    rest = opinions[apart:]
    if rest:
        worst = min((f for f, _ in rest), key=lambda f: tuple(Severity).index(f.severity))
        more = wording.counted(len(rest) - 1, "more result set")
        name = f"{by_runs[apart].original.context.label} and {more}"
        weight = {"severity": worst.severity, "basis": worst.basis}
        runs = {copy: original for _, of_pair in rest for copy, original in of_pair.items()}
        opinions[apart:] = [(finding_of(_COPIED, _copied(name), "", **weight), runs)]
    for opinion, of_opinion in opinions:
        for copy, original in of_opinion.items():
            yield replace(opinion, path=copy, found=original)


def _opinion(pair: Pair, with_power: Collection[Place]) -> Finding:
    """Return the judgement of the rules on a pair, a finding without a path."""
    original = pair.original
    copy = pair.copy
    name = _name(pair)
    if not (original.context.origin.has_name and copy.context.origin.has_name):
        return finding_of(_COPIED, f"the same runs as {name}", "", **NOTE)
    is_same = is_same_submitter(copy.submitter, original.submitter)
    if is_same and copy.context.files.benchmark == original.context.files.benchmark:
        reason = _reason(pair, with_power)
        if reason:
            return finding_of(_COPIED, reason, "", **NOTE)
        if copy.round != original.round:
            return _resubmitted(original, copy, name)
    return finding_of(_COPIED, _copied(name), "")


def _reason(pair: Pair, with_power: Collection[Place]) -> str | None:
    """Return why a submitter may use the same runs twice, without submitting them again."""
    original = pair.original
    copy = pair.copy
    name = _name(pair)
    if copy.identity == original.identity:
        return f"the same result set as {name}"
    first = original.context.files
    second = copy.context.files
    scalings = {first.scaling_mode, second.scaling_mode}
    if scalings == {*SCALINGS} and not copy.names.isdisjoint(original.names):
        return f"the same runs as {name}, as strong and as weak scaling"
    systems = {letters(files.system or "").replace("power", "") for files in (first, second)}
    before = original.context.system
    after = copy.context.system
    is_described_alike = before and after and not different_fields(before, after)
    is_same = copy.round == original.round and (len(systems) == 1 or is_described_alike)
    if is_same and not {copy.context.tree, original.context.tree}.isdisjoint(with_power):
        return f"the same runs as {name}, with power measured differently"
    return None


def _copied(name: str) -> str:
    return f"copies of the runs of {name}; expected separate runs"


def _resubmitted(original: Owner, copy: Owner, name: str) -> Finding:
    before = original.context.system
    after = copy.context.system
    weight = {} if copy.context.is_written(_RESUBMITTED) else NOTE
    if not (before and after and before.contents and after.contents):
        remark = "; system descriptions not compared"
        weight = NOTE
    elif category(before.status or "") == PREVIEW != category(after.status or ""):
        remark = ", a Preview; expected new runs to prove it"
    elif fields := different_fields(before, after):
        remark = f"; expected the same system description; different: {in_words(fields, 's')}"
    else:
        remark = ", with the same system description"
        weight = NOTE
    return finding_of(_RESUBMITTED, f"resubmitted from {name}{remark}", "", **weight)


def different_fields(before: SystemFile, after: SystemFile) -> list[str]:
    """Return the fields that differ, except spellings of the same availability."""
    fields = differing(before.contents or {}, after.contents or {})
    status = category(before.status or "")
    is_same_status = status is not None and status == category(after.status or "")
    return [field[:80] for field in fields if not (field == "status" and is_same_status)]


def _name(pair: Pair) -> str:
    """Return the path of the original, its round if it differs, and whether files are identical."""
    original = pair.original
    count = len(pair.runs)
    files = wording.counted(pair.identical, "identical file") if pair.identical else ""
    equal = f"{count - pair.identical} of {count} series are equal" + " to 1e-5" * bool(pair.noisy)
    remarks = [
        f"round {original.context.round.name}" * (original.round != pair.copy.round),
        "identical files" if pair.identical == count else f"{files or 'the files differ'}, {equal}",
        f"also in {pair.others} more result sets" * bool(pair.others),
    ]
    return f"{original.context.label} ({', '.join(filter(None, remarks))})"


# ---- result sets whose logs name each other, and seeds of one in another --------------------


def check_swapped(contexts: Sequence[SetContext]) -> Iterator[tuple[int, Finding]]:
    """Warn about sets of two submitters whose logs name each other; with the index of the set."""
    named = [
        (letters(c.submitter or ""), letters(next((run.text("org") for run in c.runs), "")))
        for c in contexts
    ]
    wrong = {(own, org) for own, org in named if own and org and own != org}
    for index, (context, (own, org)) in enumerate(zip(contexts, named, strict=True)):
        if {(own, org), (org, own)} <= wrong and context.origin.has_folder:
            message = "submission_org is {found:s}, and in the logs of that submitter {expected}"
            names = {"found": context.runs[0].text("org"), "expected": context.submitter}
            yield index, context.finding("SET115", message, **names, severity=Severity.WARNING)


def check_seeds(contexts: Sequence[SetContext]) -> Iterator[tuple[int, Finding]]:
    """Note sets of a submitter and benchmark with the seeds of another; with the index of the set.

    Seeds are random, so that two sets have few or none in common.
    """
    earlier: dict[Hashable, list[tuple[SetContext, set[int]]]] = {}
    for index, context in enumerate(contexts):
        own = {seed.value for run in context.runs for seed in run.seeds}
        if len(own) > 1 and context.origin.has_folder:
            round_ = (context.round.usage, context.round.name)
            others = earlier.setdefault((*round_, context.submitter, context.files.benchmark), [])
            common = ((len(own & values), other) for other, values in others)
            number, other = max(common, key=lambda item: item[0], default=(0, context))
            if 2 * number >= len(own):
                message = f"{{found}} of {len(own)} seeds are also in {other.label}"
                yield index, context.finding("SEED106", message, found=number)
            others.append((context, own))


# ---- Previews of an earlier round with Available results in a later one -------------------

AVAILABLE = ("onprem", "cloud")
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
    names = (context.submitter, context.division_by_rules, contents.get("accelerator_model_name"))
    return (context.round.usage, context.files.benchmark, *(letters(str(name)) for name in names))


def _proofs(preview: SetContext, by_round: dict[str, list[_Scored]]) -> list[_Scored]:
    """Return the results with other runs from the first later round that has any."""
    number = len(preview.runs)

    def is_fresh(scored: _Scored) -> bool:
        indexes = originals([*preview.runs, *scored[0].runs])[number:]
        return all(index >= number for index in indexes)

    later = (name for name in by_round if version_of(name) > preview.round.version)
    results = (by_round[name][:_MOST] for name in sorted(later, key=version_of))
    return next(filter(None, (list(filter(is_fresh, scored)) for scored in results)), [])


def _preview_finding(
    preview: SetContext, score: Performance, candidates: Sequence[_Scored]
) -> Finding:
    """Report the best result; among several, that with the nearest number of accelerators."""

    def rank(candidate: _Scored) -> tuple[bool, int, float]:
        own = candidate[1]
        return not own.costs(score).is_matched, abs(own.scale - score.scale), own.minutes

    best, own = min(candidates, key=rank)
    is_proven = own.costs(score).is_matched
    available = f"Available in round {best.round.name} with {own.in_words} ({best.label})"
    matched, weight = ("matched", NOTE) if is_proven else ("not matched", {})
    message = f"a Preview with {score.in_words}; {available}: the performance is {matched}"
    return preview.finding("SET152", message, **weight)
