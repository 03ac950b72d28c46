"""Judge whether planned result sets are valid, and report the results they will have."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.fold import copies_in, find_pairs, system_row, tool, with_findings
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import shared_runs
from mlperf_pkg.checks.result_sets import SetResult, check_set
from mlperf_pkg.commands.builder.plan import Plan, PlannedSet, systems_of
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts, folded, in_order
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.findings import location, sentence
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.submission.model import Place, ResultSet

# The codes of the findings that a flag of package_checker_params suppresses.
BYPASSES = {"rcp-bypass": ("RCP101",), "seed-checker-bypass": ("SEED101", "SEED102", "SEED103")}

OTHER_DIVISION = "SET111"  # the logs and the description of a set are of two divisions

_BASES = {
    Basis.BOTH: "rules and official checker",
    Basis.OFFICIAL: "official checker",
    Basis.RULES: "rules",
}


class JudgedSet(Struct, frozen=True):
    """A planned result set, the bypasses it needs, and the result of checking it with them."""

    planned: PlannedSet
    flags: frozenset[str]
    result: SetResult

    @property
    def failures(self) -> list[Finding]:
        """The findings that fail it, officially or by the rules.

        Waived ones are among them where the official verdict fails, which no waiver changes.
        """
        rejected = self.result.row.verdict.official is Verdict.FAIL
        accepted = OTHER_DIVISION if self.planned.as_open else None
        failed = failures(self.result.observations, rejected=rejected)
        return [finding for finding in failed if finding.code != accepted]


def judge(
    plan: Plan, workspace: Workspace, bypasses: Collection[str] = ()
) -> tuple[JudgedSet, ...]:
    """Judge every set of a plan; a set takes those of the ``bypasses`` whose test it fails."""
    waivers = Waivers(workspace.config.waivers, CONFIG_NAME)
    sources = {path: log.source for path, log in workspace.logs.items()}
    contexts = [_context(s, plan.submitter, workspace.round, sources) for s in plan.sets]
    copies, judged = copies_in(contexts, find_pairs(contexts, shared_runs(contexts), sources)), []
    for index, (planned, context) in enumerate(zip(plan.sets, contexts, strict=True)):
        result = waivers.waive_set(check_set(context))
        failed = {finding.code for finding in failures(result.findings)}
        flags = frozenset(flag for flag in bypasses if failed.intersection(BYPASSES[flag]))
        if flags:
            bypassing = replace(context, files=replace(context.files, flags=flags))
            result = waivers.waive_set(check_set(bypassing))
        result = with_findings(result, waivers.waive(copies.get(index, ())))
        judged.append(JudgedSet(planned, flags, result))
    return tuple(judged)


def reasons(judged: Sequence[JudgedSet]) -> Iterator[str]:
    """Yield why systems and result sets are not valid: one message for each of them."""
    systems = systems_of(judged_set.planned for judged_set in judged)
    of_systems = ((s.path, failures(s.findings, rejected=True)) for s in systems)
    for name, failed in (*of_systems, *((s.planned.name, s.failures) for s in judged)):
        if failed:
            yield "\n".join([f"{name} is not valid:", *_lines(failed)])


def without_invalid(plan: Plan, judged: Sequence[JudgedSet]) -> tuple[Plan, tuple[JudgedSet, ...]]:
    """Return both without the result sets that are not valid, or whose system is not."""
    passing = (judged_set for judged_set in judged if not judged_set.failures)
    valid = tuple(s for s in passing if not failures(s.planned.system.findings, rejected=True))
    problems = plan.problems
    if judged and not any(judged_set.planned.is_of(plan.division) for judged_set in valid):
        problems += ("no result set is valid: nothing is left to build",)
    sets = tuple(judged_set.planned for judged_set in valid)
    return replace(plan, sets=sets, problems=problems), valid


def waiver_notes(judged: Sequence[JudgedSet], workspace: Workspace) -> Iterator[str]:
    """Yield a line for every waiver and code that it waives, and for every stale waiver."""
    findings = list(_all_findings(judged))
    waived = by_key(((f.code, f.waiver), f) for f in in_order(findings) if f.waiver)
    for (code, waiver), group in waived.items():
        number = words.counted(len(group), "finding")
        yield (
            f"waived by {waiver.approved_by} until {waiver.until}: {number} {code}, the first in"
            f" {location(group[0])}: {waiver.reason}"
        )
    for finding in Waivers(workspace.config.waivers, CONFIG_NAME).stale(findings):
        yield f"{location(finding)}: {finding.text}"


def failures(findings: Iterable[Finding], *, rejected: bool = False) -> list[Finding]:
    """Return the findings that fail a verdict.

    Waived findings are included only if the official checker ``rejected`` their subject.
    """
    return [
        finding
        for finding in findings
        if finding.basis is not Basis.ADVICE
        and (finding.is_error or (rejected and finding.fails(Basis.OFFICIAL)))
    ]


def report(judged: Collection[JudgedSet], workspace: Workspace) -> Report:
    """Return the report on the tree to be built, for its results tables."""
    round_ = workspace.round
    systems = tuple(
        replace(system_row(system, round_.usage, round_.name), path=f"systems/{system.id}.json")
        for system in systems_of(judged_set.planned for judged_set in judged)
    )
    rows = tuple(judged_set.result.row for judged_set in judged)
    return Report(
        tool=tool(),
        usage=round_.usage,
        round=round_.name,
        round_reason=workspace.round_reason,
        verdict=Verdicts.worst([row.verdict for row in systems] + [row.verdict for row in rows]),
        systems=systems,
        result_sets=rows,
        findings=in_order(_all_findings(judged)),
    )


def _all_findings(judged: Collection[JudgedSet]) -> Iterator[Finding]:
    """Yield the findings on all systems and result sets."""
    for system in systems_of(judged_set.planned for judged_set in judged):
        yield from folded(system.findings, system.path)
    for judged_set in judged:
        yield from judged_set.result.observations


def _context(
    planned: PlannedSet, submitter: str, round_: Round, sources: Mapping[str, Source]
) -> SetContext:
    place, names = Place(planned.folder, planned.folder), (planned.system.id, planned.benchmark)
    context = SetContext(
        files=ResultSet(place, *names, logs=(), scaling_mode=planned.scaling),
        runs=planned.runs,
        round=round_,
        rules=load_benchmark(round_.usage, round_.name, planned.benchmark),
        submitter=submitter,
        system=planned.system,
        sources=sources,
        systems=planned.context.systems,
        group=planned.context.group,
    )
    return replace(context, id=context.identity)


# ---- messages -----------------------------------------------------------------------------


def line_of(finding: Finding) -> str:
    """Return a finding in one line: where, its code, and what it says."""
    return f"{location(finding)}: {finding.code}: {sentence(finding)}"


def _lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a line for each finding, and its hint."""
    for finding in in_order(findings):
        yield f"  {visible(line_of(finding))} [{_BASES[finding.basis]}]"
        hint = finding.hint
        for flag, codes in BYPASSES.items():
            hint = f"--{flag} builds it and asks for a review" if finding.code in codes else hint
        if finding.code == "SET101" and finding.found > finding.expected:
            hint = (
                f"--choose-runs takes the {finding.expected} consecutive runs whose result is"
                " closest to the median of all such windows; 'mlperf-pkg select' shows them"
            )
        if hint:
            yield f"    {hint}"
