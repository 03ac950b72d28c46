"""One code for one rule: what counts as one rule, and codes that several rules have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.rulebook.files import ROUND, own_stems, rounds, usages
from mlperf_pkg.rulebook.inheritance import model_of, own, problem_of
from mlperf_pkg.rulebook.model import SECTIONS
from mlperf_pkg.rulebook.problems import Problem, Steps


class _Use(Struct, frozen=True):
    """A rule as a file has it: its code and key, and where it is."""

    code: str
    key: str
    division: str
    usage: str
    round: str
    stem: str
    steps: Steps

    @property
    def subject(self) -> str:
        """The key and the runs that it is about, in words."""
        runs = "every run" if self.stem == ROUND else f"{self.division.title()} {self.stem}"
        return f"{self.key} of {runs}"

    def problem(self, message: str) -> Problem:
        """Return a problem of this rule."""
        return problem_of(self.usage, self.round, self.stem, self.steps, message)


def problems_of_codes() -> Iterator[Problem]:
    """Yield the codes that several rules have.

    In all rounds of a usage, a code is that of one key, of one division, and of one benchmark and
    those that are ``like`` it. A code in a ``round.yaml`` is that of one key, whatever the
    division, also where a benchmark replaces the rule. Several rules of one key have different
    codes, and ``findings.yaml`` has none of them.
    """
    for usage in usages():
        uses = list(_uses(usage))
        of_every_run = {use.code for use in uses if use.stem == ROUND}
        models = _models(usage)
        yield from _shared(uses, of_every_run, models)
        yield from _repeated(uses)
        for use in uses:
            if use.code in codes():
                yield use.problem(f"code {use.code} is in findings.yaml; expected an unused one")


def _shared(
    uses: list[_Use], of_every_run: set[str], models: Mapping[str, str]
) -> Iterator[Problem]:
    first: dict[str, _Use] = {}
    for use in uses:
        other = first.setdefault(use.code, use)
        same_division = use.division == other.division
        same_model = _model(use.stem, models) == _model(other.stem, models)
        if use.key != other.key or not (use.code in of_every_run or (same_division and same_model)):
            place = other.problem("")
            yield use.problem(
                f"code {use.code} of {use.subject} is that of {other.subject}"
                f" ({place.file}:{place.line})"
            )


def _repeated(uses: list[_Use]) -> Iterator[Problem]:
    lists: dict[tuple[str, str, Steps, str], _Use] = {}
    for use in uses:
        if lists.setdefault((use.round, use.stem, use.steps[:-1], use.code), use) is not use:
            yield use.problem(f"code {use.code} is that of another rule of {use.key}")


def _models(usage: str) -> dict[str, str]:
    """Return which benchmark another one is ``like``, in any round."""
    places = [(name, stem) for name in rounds(usage) for stem in own_stems(usage, name)]
    models = {stem: model_of(usage, name, stem) for name, stem in reversed(places)}
    return {stem: model for stem, model in models.items() if model}


def _model(stem: str, models: Mapping[str, str]) -> str:
    for _ in models:
        stem = models.get(stem, stem)
    return stem


def _uses(usage: str) -> Iterator[_Use]:
    """Yield every rule of every file of a usage: rounds by age, ``round.yaml`` first of each."""
    for name in rounds(usage):
        for stem in sorted(own_stems(usage, name), key=lambda stem: (stem != ROUND, stem)):
            for division, steps, section in _sections(own(usage, name, stem)):
                for key, entry in section.items():
                    rules = entry if isinstance(entry, list) else [entry] if entry else []
                    for index, rule in enumerate(rules):
                        where = (*steps, key, index)
                        yield _Use(rule["code"], key, division, usage, name, stem, where)


def _sections(document: Mapping[str, Any]) -> Iterator[tuple[str, Steps, Mapping[str, Any]]]:
    """Yield each section of a file: its division, the steps that lead to it, its rules."""
    for name in SECTIONS:
        yield name, (name,), document.get(name, {})
    for key, choices in document.get("variants", {}).items():
        for value, section in choices.items():
            yield "closed", ("variants", key, value), section
