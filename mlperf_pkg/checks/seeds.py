"""Seeds: every run logs one, and no two runs log the same one from the same source line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checks.context import PACKAGE_CHECKER, SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import OTHER_RECORDS, Seed

_RULES = "training_rules, Random numbers"
_IN_RULES_FROM = (4, 1)
_OF_HPC: dict[str, Any] = {"basis": Basis.BOTH, "source": _RULES}


def check_seeds(context: SetContext, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings``, those of ``seed_findings``, for a Closed set that does not bypass them.

    The official package checker asks for seeds under the same conditions, but where a description
    spells "Closed".
    """
    if context.closed_by_rules and "seed-checker-bypass" not in context.files.flags:
        yield from findings if context.closed else _by_rules(findings)
        yield from _same_seed_elsewhere(context)
        if context.round.version >= _IN_RULES_FROM:
            yield from _several_seeds(context)


def _by_rules(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield what the rules ask for, of a set in which the official checker does not look."""
    return (replace(f, basis=Basis.RULES) for f in findings if f.basis is Basis.BOTH)


def _same_seed_elsewhere(context: SetContext) -> Iterator[Finding]:
    """Note the same seed from another source line, which the official checker accepts."""
    first: dict[int, tuple[Seed, str]] = {}
    for run in context.runs:
        for seed in run.seeds:
            same, path = first.setdefault(seed.value, (seed, run.path))
            if path != run.path and (same.file, same.lineno) != (seed.file, seed.lineno):
                yield set_finding(
                    context,
                    "SEED104",
                    f"seed {{found}} is also logged in {path}, from another source line",
                    found=seed.value,
                    path=run.path,
                    line=seed.line,
                    basis=Basis.ADVICE,
                    severity=Severity.NOTE,
                )


def _several_seeds(context: SetContext) -> Iterator[Finding]:
    """Warn about runs with several seeds; the official seed checker only prints a warning."""
    for run in context.runs:
        if any(finding.code == "LOG111" for finding in run.findings):
            continue  # LOG111 reports the several runs
        if len(run.seeds) > 1 and (count := len({seed.value for seed in run.seeds})) > 1:
            yield set_finding(
                context,
                "SEED105",
                "{found} different seeds are logged; expected one",
                path=run.path,
                line=run.seeds[-1].line,
                found=count,
                basis=Basis.RULES,
                severity=Severity.WARNING,
            )


def _unreadable(context: SetContext, run: Run, reason: str, fields: dict[str, Any]) -> Finding:
    """Report seeds that the official checker cannot read, perhaps only for other records."""
    if reason == OTHER_RECORDS:
        fields = {"basis": Basis.OFFICIAL, "source": PACKAGE_CHECKER}
    message = "seeds cannot be read: {found:s}"
    return set_finding(context, "SEED103", message, path=run.path, found=reason, **fields)


def seed_findings(context: SetContext) -> Iterator[Finding]:
    """Check that every run logs a seed, and no seed of a source line appears twice in the set.

    The rules do not require a seed of a killed run, which counts as failed. In HPC,
    equal seeds break the rules in all rounds.
    """
    in_rules = context.round.version >= _IN_RULES_FROM
    source = _RULES if in_rules else PACKAGE_CHECKER
    logged: set[tuple[Any, Any, int]] = set()
    for run in context.runs:
        basis = Basis.BOTH if in_rules and not run.killed else Basis.OFFICIAL
        fields: dict[str, Any] = {"basis": basis, "source": source}
        if run.seeds_unreadable:
            yield _unreadable(context, run, run.seeds_unreadable, fields)
        elif not run.seeds:
            yield set_finding(context, "SEED101", "no seed is logged", path=run.path, **fields)
        for seed in run.seeds:
            key = (seed.file, seed.lineno, seed.value)
            if key in logged:
                yield set_finding(
                    context,
                    "SEED102",
                    "seed {found} is logged by the same source line in several runs; expected"
                    " another seed",
                    path=run.path,
                    line=seed.line,
                    found=seed.value,
                    **(_OF_HPC if context.round.usage == "hpc" else fields),
                )
            logged.add(key)
