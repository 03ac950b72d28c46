"""The runs of a result set that failed, and what the official checkers and the rules forgive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.power import power_files
from mlperf_pkg.findings import Basis, Finding, Pending, Severity, Verdict, without_official
from mlperf_pkg.run.model import Run

_UNREADABLE = "LOG113"  # the package checker crashes on such a log
_NO_POWER = "POW101"
_ENDINGS = frozenset({"LOG110", "RUN130"})  # say by themselves how a run failed
_OLYMPIC = "the package checker accepts this, as olympic scoring drops the run"
_DROPPED = "the score drops this run as the slowest; what else its log lacks is not listed"


def findings_of_runs(context: SetContext) -> Iterator[Finding]:
    """Yield the findings of the runs, with a lower basis or severity where the set forgives them.

    The official package checker accepts a set in which at most ``drop`` logs fail, for whatever
    reason ("olympic scoring"), even for their power. The written rules forgive only runs that did
    not converge; of a run that was killed, no missing record counts.
    """
    accepted_runs, forgiven_runs = _forgiven(context)
    of_power = power_files(context).findings
    for run in context.runs:
        accepted = run in accepted_runs
        findings = (*run.findings, *of_power.get(run.path, ()))
        if run in forgiven_runs:
            findings = tuple(map(_without_power, findings))
        if run.killed:
            findings = tuple(_of_killed(findings, shown=not accepted))
        if accepted:
            findings = tuple(map(_accepted, findings))
        yield from map(partial(_noted, run), findings) if run in forgiven_runs else findings


def failed_runs(context: SetContext) -> list[Run]:
    """Return the runs that the official package checker counts as failed, also by their power."""
    of_power = power_files(context).findings
    return [
        run for run in context.runs if run.verdicts.official is Verdict.FAIL or run.path in of_power
    ]


def too_many_failed(context: SetContext) -> bool:
    """Return whether more runs failed officially than the score drops.

    The RCP checker looks at ``run_stop`` alone, and at Closed sets only.
    """
    unconverged = sum(not run.convergence.converged for run in context.runs)
    failed = len(failed_runs(context))
    return max(unconverged if context.rcp_required else 0, failed) > context.drop


def unconverged_runs(context: SetContext) -> list[Run]:
    """Return the runs that did not converge by the rules, also those that were killed."""
    return [run for run in context.runs if not run.converged]


def allowed_failures(context: SetContext) -> int:
    """Return how many runs of a set may fail to converge."""
    if not context.weak:
        return context.drop
    return max(len(context.runs) - (context.rules.runs.required if context.rules else 0), 0)


def _forgiven(context: SetContext) -> tuple[list[Run], list[Run]]:
    """Return the runs whose logs may break any rule, and those that may fail to converge."""
    failed, unconverged = failed_runs(context), unconverged_runs(context)
    accepts = len(failed) <= context.drop and not any(run.crash for run in failed)
    forgives = len(unconverged) <= allowed_failures(context)
    return failed if accepts else [], unconverged if forgives else []


def _of_killed(findings: Iterable[Finding], *, shown: bool) -> Iterator[Finding]:
    """Yield the findings of a run that was killed, which the rules count as one failure.

    What its log lacks is an error of the official checker alone, and ``shown`` unless that
    accepts the log.
    """
    for finding in findings:
        is_missing = isinstance(finding, Pending) and finding.code not in _ENDINGS
        if is_missing and (finding.basis is Basis.RULES or not shown):
            continue
        by_both = finding.basis is Basis.BOTH
        yield replace(finding, basis=Basis.OFFICIAL) if by_both else finding


def _accepted(finding: Finding) -> Finding:
    return finding if finding.code == _UNREADABLE else without_official(finding, _OLYMPIC)


def _without_power(finding: Finding) -> Finding:
    """Return a finding with the basis OFFICIAL if it reports missing power.

    By the rules, only the energy of runs whose time counts is needed.
    """
    return replace(finding, basis=Basis.OFFICIAL) if finding.code == _NO_POWER else finding


def _noted(run: Run, finding: Finding) -> Finding:
    """Return the finding that a run failed as a note: the rules forgive the run."""
    if finding.code not in _ENDINGS or finding.severity is Severity.ERROR:
        return finding
    return replace(finding, severity=Severity.NOTE, hint=_DROPPED if run.killed else finding.hint)
