"""Previews of an earlier round with Available results in a later one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.checks.described import PREVIEW, category
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.text import letters
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.model import version_of

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


class ScoredSet(Struct, frozen=True):
    """A result set with a score in minutes, and the number of accelerators of its system."""

    context: SetContext
    accelerators: int
    minutes: float

    @property
    def in_words(self) -> str:
        """The score and the number of accelerators."""
        scale = wording.counted(self.accelerators, "accelerator")
        return f"{wording.minutes(self.minutes)} minutes on {scale}"

    def matches(self, preview: ScoredSet) -> bool:
        """Return whether the performance is at least that of a Preview, less the allowed loss."""
        own = Performance(self.accelerators, self.minutes)
        return own.costs(Performance(preview.accelerators, preview.minutes)).is_matched


def check_previews(
    contexts: Sequence[SetContext], minutes: Sequence[float | None]
) -> Iterator[tuple[int, Finding]]:
    """Compare Previews with the Available results of the first later round that has any.

    These have the same submitter, benchmark, division and accelerator, but no runs of the Preview.
    ``minutes`` are the scores; each finding has the index of its Preview.
    """
    previews: dict[int, ScoredSet] = {}
    available: dict[tuple[str, ...], dict[str, list[ScoredSet]]] = {}
    for index, (context, score) in enumerate(zip(contexts, minutes, strict=True)):
        system = context.system
        if system is None or not system.accelerators or not score:
            continue
        scored = ScoredSet(context, system.accelerators, score)
        status = category(system.status or "")
        if status == PREVIEW:
            previews[index] = scored
        elif status in AVAILABLE:
            rounds = available.setdefault(_key(context), {})
            rounds.setdefault(context.round.name, []).append(scored)
    for index, preview in previews.items():
        if candidates := _proofs(preview, available.get(_key(preview.context), {})):
            yield index, _finding(preview, candidates)


def _key(context: SetContext) -> tuple[str, ...]:
    """Return what a Preview and its Available results have in common."""
    contents = (context.system.contents if context.system else None) or {}
    names = (context.submitter, context.division_by_rules, contents.get("accelerator_model_name"))
    return (context.round.usage, context.files.benchmark, *(letters(str(name)) for name in names))


def _proofs(preview: ScoredSet, by_round: dict[str, list[ScoredSet]]) -> list[ScoredSet]:
    """Return the results with other runs from the first later round that has any."""
    runs = {run.fingerprint for run in preview.context.runs if run.fingerprint}
    for name in sorted(by_round, key=version_of):
        if version_of(name) > preview.context.round.version:
            fresh = (scored for scored in by_round[name][:_MOST] if runs.isdisjoint(_runs(scored)))
            if proofs := list(fresh):
                return proofs
    return []


def _runs(scored: ScoredSet) -> set[bytes | None]:
    return {run.fingerprint for run in scored.context.runs}


def _finding(preview: ScoredSet, candidates: Sequence[ScoredSet]) -> Finding:
    """Report the best result; among several, that with the nearest number of accelerators."""
    is_proven = any(candidate.matches(preview) for candidate in candidates)
    best = min(
        candidates,
        key=lambda c: (
            not c.matches(preview),
            abs(c.accelerators - preview.accelerators),
            c.minutes,
        ),
    )
    path, name = best.context.label, best.context.round.name
    return set_finding(
        preview.context,
        "SET152",
        f"a Preview with {preview.in_words}; Available in round {name} with {best.in_words}"
        f" ({path}): the performance is {'' if is_proven else 'not '}matched",
        severity=Severity.NOTE if is_proven else Severity.WARNING,
        basis=Basis.ADVICE if is_proven else Basis.RULES,
    )
