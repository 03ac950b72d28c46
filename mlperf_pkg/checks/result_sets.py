"""Judge and score one result set: the table of all rules on a set, and the row of the report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, islice

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.checks import consistency, plausibility, rcp, runs
from mlperf_pkg.checks.context import SetContext, SetOrigin
from mlperf_pkg.checks.one_run import check_one_run
from mlperf_pkg.checks.power import Energy, check_power, energy
from mlperf_pkg.checks.published import (
    PublishedRuns,
    check_availability,
    check_published,
    check_unlike_published,
    published_runs,
)
from mlperf_pkg.checks.score import SetScore, check_score, official_factor, scaled, score_set
from mlperf_pkg.checks.tree import check_code
from mlperf_pkg.checks.workspace import check_folders, check_membership
from mlperf_pkg.findings import (
    Finding,
    Severity,
    Verdict,
    Verdicts,
    folded,
    verdicts_of,
    without_official,
)
from mlperf_pkg.infra.paths import ListedPath
from mlperf_pkg.results import scoring
from mlperf_pkg.results.rcp import RcpResult
from mlperf_pkg.results.report import ResultSetRow, SeedsRow
from mlperf_pkg.rulebook.load import as_written, finding_of
from mlperf_pkg.rulebook.rounds import known_verdicts, where_instead
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import PRUNED, Place, ResultSet

_SKIPPED = "the official package checker skips this folder"
_GLOBBED = "the official package checker reads other logs for this folder"


class SetResult(Struct, frozen=True):
    """A judged result set: its row, its own findings, and those of its runs.

    ``dropped`` maps the paths of runs that do not count in the score to the reason, ``energies``
    those of measured runs to joules; ``summarized`` holds what only the official tables show.
    ``runs`` are the paths of its runs. ``rcp_result`` is that of the package checker's test, None
    if there is none.
    """

    row: ResultSetRow
    findings: tuple[Finding, ...]
    run_findings: tuple[Finding, ...]
    dropped: dict[str, str]
    summarized: rcp.Summarized
    runs: tuple[str, ...] = ()
    origin: SetOrigin = SetOrigin.SUBMISSION
    rcp_result: RcpResult | None = None
    energies: Mapping[str, float] = field(default_factory=dict)

    @property
    def observations(self) -> list[Finding]:
        """All findings, those of one code in one: what a report says of the set."""
        return self.folded((*self.findings, *self.run_findings))

    def folded(self, findings: Iterable[Finding]) -> list[Finding]:
        """Fold findings about the set and its runs."""
        subject = self.row.path if self.origin.has_folder else self.row.id
        return folded(findings, subject, self.runs, self.row.id)


# ---- one set, in stages -------------------------------------------------------------------


class _Measured(Struct, frozen=True):
    """What is measured of a set before it is judged: its seeds, RCP test, score and energy.

    ``published`` is as ``published_runs`` returns it.
    """

    seed_findings: tuple[Finding, ...]
    rcp_result: RcpResult | None
    mean: scoring.Score
    score: SetScore
    published: PublishedRuns | None
    energy: Energy


class _Shown(Struct, frozen=True):
    """The findings of a set and those of its runs, as a report shows them."""

    findings: tuple[Finding, ...]
    run_findings: tuple[Finding, ...]


def check_set(context: SetContext) -> SetResult:
    """Judge and score one result set.

    The order of the stages is fixed: the verdict is made of all findings that are shown, so a
    finding must be collected, and softened, before it.
    """
    measured = _measure(context)
    collected = _collect(context, measured)
    shown = _soften(context, collected)
    verdict = _judge(context, shown)
    return _result(context, measured, shown, verdict)


def _measure(context: SetContext) -> _Measured:
    rcp_result = rcp.rcp_test(context)
    mean = _weak_score(context) if context.weak else _olympic_score(context)
    score = score_set(context, mean.minutes, rcp_result)
    # Of a set that is not Closed, the report says only whether there is one.
    most_findings = None if context.closed_by_rules else 1
    return _Measured(
        seed_findings=tuple(islice(runs.seed_findings(context), most_findings)),
        rcp_result=rcp_result,
        mean=mean,
        score=score,
        published=published_runs(context, mean.minutes, score.index),
        energy=energy(context),
    )


def _collect(context: SetContext, measured: _Measured) -> list[Finding]:
    """Return all findings about the set itself, as the newest rules have them."""
    rcp_result = measured.rcp_result
    published = measured.published
    findings: list[Finding] = []
    for rule in RULES:
        findings += rule(context)
    findings += runs.check_seeds(context, measured.seed_findings)
    findings += rcp.check_rcp(context, rcp_result)
    findings += check_score(context, measured.score, rcp_result)
    findings += check_published(context, published or {})
    findings += check_availability(context, is_published=published is None)
    if published is not None and not published:
        findings += check_unlike_published(context, measured.score.minutes)
    if _PUBLISHED_BEFORE.isdisjoint([finding.code for finding in findings]):
        findings += plausibility.check_days(context)
    return findings


_PUBLISHED_BEFORE = frozenset({"SET160", "SET161"})  # which explain why the runs are old


def _soften(context: SetContext, collected: Iterable[Finding]) -> _Shown:
    """Return the findings with the weight that they have in this set, and those of its runs.

    By the written rules, what was written after the round does not count. A set that is not judged
    has no error. The set may forgive what is wrong with its runs, and what the official checker
    does not read does not fail its verdict.
    """
    findings = list(as_written(collected, context.round))
    if not context.origin.is_judged:
        findings = [runs.for_information(finding) for finding in findings]
        run_findings = [finding for run in context.runs for finding in run.findings]
        return _Shown(tuple(findings), tuple(run_findings))
    run_findings = list(runs.findings_of_runs(context))
    if context.officially_skipped:
        findings = _officially_unread(findings, _SKIPPED)
        run_findings = _officially_unread(run_findings, _SKIPPED)
    run_findings += runs.findings_of_pruned(context)
    return _Shown(tuple(findings), tuple(run_findings))


def _officially_unread(findings: Iterable[Finding], hint: str) -> list[Finding]:
    """Return findings about what the official checker does not read; ``hint`` says why.

    It still looks for the system description (SET110).
    """
    softened: list[Finding] = []
    for finding in findings:
        if finding.code == "SET110":
            softened.append(finding)
        else:
            softened.append(without_official(finding, hint))
    return softened


def _judge(context: SetContext, shown: _Shown) -> Verdicts:
    """Return the verdicts that follow from the findings; not more than failures of a part."""
    if not context.origin.is_judged:
        return Verdicts.worst(run.verdicts for run in context.runs).failures
    verdict = verdicts_of([*shown.findings, *shown.run_findings])
    if context.officially_skipped and verdict.official is Verdict.PASS:
        verdict = replace(verdict, official=Verdict.NOT_CHECKED)
    if context.rules is None and verdict.rules is Verdict.PASS:
        verdict = replace(verdict, rules=Verdict.NOT_CHECKED)
    return known_verdicts(verdict, context.round.usage, context.round.name)


def _result(
    context: SetContext, measured: _Measured, shown: _Shown, verdict: Verdicts
) -> SetResult:
    """Return the judged set with its scores."""
    rcp_result = measured.rcp_result
    factor = official_factor(context, rcp_result)
    official_minutes = None
    if measured.energy.crash is None:
        official_minutes = _official_minutes(context)
    score_note = measured.mean.reason
    if context.rules is None:
        score_note = _no_rules(context)
    scales = _scales(context)
    row = replace(
        _unchecked_row(context),
        verdict=verdict,
        score_minutes=measured.score.minutes,
        unscaled_minutes=measured.mean.minutes,
        scaling_factor=measured.score.factor,
        official_minutes=scaled(official_minutes, factor),
        score_note=score_note,
        rcp=rcp.rcp_row(context, rcp_result),
        seeds=SeedsRow(not measured.seed_findings),
        energy_joules=scaled(measured.energy.joules, factor),
        energy_note=measured.energy.reason,
        number_of_models=len(_trained_runs(context)) if context.weak else None,
        instance_scale=scales[0] if len(scales) == 1 else None,
    )
    return SetResult(
        row=row,
        findings=shown.findings,
        run_findings=shown.run_findings,
        dropped=dict(measured.mean.dropped),
        summarized=rcp.summarized(context, factor, rcp_result),
        runs=tuple(run.path for run in context.runs),
        origin=context.origin,
        rcp_result=rcp_result,
        energies=measured.energy.by_run,
    )


def unchecked_set(context: SetContext, findings: Iterable[Finding] = ()) -> SetResult:
    """Return a set that was not judged as one; its runs were, as far as possible."""
    return SetResult(
        row=_unchecked_row(context),
        findings=tuple(findings),
        run_findings=tuple(f for run in context.runs for f in run.findings),
        dropped={},
        summarized=rcp.Summarized(1.0),
        runs=tuple(run.path for run in context.runs),
        origin=context.origin,
    )


def _unchecked_row(context: SetContext) -> ResultSetRow:
    """Return the row of a set before it is judged."""
    return ResultSetRow(
        id=context.id,
        path=context.path,
        submitter=context.submitter,
        system=context.files.system,
        benchmark=context.files.benchmark,
        division=context.division,
        usage=context.round.usage,
        round=context.round.name,
        verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.NOT_CHECKED),
        runs_found=len(context.runs),
        runs_required=context.required_runs,
        score_note="the result set was not checked",
        seeds=SeedsRow(official_pass=False),
        scaling=context.files.scaling_mode,
        system_by=context.group.why if context.group and context.system else None,
        judged=context.origin.is_judged,
    )


def not_described(sets: Iterable[SetResult], raw: Mapping[str, Place]) -> Iterator[Finding]:
    """Note the sets that are judged outside a submission, and so without a description.

    ``raw`` maps paths to the files of raw logs. In an archive or an object store, no workspace is
    looked for.
    """
    for_logs = (
        "run 'mlperf-pkg system init -o systems/SYSTEM.json' on the system to describe it, and"
        " put the folder systems/ beside the folder of the logs or into it"
    )
    for result in sets:
        if result.origin not in (SetOrigin.FOLDER, SetOrigin.LOGS):
            continue
        reason = "the given paths do not have them"
        hint = for_logs
        locations = [raw[path].location for path in result.runs if path in raw]
        containers = [one.whereabouts for one in locations if isinstance(one, ListedPath)]
        if result.origin.has_folder:
            hint = "check the whole submission"
        elif containers:
            reason = f"they are not looked for in {containers[0]}"
            hint = (
                f"copy the files from {containers[0]} into a folder, and check the folder that"
                f" contains systems/; if there is none, {for_logs}"
            )
        message = f"the system description and the code were not checked, as {reason}"
        yield finding_of("SET117", message, result.row.path, hint=hint, set=result.row.id)


def _no_rules(context: SetContext) -> str:
    name = context.files.benchmark
    round_ = context.round
    where = where_instead(round_.usage, round_.name, name)
    return f"no rules of {name} in round {round_.name}{where}"


# ---- scores -------------------------------------------------------------------------------


def _olympic_score(context: SetContext) -> scoring.Score:
    times: list[scoring.RunTime] = []
    for run in context.runs:
        times.append(scoring.RunTime(run.path, run.minutes, context.is_converged(run)))
    required = context.required_runs or len(times)
    return scoring.score(times, context.drop, required)


def _official_minutes(context: SetContext) -> float | None:
    """Return the olympic mean of the logs that pass the official checker, before scaling."""
    if any(run.crash or run.unchecked for run in context.runs):
        return None
    minutes: list[float] = []
    for run in context.runs:
        run_minutes = run.official_minutes
        if run_minutes is not None and run.verdicts.official is Verdict.PASS:
            minutes.append(run_minutes)
    failed = len(context.runs) - len(minutes)
    if failed > context.drop:
        return None
    return scoring.olympic_mean(minutes, context.drop, failed)


# ---- weak scaling (HPC): how many models were trained at once, where, and how fast --------


def _weak_score(context: SetContext) -> scoring.Score:
    """Score a weak set: from the first start to the last stop of the models that it trained."""
    spans: list[tuple[float, float]] = []
    failed: list[tuple[str, bool]] = []
    trained = _trained_runs(context)
    for run in context.runs:
        if run in trained:
            spans.append((run.start_ms or 0.0, run.stop_ms or 0.0))
        else:
            failed.append((run.path, run.minutes is not None))
    required = context.required_runs or 1
    return scoring.weak_score(spans, failed, required)


def _check_scale(context: SetContext) -> Iterator[Finding]:
    """Check that all models of a weak set train on the same number of accelerators."""
    scales = _scales(context)
    if len(scales) > 1:
        message = (
            f"the models use {' and '.join(map(str, scales))} accelerators; expected the"
            " same number for all models, as the result summarizer crashes on different numbers"
        )
        yield context.finding("SET130", message, found=scales)


def _check_alone(context: SetContext) -> Iterator[Finding]:
    """Check that a submission with the throughput of a benchmark has its time to solution, too."""
    benchmark = context.files.benchmark
    timed = context.timed
    if context.weak and timed is not None and benchmark not in timed:
        message = (
            f"the submission has only the throughput of {benchmark} (weak scaling); expected its"
            " time to solution (strong scaling) as well"
        )
        expected = f"a set of strong scaling of {benchmark} as well"
        yield context.finding("SET131", message, expected=expected)


def _note_pruned(context: SetContext) -> Iterator[Finding]:
    """Note how many models of a weak set do not count."""
    if context.pruned:
        message = (
            f"the score leaves out {{found}} of {{expected}} models, as their logs are in {PRUNED}"
        )
        number = len(context.pruned)
        yield context.finding("SET132", message, found=number, expected=number + len(context.runs))


def _scales(context: SetContext) -> list[int]:
    """Return how many accelerators train one model of a weak set: one number, or several."""
    if not context.weak:
        return []
    scales = {run.instance_scale for run in _trained_runs(context)}
    return sorted(scale for scale in scales if scale is not None)


def _trained_runs(context: SetContext) -> list[Run]:
    return [run for run in context.runs if context.is_converged(run) and run.minutes is not None]


RULES = (
    runs.check_count,
    runs.check_folder,
    runs.check_system_file,
    check_power,
    _check_scale,
    _check_alone,
    runs.check_seeds_of_instances,
    _note_pruned,
    runs.check_checkpoints,
    consistency.check_twins,
    consistency.check_overlap,
    consistency.check_batch_size,
    consistency.check_configuration,
    consistency.check_code,
    consistency.check_names,
    consistency.check_status,
    consistency.check_platform,
    consistency.check_nodes,
    plausibility.check_devices,
    plausibility.check_spliced,
    check_membership,
    check_one_run,
    check_folders,
    check_code,
)
"""The rules on one set. Those on its RCP test, its seeds and its score are in ``_collect``."""


# ---- folder names that the official checkers treat as glob patterns -----------------------


def with_globbed_logs(
    result: SetResult, context: SetContext, sets: Sequence[ResultSet], runs: Mapping[str, Run]
) -> SetResult:
    """Return a judged set, officially by those logs that the official checkers find for it.

    They look for ``<submitter>/results/<system>/<benchmark>/result_*.txt`` with glob, in which
    ``[``, ``*`` and ``?`` have a meaning. ``sets`` and ``runs`` are all of the submission;
    ``runs`` are by path. (mlperf_logging: package_checker, rcp_checker and result_summarizer)
    """
    matches = _matches(context, sets)
    if matches == (context.files,) or context.officially_skipped:
        return result
    logs = tuple(chain.from_iterable(files.logs for files in matches))
    official_context = replace(
        context,
        files=replace(context.files, logs=logs),
        runs=tuple(runs[log.label] for log in logs),
    )
    official = check_set(official_context)
    official_verdict = official.row.verdict.official
    globbed = _globbed(context, matches, len(logs), official_verdict)
    shown = _Shown(
        findings=(*_officially_unread(result.findings, _GLOBBED), globbed),
        run_findings=tuple(_officially_unread(result.run_findings, _GLOBBED)),
    )
    row = replace(
        result.row,
        verdict=replace(_judge(context, shown), official=official_verdict),
        official_minutes=official.row.official_minutes,
    )
    return replace(
        result,
        row=row,
        findings=shown.findings,
        run_findings=shown.run_findings,
        summarized=official.summarized,
    )


def _globbed(
    context: SetContext, matches: Sequence[ResultSet], logs: int, official: Verdict
) -> Finding:
    """Return the finding that the official checkers read other ``logs``, with their verdict."""
    pattern = "/".join(filter(None, [context.submitter, "results", context.files.system]))
    message = (
        f"the official checkers treat {pattern} as a pattern and find {logs} logs for this folder"
    )
    if matches:
        folders = ", ".join(files.place.label for files in matches)
        message = f"{message}, in {folders}"
    severity = Severity.ERROR if official is Verdict.FAIL else Severity.WARNING
    return context.finding("SET116", message, severity=severity)


def _matches(context: SetContext, sets: Sequence[ResultSet]) -> tuple[ResultSet, ...]:
    """Return the sets whose logs the official checkers find for a set, by the names in its path."""
    files = context.files
    submitter = context.submitter or ""
    system = files.system or ""
    if not context.origin.has_folder or {*"[*?"}.isdisjoint(submitter + system):
        return (files,)
    if not fnmatchcase(submitter, submitter):
        return ()
    matches: list[ResultSet] = []
    for other in sets:
        is_alike = (other.scaling_mode, other.benchmark) == (files.scaling_mode, files.benchmark)
        if is_alike and fnmatchcase(other.system or "", system):
            matches.append(other)
    return tuple(matches)
