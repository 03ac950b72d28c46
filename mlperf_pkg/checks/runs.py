"""The runs of a result set together: their number, their failures, and their folder."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mlperf_pkg.checks.context import PACKAGE_CHECKER, Origin, SetContext, set_finding
from mlperf_pkg.checks.failed_runs import (
    allowed_failures,
    failed_runs,
    too_many_failed,
    unconverged_runs,
)
from mlperf_pkg.checks.tree import packed_logs
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.rulebook.rounds import where_instead

_OTHER_FILES = frozenset({"scaling.json", "package_checker_params", "power"})


def for_information(finding: Finding) -> Finding:
    """Return a finding as it is for a set that is not judged: never an error."""
    if finding.severity is not Severity.ERROR:
        return finding
    severity = Severity.NOTE if finding.code == "SET101" else Severity.WARNING
    return replace(finding, severity=severity)


def check_count(context: SetContext) -> Iterator[Finding]:
    """Check that there are as many runs as required, and at most ``drop`` failed ones."""
    if context.rules is None:
        return
    yield from _number_of_runs(context, context.rules.runs.required)
    yield from _unconverged(context)
    failed = failed_runs(context)
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
            f"the number of runs{' (files result_*.txt)' * context.origin.has_folder} is {{found}};"
            f" expected {'at least ' * context.weak}{{expected}}",
            found=count,
            expected=required,
        )


def _unconverged(context: SetContext) -> Iterator[Finding]:
    unconverged, allowed = unconverged_runs(context), allowed_failures(context)
    if len(unconverged) > allowed:
        yield set_finding(
            context,
            "SET102",
            "{found} runs did not converge; expected at most {expected}",
            basis=Basis.BOTH if too_many_failed(context) else Basis.RULES,
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
        name, round_ = context.files.benchmark, context.round
        yield set_finding(
            context,
            "SET106",
            f"{name!r} is not a benchmark of round {round_.name}: the official checker skips the"
            f" folder{where_instead(round_.usage, round_.name, name)}",
            basis=Basis.RULES,
            expected=list(context.round.benchmarks),
        )
    for run in context.runs:
        if run.benchmark not in ("", context.files.benchmark):
            yield set_finding(
                context,
                "SET107",
                "the log names the benchmark {found:s}; expected {expected}",
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
    of_system = {context.division_by_rules} & {*DIVISIONS}
    if len(of_logs | of_system) > 1:
        was_moved = of_logs == {"closed"} and of_system == {"open"}
        yield set_finding(
            context,
            "SET111",
            f"the division is {' and '.join(sorted(of_logs))} in the logs,"
            f" but {context.division or 'missing'} in {context.system.path}",
            basis=Basis.ADVICE if was_moved else Basis.RULES,
            severity=Severity.NOTE if was_moved else Severity.ERROR,
            found=sorted(of_logs),
            expected=context.division,
        )
