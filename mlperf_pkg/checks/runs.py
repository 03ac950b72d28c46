"""Rules on the runs of a result set: their number, their failures, seeds, checkpoints, round."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checks.context import Origin, SetContext
from mlperf_pkg.checks.power import power_files
from mlperf_pkg.checks.tree import packed_logs
from mlperf_pkg.findings import NOTE, Basis, Finding, Pending, Severity, Verdict, without_official
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.rulebook.load import codes, finding_of
from mlperf_pkg.rulebook.model import DIVISIONS, PACKAGE_CHECKER
from mlperf_pkg.rulebook.rounds import Sureness, Window, day_of, where_instead, window
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
    count, required = len(context.runs), context.rules.runs.required
    if count < required or (count > required and not context.weak):
        yield context.finding(
            "SET101",
            f"the number of runs{' (files result_*.txt)' * context.origin.has_folder} is {{found}};"
            f" expected {'at least ' * context.weak}{{expected}}",
            basis=Basis.BOTH if count < required else Basis.OFFICIAL,
            found=count,
            expected=required,
        )
    unconverged, allowed = _unconverged(context), _allowed_failures(context)
    if len(unconverged) > allowed:
        yield context.finding(
            "SET102",
            "{found} runs did not converge; expected at most {expected}",
            basis=Basis.BOTH if _too_many_failed(context) else Basis.RULES,
            found=len(unconverged),
            expected=allowed,
        )
    failed = failed_runs(context)
    if len(failed) > context.drop:
        message = "{found} logs fail the official checkers; expected at most {expected}"
        yield context.finding("SET103", message, found=len(failed), expected=context.drop)
    for run in context.runs:
        if run.crash:
            message = "the compliance checker crashes: {found:s}"
            yield context.finding("SET104", message, path=run.path, found=run.crash)


def check_folder(context: SetContext) -> Iterator[Finding]:
    """Check that the folder is a benchmark of the round, and holds its runs and nothing else."""
    of_submission = context.origin is Origin.SUBMISSION  # which reports its packed logs together
    packed = packed_logs(context.files) if of_submission else ()
    names = [*packed, *_OTHER_FILES]
    if unread := [name for name in context.files.others if name not in names]:
        message = "not read: {found:s}; expected names of the form result_<number>.txt"
        yield context.finding("SET105", message, found=unread)
    if not context.in_round:
        name, round_ = context.files.benchmark, context.round
        yield context.finding(
            "SET106",
            f"{name!r} is not a benchmark of round {round_.name}: the official checker skips the"
            f" folder{where_instead(round_.usage, round_.name, name)}",
            expected=list(context.round.benchmarks),
        )
    for run in context.runs:
        if run.benchmark not in ("", context.files.benchmark):
            yield context.finding(
                "SET107",
                "the log names the benchmark {found:s}; expected {expected}",
                path=run.path,
                found=run.benchmark,
                expected=context.files.benchmark,
            )


def check_system_file(context: SetContext) -> Iterator[Finding]:
    """Check that the system description can be read and names the division of the logs."""
    if context.origin is not Origin.SUBMISSION:
        return
    if context.system is None or context.system.contents is None:
        message = f"systems/{context.files.system}.json is missing or cannot be read"
        yield context.finding("SET110", message)
        return
    of_logs = {run.division for run in context.runs} & {*DIVISIONS}
    # A misspelt division is a finding about the system description itself.
    of_system = {context.division_by_rules} & {*DIVISIONS}
    if len(of_logs | of_system) > 1:
        was_moved = of_logs == {"closed"} and of_system == {"open"}
        yield context.finding(
            "SET111",
            f"the division is {' and '.join(sorted(of_logs))} in the logs,"
            f" but {context.division or 'missing'} in {context.system.path}",
            found=sorted(of_logs),
            expected=context.division,
            **NOTE if was_moved else {},
        )


# ---- the runs that failed, and what the official checkers and the rules forgive -----------

_UNREADABLE = "LOG113"  # the package checker crashes on such a log
_NO_POWER = "POW101"
_FORGIVEN = ENDINGS - {"RUN140"}  # a note, where the set may have such a run
_NOT_BY_KILLING = "LOG102"  # a run may fail, but its log must be one
_OLYMPIC = "the package checker accepts this, as olympic scoring drops the run"
_OF_CLOSED = frozenset({"RUN166"})  # in Open, no batch size is compared with another
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
        findings = (*_of_division(context, run), *of_power.get(run.path, ()))
        if run in forgiven_runs:  # the rules need only the energy of runs whose time counts
            findings = tuple(
                replace(f, basis=Basis.OFFICIAL) if f.code == _NO_POWER else f for f in findings
            )
        if run.killed:
            findings = tuple(_of_killed(findings, shown=not accepted))
        if accepted:
            findings = tuple(
                f if f.code == _UNREADABLE else without_official(f, _OLYMPIC) for f in findings
            )
        counts = run in forgiven_runs or context.is_converged(run)
        yield from map(partial(_noted, run), findings) if counts else findings


def _of_division(context: SetContext, run: Run) -> Iterator[Finding]:
    """Yield the findings of a log, by the rules those of Open if its entry was moved there."""
    if (run.division, context.division_by_rules) != ("closed", "open"):
        yield from run.findings
        return
    benchmark, round_ = context.files.benchmark, context.round
    table = rule_table(round_.usage, round_.name, "open", benchmark, frozenset())
    rules = (compiled.rule for key in table.keys.values() for compiled in key.rules)
    written = {rule.code for rule in rules if rule.basis is not Basis.OFFICIAL}
    written |= codes().keys() - _OF_CLOSED
    for finding in run.findings:
        if finding.code in written:
            yield finding
        elif finding.fails(Basis.OFFICIAL):
            yield replace(finding, basis=Basis.OFFICIAL)


def failed_runs(context: SetContext) -> list[Run]:
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
    failed = len(failed_runs(context))
    return max(unconverged if context.rcp_required else 0, failed) > context.drop


def _unconverged(context: SetContext) -> list[Run]:
    """Return the runs that did not converge by the rules, also those that were killed."""
    return [run for run in context.runs if not context.is_converged(run)]


def _allowed_failures(context: SetContext) -> int:
    """Return how many runs of a set may fail to converge; none of the models of weak scaling."""
    return 0 if context.weak else context.drop


def _forgiven(context: SetContext) -> tuple[list[Run], list[Run]]:
    """Return the runs whose logs may break any rule, and those that may fail to converge."""
    failed, unconverged = failed_runs(context), _unconverged(context)
    accepts = len(failed) <= context.drop and not any(run.crash for run in failed)
    forgives = len(unconverged) <= _allowed_failures(context)
    return failed if accepts else [], unconverged if forgives else []


def _of_killed(findings: Iterable[Finding], *, shown: bool) -> Iterator[Finding]:
    """Yield the findings of a run that was killed, which the rules count as one failure.

    What its log lacks is an error of the official checker alone, and ``shown`` unless that
    accepts the log.
    """
    for finding in findings:
        is_missing = isinstance(finding, Pending) and finding.code not in ENDINGS
        if is_missing and (finding.basis is Basis.RULES or not shown):
            continue
        by_both = finding.basis is Basis.BOTH and finding.code != _NOT_BY_KILLING
        yield replace(finding, basis=Basis.OFFICIAL) if by_both else finding


def _noted(run: Run, finding: Finding) -> Finding:
    """Return the finding that a run failed as a note: the rules forgive the run."""
    if finding.code not in _FORGIVEN or finding.severity is Severity.ERROR:
        return finding
    return replace(finding, severity=Severity.NOTE, hint=_DROPPED if run.killed else finding.hint)


# ---- seeds: every run logs one, and no two log the same one from the same source line -----

_OF_CHECKER: dict[str, Any] = {"basis": Basis.OFFICIAL, "source": PACKAGE_CHECKER}


def check_seeds(context: SetContext, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings``, those of ``seed_findings``, for a Closed set that does not bypass them.

    The official package checker asks for seeds under the same conditions, but where a description
    spells "Closed".
    """
    if context.closed_by_rules and "seed-checker-bypass" not in context.files.flags:
        by_rules = (replace(f, basis=Basis.RULES) for f in findings if f.basis is Basis.BOTH)
        yield from findings if context.closed else by_rules
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
        if any(finding.code == "LOG111" for finding in run.findings):
            continue  # LOG111 reports the several runs
        if len(run.seeds) > 1 and (count := len({seed.value for seed in run.seeds})) > 1:
            message = "{found} different seeds are logged; expected one"
            yield context.finding(
                "SEED105", message, path=run.path, line=run.seeds[-1].line, found=count
            )


