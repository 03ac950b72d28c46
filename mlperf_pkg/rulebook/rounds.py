"""The round of a run, where the user does not name it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.infra.resources import official_folder, per_rulebook
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.rulebook.documents import model_of, rounds, usages
from mlperf_pkg.rulebook.load import (
    benchmarks_of,
    load_benchmark,
    load_round,
    submission_date,
)
from mlperf_pkg.rulebook.model import version_of

# Published logs are dated up to about four weeks after the submission (reruns in review).
REVIEW = timedelta(weeks=4)

TRAINING = "training"
"""The usage where nothing says otherwise."""

LATEST = timedelta(days=45)
"""A run later than this after the submission is not of its round, not even a rerun in review."""

_YEAR = timedelta(days=365)

_CHANGED = {
    ("training", "rnnt"): ["1.1"],
    ("hpc", "cosmoflow"): ["2.0", "3.0"],
    ("hpc", "deepcam"): ["2.0", "3.0"],
    ("hpc", "oc20"): ["2.0", "3.0"],
}
"""Rounds in which a benchmark changed although its target did not, by usage and first name.

Source: MLPerf_Compatibility_Table
"""

_BEFORE_FIRST = {"hpc": ("0.7", date(2020, 1, 1))}
"""The round before the first of a usage that logs alike, and the earliest day of its runs."""

# Also as GitHub names its archives: hpc_results_v3.0-main.
_TREE = re.compile(
    r"v(\d+\.\d+)|(?:.*[ ._-])?(?:(training|hpc)[ _-]results|(hpc))[ _-]v?(\d\.\d)(?:[^.\d].*)?"
)


class Sureness(StrEnum):
    """How sure the round of a run is.

    GIVEN: the user gave it. NAMED: the name of a folder has it. INFERRED: the time of a run says
    it. GUESS: the newest round, as the run has no timestamps or is later than every submission.
    """

    GIVEN = "given"
    NAMED = "named"
    INFERRED = "inferred"
    GUESS = "guess"


class RoundChoice(Struct, frozen=True):
    """A round, the reason for it in words, and how sure it is.

    ``day`` is that of the run that the round was inferred from, None if it has no timestamps.
    """

    name: str
    reason: str = "as given"
    sureness: Sureness = Sureness.GIVEN
    day: date | None = None

    def of_usage(self, usage: str, benchmark: str) -> RoundChoice:
        """Return the choice with the reason why it is a round of this usage."""
        return replace(self, reason=f"{self.reason}; {usage} by the benchmark {benchmark}")

    @property
    def precedence(self) -> tuple[bool, tuple[int, ...]]:
        """The order of the choices of several logs: those with a time last, then by round."""
        return (self.day is not None, version_of(self.name))


def round_of_tree(parts: Iterable[str]) -> tuple[str | None, str] | None:
    """Return usage and round by the names of folders, innermost first: ``training_results_v2.0``.

    ``hpc_v3.0`` and ``v2.0`` are valid as well; the latter has no usage. None if no name has a
    round.
    """
    for name in parts:
        match = _TREE.fullmatch(name.lower())
        if match:
            return match[2] or match[3], match[1] or match[4]
    return None


@per_rulebook
def usage_with(benchmark: str, round_name: str | None = None) -> str | None:
    """Return the usage that has a benchmark, None if none has it; training before any other.

    Only a usage with the round ``round_name`` (None: any) is considered.
    """
    for usage in sorted(usages(), key=lambda name: name != TRAINING):
        names = rounds(usage)
        is_possible = round_name is None or round_name in names
        if is_possible and any(benchmark in benchmarks_of(usage, name) for name in names):
            return usage
    return None


def round_of_run(usage: str, time_ms: float, benchmark: str) -> RoundChoice:
    """Return the first round that accepts a run of that time and benchmark.

    Published logs may be older than their round, as logs may be submitted again, but never younger
    than its submission and review. For a later log it is the newest round. Runs of the year before
    the first round of the rules are of the round before, where that logged alike. A benchmark that
    no round has is ignored, and so is a time of 0.
    """
    fitting = _rounds_with(usage, benchmark)
    candidates = fitting or _rounds_with(usage, None)
    newest = list(candidates)[-1]
    if not time_ms:
        return RoundChoice(
            newest, "a guess (the newest round), as no run has a time", Sureness.GUESS
        )
    day = day_of(time_ms)
    run = f"the {benchmark} run of {day}" if fitting else f"the run of {day}"
    before, earliest = _BEFORE_FIRST.get(usage, ("", date.max))
    first = rounds(usage)[0]
    if earliest <= day < window(usage, first)[0]:
        reason = f"inferred, as {run} is earlier than the runs of round {first}"
        return RoundChoice(before, reason, Sureness.INFERRED, day)
    for name, last in candidates.items():
        if day <= last:
            reason = f"inferred as the first round after {run}"
            return RoundChoice(name, reason, Sureness.INFERRED, day)
    reason = f"a guess (the newest round), as {run} is later than every submission date"
    return RoundChoice(newest, reason, Sureness.GUESS, day)


@per_rulebook
def window(usage: str, name: str) -> tuple[date, date]:
    """Return the first and the last day on which runs of one of the ``rounds`` are expected.

    They are after the submission of the previous round. All published logs are within, except for
    those that were submitted again. The first round has no previous one; its window is a year.
    """
    names = rounds(usage)
    index = names.index(name)
    submitted = submission_date(usage, name)
    previous = submission_date(usage, names[index - 1]) if index else submitted - _YEAR
    return previous + timedelta(days=1), submitted + REVIEW


@per_rulebook
def submission_before(usage: str, name: str) -> tuple[str, date] | None:
    """Return the round before one of the ``rounds``, and its submission; None before the first."""
    names = rounds(usage)
    index = names.index(name)
    if index == 0:
        return None
    return names[index - 1], submission_date(usage, names[index - 1])


@per_rulebook
def last_day(usage: str, name: str) -> date:
    """Return the last day on which a run may be of one of the ``rounds``."""
    return submission_date(usage, name) + LATEST


PREVIEW_DAYS = timedelta(days=140)


def due_round(usage: str, name: str) -> str | None:
    """Return the round in which a Preview of one of the ``rounds`` must come back as Available.

    It is the next one, or the first that is submitted 140 days later; None if it is not known yet.
    """
    names = rounds(usage)
    earliest = submission_date(usage, name) + PREVIEW_DAYS
    for later in names[names.index(name) + 1 :]:
        if submission_date(usage, later) >= earliest:
            return later
    return None


@per_rulebook
def first_name(usage: str, round_name: str, benchmark: str) -> str:
    """Return the name that a benchmark had first: rgat was gnn, and retinanet ssd."""
    names = rounds(usage)
    for name in reversed(names[: names.index(round_name) + 1]):
        model = model_of(usage, name, benchmark)
        if model:
            return first_name(usage, name, model)
    return benchmark


def changes_until(usage: str, round_name: str, benchmark: str) -> int:
    """Return how often a benchmark had changed by a round, its target aside.

    Results of rounds between which it changed do not compare.
    """
    changed = _CHANGED.get((usage, first_name(usage, round_name, benchmark)), [])
    return sum(version_of(name) <= version_of(round_name) for name in changed)


def comparable_rounds(usage: str, round_name: str, benchmark: str) -> Iterator[tuple[str, str]]:
    """Yield the rounds before a round whose results of a benchmark compare, the latest first.

    They have the same target, and the benchmark did not change since. Each has the name of the
    benchmark in that round.
    """
    rules = load_benchmark(usage, round_name, benchmark)
    changes = changes_until(usage, round_name, benchmark)
    for older, name in _rounds_before(usage, round_name, benchmark):
        former = load_benchmark(usage, older, name)
        if rules is None or former is None or rules.target != former.target:
            continue
        if changes_until(usage, older, name) == changes:
            yield older, name


def _rounds_before(usage: str, round_name: str, benchmark: str) -> Iterator[tuple[str, str]]:
    """Yield the rounds before a round that have a benchmark, the latest first, and its names."""
    earlier = [name for name in rounds(usage) if version_of(name) < version_of(round_name)]
    name = benchmark
    newer = round_name
    for older in sorted(earlier, key=version_of, reverse=True):
        if name not in benchmarks_of(usage, older):
            name = model_of(usage, newer, name) or name
        newer = older
        if name in benchmarks_of(usage, older):
            yield older, name


@per_rulebook
def version_since(usage: str, round_name: str, benchmark: str) -> str:
    """Return the round since which results of a benchmark compare with those of a round.

    It is empty if they compare with those of all rounds before, or the rules do not have the round.
    """
    if usage not in usages() or round_name not in rounds(usage):
        return ""
    before = list(_rounds_before(usage, round_name, benchmark))
    compared = list(comparable_rounds(usage, round_name, benchmark))
    if len(compared) == len(before):
        return ""
    oldest, _ = [(round_name, benchmark), *compared][-1]
    return oldest


@per_rulebook
def where_instead(usage: str, round_name: str, benchmark: str) -> str:
    """Say which rounds have a benchmark that a round lacks, or which benchmark may be meant.

    Such as ``; the last round of resnet was 4.0`` or ``; did you mean bert?``; it may be empty.
    """
    earlier, later = _rounds_around(usage, round_name, benchmark)
    if round_name in earlier:
        return ""
    if earlier and later:
        return f"; {benchmark} is in rounds {earlier[-1]} and {later[0]}"
    if earlier:
        return f"; the last round of {benchmark} was {earlier[-1]}"
    if later:
        return f"; the first round of {benchmark} is {later[0]}"
    other = usage_with(benchmark)
    if other:
        return f"; {benchmark} is a benchmark of {other}"
    return did_you_mean(benchmark, benchmarks_of(usage, round_name))


def round_instead(usage: str, round_name: str, benchmark: str) -> str | None:
    """Return the round nearest to one that lacks a benchmark, of those that have it."""
    earlier, later = _rounds_around(usage, round_name, benchmark)
    return next(iter([*earlier[-1:], *later]), None)


def _rounds_around(usage: str, round_name: str, benchmark: str) -> tuple[list[str], list[str]]:
    """Return the rounds that have a benchmark: those up to a round, and later ones."""
    having = [name for name in rounds(usage) if benchmark in benchmarks_of(usage, name)]
    later = [name for name in having if version_of(name) > version_of(round_name)]
    return [name for name in having if name not in later], later


@per_rulebook
def has_ruleset(usage: str, round_name: str) -> bool:
    """Return whether the installed mlperf-logging has the ruleset of one of the ``rounds``.

    Where it has not, what it will say is unknown.
    """
    ruleset = load_round(usage, round_name).ruleset
    return (official_folder() / "compliance_checker" / f"{usage}_{ruleset}").is_dir()


def known_verdicts(verdicts: Verdicts, usage: str, round_name: str) -> Verdicts:
    """Return verdicts, the official one as not checked where mlperf-logging has no ruleset."""
    if has_ruleset(usage, round_name):
        return verdicts
    return replace(verdicts, official=Verdict.NOT_CHECKED)


@per_rulebook
def _rounds_with(usage: str, benchmark: str | None) -> Mapping[str, date]:
    """Return the rounds with a benchmark (None: any), each with the last day of its runs."""
    return {
        name: submission_date(usage, name) + REVIEW
        for name in rounds(usage)
        if benchmark is None or benchmark in benchmarks_of(usage, name)
    }


def day_of(time_ms: float) -> date:
    """Return the day (UTC) of a time in milliseconds, a far one where the calendar lacks it."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).date()
    except (ValueError, OverflowError, OSError):
        return date.max - REVIEW
