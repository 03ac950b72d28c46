"""Whether planned result sets are valid, and the results that they will make."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.fold import system_row, tool
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.result_sets import SetResult, check_set
from mlperf_pkg.commands.builder.plan import Plan, PlannedSet
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import Basis, Finding, Verdicts, Waiver
from mlperf_pkg.infra.text import visible
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.submission.model import Place, ResultSet

# The codes of the findings that a flag of package_checker_params answers.
BYPASSES = {"rcp-bypass": ("RCP101",), "seed-checker-bypass": ("SEED101", "SEED102", "SEED103")}

_BASES = {
    Basis.BOTH: "rules and official checker",
    Basis.OFFICIAL: "official checker",
    Basis.RULES: "rules",
}


class JudgedSet(Struct, frozen=True):
    """A planned result set, the bypasses that it needs, and what the checker then says of it."""

    planned: PlannedSet
    flags: frozenset[str]
    result: SetResult

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that was found of the set and its runs."""
        return (*self.result.findings, *self.result.run_findings)

    @property
    def failures(self) -> list[Finding]:
        """The findings that fail it, officially or by the rules."""
        return failures(self.findings)


def judge(
    plan: Plan, workspace: Workspace, bypasses: Collection[str] = ()
) -> tuple[JudgedSet, ...]:
    """Judge every set of a plan; of ``bypasses`` each set takes those whose test it fails."""
    waivers = _waivers(workspace)
    cases = [(planned, _case(planned, plan.submitter, workspace.round)) for planned in plan.sets]
    return tuple(_judge_set(planned, case, waivers, bypasses) for planned, case in cases)


def reasons(judged: Iterable[JudgedSet]) -> Iterator[str]:
    """Why the systems and the result sets are not valid: one text for each of them."""
    listed = list(judged)
    for system in {each.planned.system.path: each.planned.system for each in listed}.values():
        if wrong := failures(system.findings):
            yield "\n".join([f"{system.path} is not valid:", *_folded(wrong)])
    for each in listed:
        if wrong := each.failures:
            yield "\n".join([f"{each.planned.name} is not valid:", *_folded(wrong)])


def waiver_notes(judged: Iterable[JudgedSet], workspace: Workspace) -> Iterator[str]:
    """Every waiver that lets something stand, one line for each code, and every stale one."""
    listed = list(judged)
    systems = {each.planned.system.path: each.planned.system for each in listed}
    findings = [finding for system in systems.values() for finding in system.findings]
    findings += [finding for each in listed for finding in each.findings]
    alike: dict[tuple[str, Waiver], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.sort_key):
        if finding.waiver:
            alike.setdefault((finding.code, finding.waiver), []).append(finding)
    for (code, waiver), several in alike.items():
        number = words.counted(len(several), "finding")
        yield (
            f"waived by {waiver.approved_by} until {waiver.until}: {number} {code}, the first in"
            f" {words.location(several[0])}: {waiver.reason}"
        )
    for finding in _waivers(workspace).stale(findings):
        yield f"{words.location(finding)}: {finding.message}"


def _waivers(workspace: Workspace) -> Waivers:
    return Waivers(workspace.config.waivers, CONFIG_NAME)


def failures(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that fail a verdict, without those that are waived."""
    return [f for f in findings if f.is_error and f.basis is not Basis.ADVICE]


def report(judged: Collection[JudgedSet], workspace: Workspace) -> Report:
    """The systems and result sets of the tree to be built, for its results tables."""
    round_, described = (
        workspace.round,
        {each.planned.system.id: each.planned.system for each in judged},
    )
    systems = tuple(
        replace(system_row(system, round_.usage, round_.name), path=f"systems/{system.id}.json")
        for system in described.values()
    )
    rows = tuple(each.result.row for each in judged)
    return Report(
        tool=tool(),
        usage=workspace.round.usage,
        round=workspace.round.name,
        round_reason=workspace.round_reason,
        verdict=Verdicts.worst([row.verdict for row in systems] + [row.verdict for row in rows]),
        systems=systems,
        result_sets=rows,
    )


# ---- one set ------------------------------------------------------------------------------


def _judge_set(
    planned: PlannedSet, case: SetContext, waivers: Waivers, bypasses: Collection[str]
) -> JudgedSet:
    result = waivers.waive_set(check_set(case))
    failed = {finding.code for finding in failures(result.findings)}
    flags = frozenset(flag for flag in bypasses if failed.intersection(BYPASSES[flag]))
    if flags:
        case = replace(case, files=replace(case.files, flags=flags))
        result = waivers.waive_set(check_set(case))
    return JudgedSet(planned, flags, result)


def _case(planned: PlannedSet, submitter: str, round_: Round) -> SetContext:
    return SetContext(
        files=ResultSet(
            place=Place(Path(planned.folder), planned.folder),
            system=planned.system.id,
            benchmark=planned.benchmark,
            logs=(),
            scaling_mode=planned.scaling,
        ),
        runs=planned.runs,
        round=round_,
        rules=load_benchmark(round_.usage, round_.name, planned.benchmark),
        submitter=submitter,
        system=planned.system,
    )


# ---- what to say --------------------------------------------------------------------------


def _folded(findings: Iterable[Finding]) -> Iterator[str]:
    """One line for all findings of a code and basis: the first, and how many are like it."""
    alike: dict[tuple[str, Basis], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.sort_key):
        alike.setdefault((finding.code, finding.basis), []).append(finding)
    for (code, basis), several in alike.items():
        first = several[0]
        more = f" (and {len(several) - 1} more like this)" if len(several) > 1 else ""
        said = f"{words.location(first)}: {code}: {first.message}"
        yield f"  {visible(said)}{more} [{_BASES[basis]}]"
        if hint := _hint(first):
            yield f"    {hint}"


def _hint(finding: Finding) -> str | None:
    if finding.code == "SET101" and finding.found > finding.expected:
        return (
            f"--select takes the {finding.expected} consecutive runs whose result is closest to"
            " the median of all such windows; 'mlperf-pkg select' shows which"
        )
    flags = [flag for flag, codes in BYPASSES.items() if finding.code in codes]
    return f"--{flags[0]} builds it and asks for a review" if flags else finding.hint
