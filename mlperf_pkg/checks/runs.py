"""Rules on the runs of a result set: their number, their failures, seeds, checkpoints, round."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checks.consistency import WEAK_SCALING, check_overlap, may_be_weak
from mlperf_pkg.checks.context import SetContext, SetOrigin
from mlperf_pkg.checks.power import power_files
from mlperf_pkg.checks.tree import packed_logs
from mlperf_pkg.findings import NOTE, Basis, Finding, Pending, Severity, Verdict, without_official
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.log.record import shown
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.load import codes, finding_of
from mlperf_pkg.rulebook.model import DIVISIONS, PACKAGE_CHECKER
from mlperf_pkg.rulebook.rounds import Sureness, day_of, where_instead, window
from mlperf_pkg.rulebook.table import rule_table
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import OTHER_RECORDS, Seed
from mlperf_pkg.run.reading import ENDINGS

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
    unconverged = unconverged_runs(context)
    allowed = _may_fail(context)
    failed = failed_runs(context)
    if len(unconverged) > allowed:
        rejected = max(_untrained(context), len(failed))
        basis = Basis.BOTH if rejected > context.drop else Basis.RULES
        message = "{found} runs did not converge; expected at most {expected}"
        yield context.finding(
            "SET102", message, basis=basis, found=len(unconverged), expected=allowed
        )
    if len(failed) > context.drop:
        subject = "{found} logs fail" if len(failed) > 1 else "{found} log fails"
        message = f"{subject} the official checkers; expected at most {{expected}}"
        yield context.finding("SET103", message, found=len(failed), expected=context.drop)
    for run in context.runs:
        if run.crash:
            message = "the compliance checker crashes on this log, on {found:s}"
            yield context.finding("SET104", message, path=run.path, found=run.crash)


def _number_of_runs(context: SetContext, required: int) -> Iterator[Finding]:
    count = len(context.runs)
    is_too_many = count > required and not context.weak
    if count >= required and not is_too_many:
        return
    name = "the number of runs"
    if context.origin.has_folder:
        name = f"{name} (files result_*.txt)"
    least = "at least " if context.weak else ""
    message = f"{name} is {{found}}; expected {least}{{expected}}"
    basis = Basis.OFFICIAL if is_too_many else Basis.BOTH
    hint = _remedy_of_too_many(context) if is_too_many else None
    yield context.finding("SET101", message, basis=basis, found=count, expected=required, hint=hint)


def _remedy_of_too_many(context: SetContext) -> str | None:
    """Return what to do with too many raw logs; None for the files of a submission."""
    if may_be_weak(context) and any(check_overlap(context)):
        return WEAK_SCALING
    if context.in_workspace:
        return (
            "'mlperf-pkg select' shows which runs to submit, and 'mlperf-pkg build --choose-runs'"
            " submits them"
        )
    return None


def _untrained(context: SetContext) -> int:
    """Return the number of runs that the RCP checker rejects.

    It looks at run_stop alone, and at Closed sets only.
    """
    if not context.rcp_required:
        return 0
    return sum(not run.convergence.converged for run in context.runs)


def check_folder(context: SetContext) -> Iterator[Finding]:
    """Check that the folder is a benchmark of the round, and holds its runs and nothing else."""
    benchmark = context.files.benchmark
    round_ = context.round
    read = set(_OTHER_FILES)
    if context.origin is SetOrigin.SUBMISSION:  # which reports its packed logs together
        read.update(packed_logs(context.files))
    unread = [name for name in context.files.others if name not in read]
    if unread:
        noun = "file" if len(unread) == 1 else "files"
        message = f"no checker reads the {noun} {{found:q}}; expected only result_<number>.txt"
        yield context.finding("SET105", message, found=unread)
    if not context.in_round:
        where = where_instead(round_.usage, round_.name, benchmark)
        message = (
            f"{benchmark!r} is not a benchmark of round {round_.name}, so the official checker"
            f" skips the folder{where}"
        )
        yield context.finding("SET106", message, expected=list(round_.benchmarks))
    message = "the log names the benchmark {found:s}; expected {expected}"
    for run in context.runs:
        if run.benchmark not in ("", benchmark):
            yield context.finding(
                "SET107", message, path=run.path, found=run.benchmark, expected=benchmark
            )


def check_system_file(context: SetContext) -> Iterator[Finding]:
    """Check that the system description can be read and names the division of the logs."""
    if context.origin is not SetOrigin.SUBMISSION:
        return
    if context.system is None or context.system.contents is None:
        message = f"systems/{context.files.system}.json is missing or cannot be read"
        yield context.finding("SET110", message)
        return
    logged = {run.division for run in context.runs} & {*DIVISIONS}
    # A misspelt division is a finding about the system description itself.
    described = {context.division_by_rules} & {*DIVISIONS}
    if len(logged | described) > 1:
        divisions = sorted(logged)
        division = context.division
        was_moved = logged == {"closed"} and described == {"open"}
        weight = NOTE if was_moved else {}
        in_logs = f"the division is {' and '.join(map(shown, divisions))} in the logs"
        if len(divisions) > 1:
            in_logs = f"the logs name the divisions {' and '.join(map(shown, divisions))}"
        in_file = f"{shown(division)} in {context.system.path}"
        if not division:
            in_file = f"{context.system.path} names none"
        message = f"{in_logs}, but {in_file}"
        yield context.finding("SET111", message, found=divisions, expected=division, **weight)


# ---- the runs that failed, and what the official checkers and the rules forgive -----------

_UNREADABLE = "LOG113"  # the package checker crashes on such a log
_NO_POWER = "POW101"
_FORGIVEN = ENDINGS - {"RUN140"}  # a note, where the set may have such a run
_NOT_BY_KILLING = "LOG102"  # a run may fail, but its log must be one
_PRUNED = "the official package checker does not read pruned results"
_OLYMPIC = (
    "the official checkers reject such a run, but accept the set, as its score leaves the run out"
    " (olympic scoring)"
)
_OF_CLOSED = frozenset({"RUN166"})  # in Open, no batch size is compared with another
_CUT_OFF = "if the log was cut off, copy it again; if the run was killed, the score drops it"
_DROPPED = (
    "the score leaves this run out as the slowest; other records that its log lacks are not listed"
)


def findings_of_runs(context: SetContext) -> Iterator[Finding]:
    """Yield the findings of the runs, with a lower basis or severity where the set forgives them.

    The official package checker accepts a set in which at most ``drop`` logs fail, for whatever
    reason ("olympic scoring"), even for their power. The written rules forgive only runs that did
    not converge; of a run that was killed, no missing record counts.
    """
    accepted = _officially_accepted(context)
    forgiven = _forgiven_by_rules(context)
    power_findings = power_files(context).findings
    for run in context.runs:
        of_power = power_findings.get(run.path, ())
        if not run.findings and not of_power:
            continue
        is_accepted = run in accepted
        is_forgiven = run in forgiven
        findings = list(_in_division(context, run))
        for finding in of_power:
            # The rules need only the energy of runs whose time counts.
            if is_forgiven and finding.code == _NO_POWER:
                findings.append(replace(finding, basis=Basis.OFFICIAL))
            else:
                findings.append(finding)
        if run.killed:
            findings = list(_of_killed(findings, shown=not is_accepted))
        if is_accepted:
            findings = [_accepted(finding) for finding in findings]
        if is_forgiven or context.is_converged(run):
            findings = [_noted(run, finding) for finding in findings]
        yield from findings


def findings_of_pruned(context: SetContext) -> Iterator[Finding]:
    """Yield the findings of the runs that a set of weak scaling leaves out.

    They need not converge, but are valid logs. (hpc_training_rules, Throughput)
    """
    for run in context.pruned:
        for finding in _in_division(context, run):
            yield _noted(run, without_official(finding, _PRUNED))


def _officially_accepted(context: SetContext) -> list[Run]:
    """Return the failed runs of a set that the official package checker accepts with them."""
    failed = failed_runs(context)
    if len(failed) > context.drop or any(run.crash for run in failed):
        return []
    return failed


def _forgiven_by_rules(context: SetContext) -> list[Run]:
    """Return the runs that did not converge, none if the set may not have that many of them."""
    unconverged = unconverged_runs(context)
    return unconverged if len(unconverged) <= _may_fail(context) else []


def _in_division(context: SetContext, run: Run) -> Iterator[Finding]:
    """Yield the findings of a log, by the rules those of Open if its entry was moved there."""
    if (run.division, context.division_by_rules) != ("closed", "open"):
        yield from run.findings
        return
    round_ = context.round
    benchmark = context.files.benchmark
    written = codes().keys() - _OF_CLOSED
    table = rule_table(round_.usage, round_.name, "open", benchmark, frozenset())
    for key in table.keys.values():
        for compiled in key.rules:
            if compiled.rule.basis is not Basis.OFFICIAL:
                written.add(compiled.rule.code)
    for finding in run.findings:
        if finding.code in written:
            yield finding
        elif finding.fails(Basis.OFFICIAL):
            yield replace(finding, basis=Basis.OFFICIAL)


def failed_runs(context: SetContext) -> list[Run]:
    """Return the runs that the official package checker counts as failed, also by their power."""
    without_power = power_files(context).findings
    failed: list[Run] = []
    for run in context.runs:
        if run.verdicts.official is Verdict.FAIL or run.path in without_power:
            failed.append(run)
    return failed


def unconverged_runs(context: SetContext) -> list[Run]:
    """Return the runs that did not converge by the rules; killed ones count."""
    return [run for run in context.runs if not context.is_converged(run)]


def _may_fail(context: SetContext) -> int:
    """Return how many runs may fail by the rules: in weak scaling none."""
    return 0 if context.weak else context.drop


def _accepted(finding: Finding) -> Finding:
    """Return a finding about a run that the official checkers accept by olympic scoring."""
    if finding.code == _UNREADABLE:
        return finding
    return without_official(finding, _OLYMPIC)


def _of_killed(findings: Iterable[Finding], *, shown: bool) -> Iterator[Finding]:
    """Yield the findings of a run that was killed, which the rules count as one failure.

    What its log lacks is an error of the official checker alone, and ``shown`` unless that
    accepts the log.
    """
    for finding in findings:
        is_missing = isinstance(finding, Pending) and finding.code not in ENDINGS
        if is_missing and (finding.basis is Basis.RULES or not shown):
            continue
        if finding.basis is Basis.BOTH and finding.code != _NOT_BY_KILLING:
            yield replace(finding, basis=Basis.OFFICIAL)
        else:
            yield finding


def _noted(run: Run, finding: Finding) -> Finding:
    """Return the finding that a run failed as a note: the rules forgive the run.

    That a log ends inside an open run stays a warning: it may be cut off.
    """
    if finding.code not in _FORGIVEN or finding.severity is Severity.ERROR:
        return finding
    if not run.killed:
        return replace(finding, severity=Severity.NOTE)
    if run.start_ms is not None:
        return replace(finding, hint=_CUT_OFF)
    return replace(finding, severity=Severity.NOTE, hint=_DROPPED)


# ---- seeds: every run logs one, and no two log the same one from the same source line -----

_OF_CHECKER: dict[str, Any] = {"basis": Basis.OFFICIAL, "source": PACKAGE_CHECKER}


def check_seeds(context: SetContext, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings``, those of ``seed_findings``, for a Closed set that does not bypass them.

    The official package checker asks for seeds under the same conditions, but where a description
    spells "Closed".
    """
    if not context.closed_by_rules or "seed-checker-bypass" in context.files.flags:
        return
    for finding in findings:
        if context.closed:
            yield finding
        elif finding.basis is Basis.BOTH:
            yield replace(finding, basis=Basis.RULES)
    yield from _same_seed_elsewhere(context)
    yield from _several_seeds(context)


