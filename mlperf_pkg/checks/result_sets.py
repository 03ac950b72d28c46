"""Judge and score one result set: the table of all rules on a set, and the row of the report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks import consistency, rcp, runs
from mlperf_pkg.checks.context import Origin, SetContext
from mlperf_pkg.checks.power import check_power, energy
from mlperf_pkg.checks.published import (
    check_availability,
    check_published,
    check_unlike_published,
    published_runs,
)
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
from mlperf_pkg.results import scoring
from mlperf_pkg.results.rcp import RcpResult
from mlperf_pkg.results.report import ResultSetRow, SeedsRow
from mlperf_pkg.rulebook.load import as_written, finding_of
from mlperf_pkg.rulebook.rounds import known_verdicts, where_instead
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import ResultSet

_SKIPPED = "the package checker skips this folder"
_GLOBBED = "the package checker reads other logs for this folder"


class SetResult(Struct, frozen=True):
    """A judged result set: its row, its own findings, and those of its runs.

    ``dropped`` maps the paths of runs that do not count in the score to the reason; ``summarized``
    holds what only the official tables show. ``runs`` are the paths of its runs. ``rcp_result`` is
    that of the package checker's test, None if there is none.
    """

    row: ResultSetRow
    findings: tuple[Finding, ...]
    run_findings: tuple[Finding, ...]
    dropped: dict[str, str]
    summarized: rcp.Summarized
    runs: tuple[str, ...] = ()
    origin: Origin = Origin.SUBMISSION
    rcp_result: RcpResult | None = None

    @property
    def observations(self) -> list[Finding]:
        """All findings, those of one code in one: what a report says of the set."""
        return self.folded((*self.findings, *self.run_findings))

    def folded(self, findings: Iterable[Finding]) -> list[Finding]:
        """Fold findings about the set and its runs."""
        row = self.row
        return folded(findings, row.path if self.origin.has_folder else row.id, self.runs, row.id)


def check_set(context: SetContext) -> SetResult:
    """Judge and score one result set."""
    rcp_result = rcp.rcp_test(context)
    seeds = tuple(runs.seed_findings(context))
    score = _weak_score(context) if context.weak else _score(context)
    published = published_runs(context, score.minutes)
    findings = [f for rule in RULES for f in rule(context)]
    findings += runs.check_seeds(context, seeds)
    findings += rcp.check_rcp(context, rcp_result)
    findings += rcp.check_scaling(context, rcp_result, score.minutes)
    findings += check_published(context, published or {})
    findings = list(as_written(findings, context.round))
    if not context.origin.is_judged:
        findings = list(map(runs.for_information, findings))
        run_findings = [f for run in context.runs for f in run.findings]
        verdict = Verdicts.worst(run.verdicts for run in context.runs).failures
    else:
        run_findings = list(runs.findings_of_runs(context))
        if context.officially_skipped:
            findings = _unread(findings, _SKIPPED)
            run_findings = _unread(run_findings, _SKIPPED)
        verdict = _verdict(context, [*findings, *run_findings])
    by = rcp.factors(context, rcp_result)
    power = energy(context)
    official = None if power.crash else _official_minutes(context)
    unchecked = unchecked_set(context)
    row = replace(
        unchecked.row,
        verdict=verdict,
        score_minutes=_product(score.minutes, by.rules),
        unscaled_minutes=score.minutes,
        scaling_factor=by.rules,
        official_minutes=_product(official, by.official),
        score_note=score.reason if context.rules else _no_rules(context),
        rcp=rcp.rcp_row(context, rcp_result),
        seeds=SeedsRow(not seeds),
        energy_joules=_product(power.joules, by.official),
        number_of_models=len(_trained_runs(context)) if context.weak else None,
        instance_scale=scales[0] if len(scales := _scales(context)) == 1 else None,
    )
    findings += check_availability(context, is_published=published is None)
    if published is not None and not published:
        findings += check_unlike_published(context, row.score_minutes)
    return replace(
        unchecked,
        row=row,
        findings=tuple(findings),
        run_findings=tuple(run_findings),
        dropped=dict(score.dropped),
        summarized=rcp.summarized(context, by.official, rcp_result),
        rcp_result=rcp_result,
    )


def unchecked_set(context: SetContext, findings: Iterable[Finding] = ()) -> SetResult:
    """Return a set that was not judged as one; its runs were, as far as possible."""
    row = ResultSetRow(
        id=context.id,
        path=context.path,
        submitter=context.submitter,
        system=context.files.system,
        benchmark=context.files.benchmark,
        division=context.division,
        round=context.round.name,
        verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.NOT_CHECKED),
        runs_found=len(context.runs),
        runs_required=context.rules.runs.required if context.rules else None,
        score_note="the result set was not checked",
        seeds=SeedsRow(official_pass=False),
        scaling=context.files.scaling_mode,
        system_by=context.group.why if context.group and context.system else None,
        judged=context.origin.is_judged,
    )
    return SetResult(
        row=row,
        findings=tuple(findings),
        run_findings=tuple(f for run in context.runs for f in run.findings),
        dropped={},
        summarized=rcp.Summarized(1.0),
        runs=tuple(run.path for run in context.runs),
        origin=context.origin,
    )


def not_described(sets: Iterable[SetResult]) -> Iterator[Finding]:
    """Note the sets that are judged outside a submission, and so without a description."""
    message = "not checked: the system description and the code, as they are not in the inputs"
    for_folder = "check the whole submission"
    for_logs = "'mlperf-pkg system init' writes systems/<system>.json, beside the logs"
    for result in sets:
        if result.origin in (Origin.FOLDER, Origin.LOGS):
            hint = for_folder if result.origin.has_folder else for_logs
            yield finding_of("SET117", message, result.row.path, hint=hint, set=result.row.id)


def _no_rules(context: SetContext) -> str:
    name = context.files.benchmark
    round_ = context.round
    where = where_instead(round_.usage, round_.name, name)
    return f"no rules of {name} in round {round_.name}{where}"


def _unread(findings: Iterable[Finding], hint: str) -> list[Finding]:
    """Return findings about what the official checker does not read; ``hint`` says why.

    It still looks for the system description (SET110).
    """
    return [f if f.code == "SET110" else without_official(f, hint) for f in findings]


def _verdict(context: SetContext, findings: Iterable[Finding]) -> Verdicts:
    verdict = verdicts_of(findings)
    if context.officially_skipped and verdict.official is Verdict.PASS:
        verdict = replace(verdict, official=Verdict.NOT_CHECKED)
    if context.rules is None and verdict.rules is Verdict.PASS:
        verdict = replace(verdict, rules=Verdict.NOT_CHECKED)
    return known_verdicts(verdict, context.round.usage, context.round.name)


# ---- scores -------------------------------------------------------------------------------


def _score(context: SetContext) -> scoring.Score:
    times = [scoring.RunTime(r.path, r.minutes, context.is_converged(r)) for r in context.runs]
    required = context.rules.runs.required if context.rules else len(times)
    return scoring.score(times, context.drop, required)


def _official_minutes(context: SetContext) -> float | None:
    """Return the olympic mean of the logs that pass the official checker, before scaling."""
    if any(run.crash or run.unchecked for run in context.runs):
        return None
    passed = (r.official_minutes for r in context.runs if r.verdicts.official is Verdict.PASS)
    minutes = [number for number in passed if number is not None]
    failed = len(context.runs) - len(minutes)
    return scoring.olympic_mean(minutes, context.drop, failed) if failed <= context.drop else None


def _product(value: float | None, factor: float | None) -> float | None:
    return None if value is None or factor is None else value * factor


# ---- weak scaling (HPC): how many models were trained at once, where, and how fast --------


def _weak_score(context: SetContext) -> scoring.Score:
    """Score a weak set: from the first start to the last stop of the models that it trained."""
    trained = _trained_runs(context)
    spans = [(run.start_ms or 0.0, run.stop_ms or 0.0) for run in trained]
    failed = [(r.path, r.minutes is not None) for r in context.runs if r not in trained]
    required = context.rules.runs.required if context.rules else 1
    return scoring.weak_score(spans, failed, required)


def _check_scale(context: SetContext) -> Iterator[Finding]:
    """Check that all models of a weak set train on the same number of accelerators."""
    scales = _scales(context)
    if len(scales) > 1:
        message = f"the models use {' and '.join(map(str, scales))} accelerators; expected one"
        message = f"{message} number, as the result summarizer crashes on more"
        yield context.finding("SET130", message, found=scales)


def _check_alone(context: SetContext) -> Iterator[Finding]:
    """Check that a submission with the throughput of a benchmark has its time to solution, too."""
    benchmark = context.files.benchmark
    timed = context.timed
    if context.weak and timed is not None and benchmark not in timed:
        message = "the submission has the throughput alone; expected {expected}"
        expected = f"a set of strong scaling of {benchmark}, too"
        yield context.finding("SET131", message, expected=expected)


def _scales(context: SetContext) -> list[int]:
    """Return how many accelerators train one model of a weak set: one number, or several."""
    scales = {run.instance_scale for run in _trained_runs(context)} if context.weak else set()
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
    runs.check_checkpoints,
    consistency.check_copies,
    consistency.check_overlap,
    consistency.check_batch_size,
    consistency.check_configuration,
    consistency.check_code,
    consistency.check_names,
    consistency.check_status,
    consistency.check_platform,
    consistency.check_nodes,
    check_membership,
    check_folders,
    check_code,
)
"""The rules on one set. Those on its RCP test, its seeds and its score are in ``check_set``."""


# ---- folder names that the official checkers treat as glob patterns -----------------------


def check_globbed_set(
    context: SetContext, sets: Sequence[ResultSet], runs: Mapping[str, Run]
) -> SetResult:
    """Judge a set by its own logs, but officially by those that the official checkers find.

    They look for ``<submitter>/results/<system>/<benchmark>/result_*.txt`` with glob, in which
    ``[``, ``*`` and ``?`` have a meaning. ``sets`` and ``runs`` are all of the submission;
    ``runs`` are by path. (mlperf_logging: package_checker, rcp_checker and result_summarizer)
    """
    own = check_set(context)
    matches = _matches(context, sets)
    if matches == (context.files,) or context.officially_skipped:
        return own
    logs = tuple(log for files in matches for log in files.logs)
    files = replace(context.files, logs=logs)
    official = check_set(replace(context, files=files, runs=tuple(runs[log.label] for log in logs)))
    verdict = official.row.verdict.official
    folders = ", ".join(files.place.label for files in matches)
    pattern = "/".join(filter(None, [context.submitter, "results", context.files.system]))
    message = f"the official checkers treat {pattern} as a pattern: they find {len(logs)} logs for"
    message = f"{message} this folder{f', in {folders}' if folders else ''}"
    severity = Severity.ERROR if verdict is Verdict.FAIL else Severity.WARNING
    hint = "rename the folder without [, * and ?"
    globbed = context.finding("SET116", message, severity=severity, hint=hint)
    verdicts = Verdicts(verdict, own.row.verdict.rules)
    row = replace(own.row, verdict=verdicts, official_minutes=official.row.official_minutes)
    return replace(
        own,
        row=row,
        findings=(*_unread(own.findings, _GLOBBED), globbed),
        run_findings=tuple(_unread(own.run_findings, _GLOBBED)),
        summarized=official.summarized,
    )


def _matches(context: SetContext, sets: Sequence[ResultSet]) -> tuple[ResultSet, ...]:
    """Return the sets whose logs the official checkers find for a set, by the names in its path."""
    files = context.files
    name = context.submitter or ""
    system = context.files.system or ""
    if not context.origin.has_folder or {*"[*?"}.isdisjoint(name + system):
        return (files,)
    kind = (files.scaling_mode, files.benchmark)
    alike = [other for other in sets if (other.scaling_mode, other.benchmark) == kind]
    is_found = fnmatchcase(name, name)
    return tuple(o for o in alike if is_found and fnmatchcase(o.system or "", system))
