"""Seeds: every run logs one, and no two runs the same one from the same source line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlperf_pkg.checks.cases import PACKAGE, SetCase, set_finding
from mlperf_pkg.diagnostics import Basis, Diagnostic

_RULES = "training_rules, Random numbers"
_RULED_FROM = (4, 1)


def check_seeds(case: SetCase) -> Iterator[Diagnostic]:
    """What the official package checker asks of a Closed set, unless it is told to bypass it."""
    if case.closed and "seed-checker-bypass" not in case.files.flags:
        yield from seed_findings(case)


def seed_findings(case: SetCase) -> Iterator[Diagnostic]:
    """Every run logs a seed, and no two records of the set the same one from the same line."""
    ruled = case.version >= _RULED_FROM
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
            earlier.setdefault(place, run.path)
