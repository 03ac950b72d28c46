"""The runs of a result set together: their number, their failures, and their folder."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mlperf_pkg.checks.contents import packed_logs
from mlperf_pkg.checks.context import PACKAGE_CHECKER, Origin, SetContext, set_finding
from mlperf_pkg.checks.power import power_files
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, without_official
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.run.model import Run

_OTHER_FILES = frozenset({"scaling.json", "package_checker_params", "power"})
_UNREADABLE = "LOG113"  # the package checker crashes on such a log
_OLYMPIC = "the package checker accepts this, as olympic scoring drops the run"


def findings_of_runs(context: SetContext) -> Iterator[Finding]:
    """Yield the findings of the runs, with a lower basis or severity where the set forgives them.

    The official package checker accepts a set in which at most ``drop`` logs fail, for whatever
    reason ("olympic scoring"), even for their power. The written rules forgive only runs that did
    not converge.
    """
    failed = _failed_runs(context)
    accepted = failed if len(failed) <= context.drop and not any(r.crash for r in failed) else []
    of_power = power_files(context).findings
    for run in context.runs:
        for finding in (*run.findings, *of_power.get(run.path, ())):
            forgiven = run in accepted and finding.code != _UNREADABLE
            yield without_official(finding, _OLYMPIC) if forgiven else finding


def _failed_runs(context: SetContext) -> list[Run]:
    """Return the runs that the official package checker counts as failed, also by their power."""
    of_power = power_files(context).findings
    return [
        run for run in context.runs if run.verdicts.official is Verdict.FAIL or run.path in of_power
    ]


def _too_many_failed(context: SetContext) -> bool:
    """Return whether more runs failed officially than the score drops.

    The RCP checker looks at ``run_stop`` alone, and at Closed sets only.
    """
    unconverged = sum(not run.convergence.converged for run in context.runs)
    failed = len(_failed_runs(context))
    return max(unconverged if context.rcp_required else 0, failed) > context.drop


def for_information(finding: Finding) -> Finding:
    """Return a finding about loose logs, in which an incomplete set is not an error."""
    if finding.severity is not Severity.ERROR:
        return finding
    severity = Severity.NOTE if finding.code == "SET101" else Severity.WARNING
    return replace(finding, severity=severity)


def check_count(context: SetContext) -> Iterator[Finding]:
    """Check that there are as many runs as required, and at most ``drop`` failed ones."""
    if context.rules is None:
        return
    yield from _number_of_runs(context, context.rules.runs.required)
    yield from _unconverged(context, context.rules.runs.required)
    failed = _failed_runs(context)
    if len(failed) > context.drop:
        yield set_finding(
            context,
            "SET103",
            "{found} logs fail the official checkers; expected at most {expected}",
            basis=Basis.OFFICIAL,
            source=PACKAGE_CHECKER,
            found=len(failed),
            expected=context.drop,
        )
    for run in context.runs:
        if run.crash:
            yield set_finding(
                context,
                "SET104",
                "the compliance checker crashes: {found:s}",
                path=run.path,
                basis=Basis.OFFICIAL,
                source=PACKAGE_CHECKER,
                found=run.crash,
            )


def _number_of_runs(context: SetContext, required: int) -> Iterator[Finding]:
    count = len(context.runs)
    if count < required or (count > required and not context.weak):
        yield set_finding(
            context,
            "SET101",
            "{found} runs (files result_*.txt);"
            f" expected {'at least ' * context.weak}{{expected}}",
            found=count,
            expected=required,
        )


def _unconverged(context: SetContext, required: int) -> Iterator[Finding]:
    unconverged = [run for run in context.runs if not run.converged]
    allowed = max(len(context.runs) - required, 0) if context.weak else context.drop
    if len(unconverged) > allowed:
        yield set_finding(
            context,
            "SET102",
            "{found} runs did not converge; expected at most {expected}",
            basis=Basis.BOTH if _too_many_failed(context) else Basis.RULES,
            found=len(unconverged),
            expected=allowed,
        )


def check_folder(context: SetContext) -> Iterator[Finding]:
    """Check that the folder is a benchmark of the round, and holds its runs and nothing else."""
    of_submission = context.origin is Origin.SUBMISSION  # which reports its packed logs together
    packed = packed_logs(context.files) if of_submission else ()
    names = [*packed, *_OTHER_FILES]
    if unread := [name for name in context.files.others if name not in names]:
        yield set_finding(
            context,
            "SET105",
            "not read: {found:s}; expected names of the form result_<number>.txt",
            found=unread,
            basis=Basis.ADVICE,
            severity=Severity.WARNING,
        )
    if not context.in_round:
        yield set_finding(
            context,
            "SET106",
            f"{context.files.benchmark!r} is not a benchmark of round {context.round.name}:"
            " the official checker skips the folder",
            basis=Basis.RULES,
            expected=list(context.round.benchmarks),
        )
    for run in context.runs:
        if run.benchmark and run.benchmark != context.files.benchmark:
            yield set_finding(
                context,
                "SET107",
                "the log is of {found:s}; expected {expected}",
                path=run.path,
                basis=Basis.RULES,
                found=run.benchmark,
                expected=context.files.benchmark,
            )


def check_system_file(context: SetContext) -> Iterator[Finding]:
    """Check that the system description can be read and names the division of the logs."""
    if context.origin is not Origin.SUBMISSION:
        return
    if context.system is None or context.system.contents is None:
        message = f"systems/{context.files.system}.json is missing or cannot be read"
        yield set_finding(context, "SET110", message)
        return
    of_logs = {run.division for run in context.runs} & {*DIVISIONS}
    # A misspelt division is a finding about the system description itself.
    of_system = {context.division} & {*DIVISIONS}
    if len(of_logs | of_system) > 1:
        yield set_finding(
            context,
            "SET111",
            f"the division is {' and '.join(sorted(of_logs))} in the logs,"
            f" but {context.division or 'missing'} in {context.system.path}",
            basis=Basis.RULES,
            found=sorted(of_logs),
            expected=context.division,
        )