def _same_seed_elsewhere(context: SetContext) -> Iterator[Finding]:
    """Note the same seed from another source line, which the official checker accepts."""
    first: dict[int, tuple[Seed, str]] = {}
    for run in context.runs:
        for seed in run.seeds:
            same, path = first.setdefault(seed.value, (seed, run.path))
            if path != run.path and (same.file, same.lineno) != (seed.file, seed.lineno):
                message = f"seed {{found}} is also logged in {path}, from another source line"
                yield context.finding(
                    "SEED104", message, found=seed.value, path=run.path, line=seed.line
                )


def _several_seeds(context: SetContext) -> Iterator[Finding]:
    """Warn about runs with several seeds; the official seed checker only prints a warning."""
    for run in context.runs:
        count = len({seed.value for seed in run.seeds})
        # LOG111 reports the several runs.
        if count > 1 and all(finding.code != "LOG111" for finding in run.findings):
            message = "{found} different seeds are logged; expected one"
            yield context.finding(
                "SEED105", message, found=count, path=run.path, line=run.seeds[-1].line
            )


def seed_findings(context: SetContext) -> Iterator[Finding]:
    """Check that every run logs a seed, and no seed of a source line appears twice in the set.

    The rules do not require a seed of a killed run, which counts as failed.
    """
    logged: dict[tuple[Any, Any, int], str] = {}
    for run in context.runs:
        fields = {"basis": Basis.OFFICIAL} if run.killed else {}
        reason = run.seeds_unreadable
        if reason:
            weight = _OF_CHECKER if reason == OTHER_RECORDS else fields
            message = "the official seed checker rejects this log, as {found:s}"
            yield context.finding("SEED103", message, path=run.path, found=reason, **weight)
        elif not run.seeds:
            yield context.finding("SEED101", "no seed is logged", path=run.path, **fields)
        for seed in run.seeds:
            key = (seed.file, seed.lineno, seed.value)
            if key in logged:
                where = "in several runs; expected a different seed in each run"
                weight = fields
                if logged[key] == run.path:  # as by several processes
                    where = "twice in this run; expected once"
                    weight = _OF_CHECKER
                message = f"seed {{found:d}} is logged by the same source line {where}"
                yield context.finding(
                    "SEED102", message, found=seed.value, path=run.path, line=seed.line, **weight
                )
            logged.setdefault(key, run.path)


