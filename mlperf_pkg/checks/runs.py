"""The runs of a result set together: how many, which are forgiven, whether they belong there."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mlperf_pkg.checks.context import PACKAGE, SetContext, set_finding
from mlperf_pkg.checks.power import power_files
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, without_official
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.run.model import Run

_EXPECTED_FILES = frozenset({"scaling.json", "package_checker_params", "power"})
_OLYMPIC = "the package checker accepts this, as olympic scoring drops the run"


def forgiven(case: SetContext) -> Iterator[Finding]:
    """The findings of the runs, as far as the set does not forgive them.

    The official package checker accepts a set in which at most ``drop`` logs fail, whatever they
    fail of ("olympic scoring"), be it of their power; the written rules forgive only runs that do
    not converge.
    """
    failed = _failed(case)
    accepted = failed if len(failed) <= case.drop and not any(r.crash for r in failed) else []
    blamed = power_files(case).blamed
    for run in case.runs:
        for finding in (*run.findings, *blamed.get(run.path, ())):
            yield without_official(finding, _OLYMPIC) if run in accepted else finding


def _failed(case: SetContext) -> list[Run]:
    """The runs that the official package checker counts as failed, also by their power."""
    blamed = power_files(case).blamed
    official = (r.verdicts.official is Verdict.FAIL or r.path in blamed for r in case.runs)
    return [run for run, fails in zip(case.runs, official, strict=True) if fails]


def _rejected(case: SetContext) -> bool:
    """Whether the official checkers reject the set, as more runs than may be dropped have failed.

    The RCP checker goes by ``run_stop`` alone, and is asked about Closed sets only.
    """
    lost = sum(not run.convergence.converged for run in case.runs)
    return max(lost if case.rcp_tested else 0, len(_failed(case))) > case.drop


def for_information(finding: Finding) -> Finding:
    """A finding about loose logs: what they lack as a set is no error."""
    if finding.severity is not Severity.ERROR:
        return finding
    severity = Severity.NOTE if finding.code == "SET101" else Severity.WARNING
    return replace(finding, severity=severity)


def check_count(case: SetContext) -> Iterator[Finding]:
    """As many runs as required, and no more failed ones than are dropped."""
    if case.rules is None:
        return
    required, found = case.rules.runs.required, len(case.runs)
    if found < required or (found > required and not case.weak):
        yield set_finding(
            case,
            "SET101",
            f"{found} runs (files result_*.txt), needed {'at least ' * case.weak}{required}",
            found=found,
            expected=required,
        )
    lost = [run for run in case.runs if not run.converged]
    may = max(found - required, 0) if case.weak else case.drop
    if len(lost) > may:
        yield set_finding(
            case,
            "SET102",
            f"{len(lost)} runs did not converge, at most {may} may",
            basis=Basis.BOTH if _rejected(case) else Basis.RULES,
            found=len(lost),
            expected=may,
        )
    failed = _failed(case)
    if len(failed) > case.drop:
        yield set_finding(
            case,
            "SET103",
            f"{len(failed)} logs fail the official checkers, at most {case.drop} may",
            basis=Basis.OFFICIAL,
            source=PACKAGE,
            found=len(failed),
            expected=case.drop,
        )
    for run in case.runs:
        if run.crash:
            message = f"the compliance checker dies of {run.path}: {run.crash}"
            yield set_finding(case, "SET104", message, basis=Basis.OFFICIAL, source=PACKAGE)


def check_folder(case: SetContext) -> Iterator[Finding]:
    """A folder named after a benchmark of the round, with runs of it and nothing else."""
    if strange := [name for name in case.files.others if name not in _EXPECTED_FILES]:
        yield set_finding(
            case,
            "SET105",
            f"not read, as the name is not result_<number>.txt: {', '.join(strange[:5])}",
            basis=Basis.ADVICE,
            severity=Severity.WARNING,
        )
    if not case.known:
        yield set_finding(
            case,
            "SET106",
            f"{case.files.benchmark!r} is no benchmark of round {case.round.name}:"
            " the official checker skips the folder",
            basis=Basis.RULES,
            expected=list(case.round.benchmarks),
        )
    for run in case.runs:
        named = run.benchmark
        if named and named != case.files.benchmark:
            message = f"a run of {named}, in a folder of {case.files.benchmark}"
            yield set_finding(case, "SET107", message, path=run.path, basis=Basis.RULES)


def check_system_file(case: SetContext) -> Iterator[Finding]:
    """A system description that can be read and names the division of the logs."""
    if case.loose:
        return
    if case.system is None or case.system.contents is None:
        message = f"no system description systems/{case.files.system}.json that can be read"
        yield set_finding(case, "SET110", message, source="submission_rules, Systems")
        return
    named = {run.division for run in case.runs} & {*DIVISIONS}
    said = {case.division} & {*DIVISIONS}  # a misspelt division is the file's own finding
    if len(named | said) > 1:
        file = f"{case.system.path} says {case.division or 'nothing'}"
        yield set_finding(
            case,
            "SET111",
            f"the logs say {' and '.join(sorted(named))}, {file}",
            basis=Basis.RULES,
            found=sorted(named),
            expected=case.division,
        )
