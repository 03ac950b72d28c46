"""Seeds: every run logs one, and no two runs the same one from the same source line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mlperf_pkg.checks.context import PACKAGE, SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity

_RULES = "training_rules, Random numbers"
_RULED_FROM = (4, 1)


def check_seeds(case: SetContext, found: Iterable[Finding]) -> Iterator[Finding]:
    """What the official package checker asks of a Closed set, unless it is told to bypass it.

    ``found`` are the ``seed_findings``.
    """
    if case.closed and "seed-checker-bypass" not in case.files.flags:
        yield from found
        yield from _elsewhere(case)


def _elsewhere(case: SetContext) -> Iterator[Finding]:
    """The same seed from another source line, which the official checker does not see."""
    lines: dict[int, tuple[Any, Any, str]] = {}
    for run in case.runs:
        for seed in run.seeds:
            *place, path = lines.setdefault(seed.value, (seed.file, seed.lineno, run.path))
            if path != run.path and place != [seed.file, seed.lineno]:
                yield set_finding(
                    case,
                    "SEED104",
                    f"seed {seed.value} was logged in {path} too, by another source line",
                    path=run.path,
                    line=seed.line,
                    basis=Basis.ADVICE,
                    severity=Severity.NOTE,
                )


def seed_findings(case: SetContext) -> Iterator[Finding]:
    """Every run logs a seed, and no two records of the set the same one from the same line."""
    ruled = case.round.version >= _RULED_FROM
    more: dict[str, Any] = {
        "basis": Basis.BOTH if ruled else Basis.OFFICIAL,
        "source": _RULES if ruled else PACKAGE,
    }
    earlier: dict[tuple[Any, Any, int], str] = {}
    for run in case.runs:
        if run.seeds_unreadable:
            message = f"seeds cannot be read: {run.seeds_unreadable}"
            yield set_finding(case, "SEED103", message, path=run.path, **more)
            continue
        if not run.seeds:
            yield set_finding(case, "SEED101", "no seed is logged", path=run.path, **more)
        for seed in run.seeds:
            place = (seed.file, seed.lineno, seed.value)
            if place in earlier:
                yield set_finding(
                    case,
                    "SEED102",
                    f"seed {seed.value} was logged by the same source line in {earlier[place]}",
                    path=run.path,
                    line=seed.line,
                    found=seed.value,
                    **more,
                )
            else:
                earlier[place] = run.path