def check_seeds_of_instances(context: SetContext) -> Iterator[Finding]:
    """Check that no two instances of weak scaling have one seed, whatever line logs it."""
    if not context.weak:
        return
    first: dict[int, str] = {}
    for run in context.runs:
        for seed in run.seeds:
            path = first.setdefault(seed.value, run.path)
            if path != run.path:
                message = (
                    f"seed {{found:d}} is also the seed of {path}"
                    "; expected a different seed in each run"
                )
                yield context.finding(
                    "SEED109", message, found=seed.value, path=run.path, line=seed.line
                )


# ---- checkpoints of Stable Diffusion ------------------------------------------------------

_BENCHMARK = "stable_diffusion"
_INTERVAL = 512_000  # images between checkpoints
_COUNTS_STEPS = (3, 1)  # the round in which logs count steps


def check_checkpoints(context: SetContext) -> Iterator[Finding]:
    """Check that the last two checkpoints of each run were evaluated, and all of one run in ten.

    They may be evaluated after the run.
    """
    if context.files.benchmark != _BENCHMARK or not context.closed_by_rules:
        return
    runs = [run for run in context.runs if run.convergence.converged and run.convergence.positions]
    complete = 0
    least = len(context.runs) // 10
    for run in runs:
        interval = _interval(context, run)
        unit = "steps" if context.round.version == _COUNTS_STEPS else "samples"
        positions = run.convergence.positions
        gaps = [later - earlier for earlier, later in pairwise([0, *positions])]
        complete += max(gaps) <= interval
        if not gaps[-1] <= interval:
            message = (
                f"the last checkpoint, at {{found:,}} {unit}, was evaluated, but the checkpoint"
                " before it was not; expected {expected}"
            )
            yield context.finding(
                "SET123",
                message,
                path=run.path,
                found=positions[-1],
                expected="evaluations of the last two checkpoints",
            )
    if runs and complete < least:
        message = (
            f"{{found}} of {len(context.runs)} runs evaluated all checkpoints"
            f"; expected at least {wording.counted(least, 'run')}"
        )
        yield context.finding("SET124", message, found=complete, expected=least)