def seed_findings(context: SetContext) -> Iterator[Finding]:
    """Check that every run logs a seed, and no seed of a source line appears twice in the set.

    The rules do not require a seed of a killed run, which counts as failed.
    """
    logged: dict[tuple[Any, Any, int], str] = {}
    for run in context.runs:
        fields = {"basis": Basis.OFFICIAL} if run.killed else {}
        if run.seeds_unreadable:
            yield context.finding(
                "SEED103",
                "seeds cannot be read: {found:s}",
                path=run.path,
                found=run.seeds_unreadable,
                **_OF_CHECKER if run.seeds_unreadable == OTHER_RECORDS else fields,
            )
        elif not run.seeds:
            yield context.finding("SEED101", "no seed is logged", path=run.path, **fields)
        for seed in run.seeds:
            key = (seed.file, seed.lineno, seed.value)
            if key in logged:
                is_same = logged[key] == run.path  # as by several processes
                where = "in several runs; expected another seed"
                where = "twice in this run; expected once" if is_same else where
                yield context.finding(
                    "SEED102",
                    f"seed {{found:d}} is logged by the same source line {where}",
                    path=run.path,
                    line=seed.line,
                    found=seed.value,
                    **_OF_CHECKER if is_same else fields,
                )
            logged.setdefault(key, run.path)


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
    for run in runs:
        if not _gaps(run)[-1] <= _interval(context, run):
            yield context.finding(
                "SET123",
                "the checkpoint before the last one, at {found:,}, was not evaluated; expected"
                " {expected}",
                path=run.path,
                found=run.convergence.positions[-1],
                expected="evaluations of the last two checkpoints",
            )
    complete = sum(max(_gaps(run)) <= _interval(context, run) for run in runs)
    expected = len(context.runs) // 10
    if runs and complete < expected:
        message = (
            "{found} runs have an evaluation of every checkpoint; expected at least {expected}"
        )
        yield context.finding("SET124", message, found=complete, expected=expected)