def _interval(context: SetContext, run: Run) -> float:
    """Return the greatest distance of checkpoints, in the unit of the log."""
    size = to_finite(run.convergence.batch_size) or 1
    steps = math.ceil(_INTERVAL / size) if size >= 1 else _INTERVAL
    return steps if context.round.version == _COUNTS_STEPS else steps * size


# ---- whether the round that was chosen fits the times of the runs -------------------------


def check_round_choice(runs: Iterable[Run]) -> Iterator[Finding]:
    """Check the rounds of the runs of one input, unless the user gave the round.

    The newest round is a guess for a run that has no timestamps or is later than every submission.
    Another round is doubtful if none of its runs is in its window: single runs may be older, as
    logs of an earlier round may be submitted again.
    """
    rounds: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.sureness is Sureness.GUESS:
            if run.records:  # a run without records could not be read
                yield _guess(run)
        elif run.sureness is not Sureness.GIVEN:
            rounds.setdefault((run.usage, run.round), []).append(run)
    for (usage, name), members in rounds.items():
        yield from _outside_window(members, *window(usage, name))


def _guess(run: Run) -> Finding:
    day = _day(run)
    if day is None:
        message = f"no run has a timestamp, so the newest round, {run.round}, is assumed"
        return finding_of("ROUND102", message, run.path)
    limit = f"{window(run.usage, run.round)[1]} or earlier"
    return _dated(run, "ROUND102", day, limit, ", so the newest round is assumed")


def _outside_window(runs: Sequence[Run], first: date, last: date) -> Iterator[Finding]:
    days: list[tuple[Run, date]] = []
    for run in runs:
        day = _day(run)
        if day and first <= day <= last:
            return
        if day:
            days.append((run, day))
    for run, day in days:
        if day < first:
            yield _dated(run, "ROUND101", day, f"{first} or later")
        else:
            yield _dated(run, "ROUND103", day, f"{last} or earlier")


def _dated(run: Run, code: str, day: date, limit: str, remark: str = "") -> Finding:
    message = f"the runs are dated {{found:s}}{remark}; expected {{expected}}"
    return finding_of(
        code,
        message,
        run.path,
        found=str(day),
        expected=f"{limit} for round {run.round}",
    )


def _day(run: Run) -> date | None:
    time_ms = run.start_ms or run.stop_ms
    return day_of(time_ms) if time_ms else None