def _gaps(run: Run) -> list[float]:
    """Return the distances between evaluated checkpoints, and of the first to the start."""
    return [later - earlier for earlier, later in pairwise([0, *run.convergence.positions])]


def _interval(context: SetContext, run: Run) -> float:
    """Return the greatest distance of checkpoints, in the unit of the log."""
    size = to_finite(run.convergence.batch_size) or 1
    steps = math.ceil(_INTERVAL / size) if size >= 1 else _INTERVAL
    return steps if context.round.version == _COUNTS_STEPS else steps * size


# ---- whether the round that was chosen fits the times of the runs -------------------------

_NAME_ROUND = "name the round with --round"


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
        yield from _outside_window(members, name, window(usage, name))


def _guess(run: Run) -> Finding:
    if (day := _day(run)) is None:
        message = f"no run has a time; assuming the newest round, {run.round}"
        return finding_of("ROUND102", message, run.path, hint=_NAME_ROUND)
    return finding_of(
        "ROUND102",
        "the runs are dated {found:s}; expected {expected}: assuming the newest round",
        run.path,
        found=str(day),
        expected=f"{window(run.usage, run.round).last} or earlier (round {run.round})",
        hint=_NAME_ROUND,
    )


def _outside_window(runs: Sequence[Run], name: str, expected: Window) -> Iterator[Finding]:
    if any((day := _day(run)) and expected.first <= day <= expected.last for run in runs):
        return
    for run in runs:
        if day := _day(run):
            is_older = day < expected.first
            limit = f"{expected.first} or later" if is_older else f"{expected.last} or earlier"
            yield finding_of(
                "ROUND101" if is_older else "ROUND103",
                "the runs are dated {found:s}; expected {expected}",
                run.path,
                found=str(day),
                expected=f"{limit} (round {name})",
                hint=_NAME_ROUND,
            )


def _day(run: Run) -> date | None:
    time_ms = run.start_ms or run.stop_ms
    return day_of(time_ms) if time_ms else None
