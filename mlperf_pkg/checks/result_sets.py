"""Result sets: number of runs, seeds, convergence against the reference, and the score."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlperf_pkg import rcp, scoring
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.diagnostics import Basis, Diagnostic, Severity, Verdict, Verdicts, verdicts_of
from mlperf_pkg.report import RcpRow, ResultSetRow, SeedsRow
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark, Round
from mlperf_pkg.run import Run
from mlperf_pkg.submission import ResultSet

RULES = "training_rules, Benchmark results"
PACKAGE = "mlperf-logging, package_checker"
RCP_RULES = "training_rules, Reference convergence points"
SEED_RULES = "training_rules, Random numbers"

_EXPECTED_FILES = frozenset({"scaling.json", "package_checker_params", "power"})
_SEEDS_RULED_FROM = (4, 1)


@dataclass(frozen=True, slots=True)
class SetCase:
    """A result set with all that is known of it. ``rules`` is None for a benchmark not covered.

    ``loose`` sets were formed of logs outside a submission: they are for information only.
    """

    files: ResultSet
    runs: tuple[Run, ...]
    round: Round
    rules: Benchmark | None
    submitter: str | None = None
    system: SystemFile | None = None
    loose: bool = False

    @property
    def path(self) -> str:
        """Its path in reports."""
        return self.files.place.label

    @property
    def division(self) -> str | None:
        """The division that decides which tests apply: the system's, for loose logs their own."""
        if self.system is not None:
            return self.system.division
        return self.runs[0].division if self.runs else None

    @property
    def closed(self) -> bool:
        """Whether the official seed and RCP tests apply."""
        return self.division == "closed" and self.version >= (1, 0)

    @property
    def version(self) -> tuple[int, ...]:
        """The round as numbers."""
        return tuple(int(part) for part in self.round.name.split("."))

    @property
    def drop(self) -> int:
        """How many of the fastest, and of the slowest, are dropped."""
        return self.rules.runs.drop if self.rules else 1


@dataclass(frozen=True, slots=True)
class SetResult:
    """What came of a set: its row, its own findings, those of its runs, and the dropped runs."""

    row: ResultSetRow
    findings: tuple[Diagnostic, ...]
    run_findings: tuple[Diagnostic, ...]
    dropped: dict[str, str]


def check_set(case: SetCase) -> SetResult:
    """Judge and score one result set."""
    tested = _test_rcp(case)
    findings = [finding for check in _CHECKS for finding in check(case)]
    findings += _rcp_findings(case, tested)
    run_findings = [finding for run in case.runs for finding in run.findings]
    if case.loose:
        findings = [_for_information(finding) for finding in findings]
        verdict = Verdicts.worst(run.verdicts for run in case.runs)
    else:
        run_findings = list(_forgiven(case))
        verdict = _verdict(case, findings, run_findings)
    times = [scoring.RunTime(run.path, run.minutes, run.converged) for run in case.runs]
    score = scoring.score(times, case.drop, case.rules.runs.required if case.rules else len(times))
    return SetResult(
        row=_row(case, verdict, score, tested),
        findings=tuple(findings),
        run_findings=tuple(run_findings),
        dropped=dict(score.dropped),
    )


def _verdict(case: SetCase, own: list[Diagnostic], of_runs: list[Diagnostic]) -> Verdicts:
    verdict = verdicts_of([*own, *of_runs])
    if case.rules is None and verdict.official is Verdict.PASS:
        verdict = replace(verdict, official=Verdict.NOT_CHECKED)
    if case.rules is None and verdict.rules is Verdict.PASS:
        verdict = replace(verdict, rules=Verdict.NOT_CHECKED)
    return verdict


def _row(
    case: SetCase, verdict: Verdicts, score: scoring.Score, tested: rcp.RcpResult | None
) -> ResultSetRow:
    given = _scaling_factor(case.files.scaling)
    factor = _normalisation(case, tested) if given is None else given
    official = _official_minutes(case)
    return ResultSetRow(
        path=case.path,
        submitter=case.submitter,
        system=case.files.system,
        benchmark=case.files.benchmark,
        division=case.division,
        round=case.round.name,
        verdict=verdict,
        runs_found=len(case.runs),
        runs_required=case.rules.runs.required if case.rules else None,
        score_minutes=None if score.minutes is None else score.minutes * factor,
        unscaled_minutes=score.minutes,
        scaling_factor=factor,
        official_minutes=None if official is None else official * (1.0 if given is None else given),
        score_note=score.reason,
        rcp=_rcp_row(case, tested),
        seeds=SeedsRow(not any(_seed_findings(case))),
    )


def _normalisation(case: SetCase, tested: rcp.RcpResult | None) -> float:
    """The factor by which a Closed set that beats the reference is slowed down."""
    applies = case.round.normalised and case.closed and tested and tested.official_pass
    return tested.normalization if applies and tested else 1.0


# ---- official scores ----------------------------------------------------------------------


def _scaling_factor(text: str | None) -> float | None:
    """The factor in ``scaling.json``; None where there is no file or no number in it."""
    try:
        factor = json.loads(text)["scaling_factor"] if text is not None else None
    except (ValueError, TypeError, KeyError):
        return None
    return float(factor) if isinstance(factor, int | float) else None


def _official_minutes(case: SetCase) -> float | None:
    """The olympic mean of the logs that the official checker passes, before scaling."""
    if any(run.died for run in case.runs):
        return None
    minutes = [
        run.official_minutes
        for run in case.runs
        if run.verdicts.official is Verdict.PASS and run.official_minutes is not None
    ]
    dropped = len(case.runs) - len(minutes)
    return scoring.olympic_mean(minutes, case.drop, dropped) if dropped <= case.drop else None


# ---- runs ---------------------------------------------------------------------------------


def _forgiven(case: SetCase) -> Iterator[Diagnostic]:
    """The findings of the runs, as far as the set does not forgive them.

    The official package checker accepts a set in which at most ``drop`` logs fail, whatever they
    fail of ("olympic scoring"); the written rules forgive only runs that do not converge.
    """
    failed = [run for run in case.runs if run.verdicts.official is Verdict.FAIL]
    accepted = failed if len(failed) <= case.drop and not any(r.died for r in failed) else []
    for run in case.runs:
        for finding in run.findings:
            yield _without_official(finding) if run in accepted else finding


def _without_official(finding: Diagnostic) -> Diagnostic:
    if not finding.fails(Basis.OFFICIAL):
        return finding
    if finding.basis is Basis.BOTH:
        return replace(finding, basis=Basis.RULES)
    hint = "the package checker accepts this, as olympic scoring drops the run"
    return replace(finding, severity=Severity.WARNING, hint=finding.hint or hint)


def _for_information(finding: Diagnostic) -> Diagnostic:
    if finding.severity is not Severity.ERROR:
        return finding
    severity = Severity.NOTE if finding.code == "SET101" else Severity.WARNING
    return replace(finding, severity=severity)


def _count_findings(case: SetCase) -> Iterator[Diagnostic]:
    if case.rules is None:
        return
    required, found = case.rules.runs.required, len(case.runs)
    if found != required:
        yield _finding(
            case,
            "SET101",
            f"{found} runs (files result_*.txt), needed {required}",
            found=found,
            expected=required,
        )
    lost = [run for run in case.runs if not run.converged]
    if len(lost) > case.drop:
        yield _finding(
            case,
            "SET102",
            f"{len(lost)} runs did not converge, at most {case.drop} may",
            found=len(lost),
            expected=case.drop,
        )
    failed = [run for run in case.runs if run.verdicts.official is Verdict.FAIL]
    if len(failed) > case.drop:
        yield _finding(
            case,
            "SET103",
            f"{len(failed)} logs fail the compliance checker, at most {case.drop} may",
            basis=Basis.OFFICIAL,
            source=PACKAGE,
            found=len(failed),
            expected=case.drop,
        )
    for run in case.runs:
        if run.died:
            message = f"the compliance checker dies of {run.path}: {run.died}"
            yield _finding(case, "SET104", message, basis=Basis.OFFICIAL, source=PACKAGE)


def _folder_findings(case: SetCase) -> Iterator[Diagnostic]:
    if strange := [name for name in case.files.others if name not in _EXPECTED_FILES]:
        yield _finding(
            case,
            "SET105",
            f"not read, as the name is not result_<number>.txt: {', '.join(strange[:5])}",
            basis=Basis.ADVICE,
            severity=Severity.WARNING,
        )
    if case.files.benchmark not in case.round.benchmarks and not case.loose:
        yield _finding(
            case,
            "SET106",
            f"{case.files.benchmark!r} is no benchmark of round {case.round.name}:"
            " the official checker skips the folder",
            basis=Basis.RULES,
            expected=list(case.round.benchmarks),
        )
    for run in case.runs:
        if run.benchmark and run.benchmark != case.files.benchmark:
            message = f"{run.path} is a run of {run.benchmark}, not of {case.files.benchmark}"
            yield _finding(case, "SET107", message, basis=Basis.RULES)


def _system_findings(case: SetCase) -> Iterator[Diagnostic]:
    if case.loose:
        return
    if case.system is None or case.system.contents is None:
        message = f"no system description systems/{case.files.system}.json that can be read"
        yield _finding(case, "SET110", message, source="submission_rules, Systems")
        return
    named = {run.division for run in case.runs if run.division in DIVISIONS}
    if case.division in DIVISIONS and named - {case.division}:
        yield _finding(
            case,
            "SET111",
            f"the logs say {' and '.join(sorted(named))}, {case.system.path} says {case.division}",
            basis=Basis.RULES,
            found=sorted(named),
            expected=case.division,
        )


# ---- seeds --------------------------------------------------------------------------------


def _closed_seed_findings(case: SetCase) -> Iterator[Diagnostic]:
    if case.closed and "seed-checker-bypass" not in case.files.flags:
        yield from _seed_findings(case)


def _seed_findings(case: SetCase) -> Iterator[Diagnostic]:
    """Every run logs a seed, and no two records of the set the same one from the same line."""
    ruled = case.version >= _SEEDS_RULED_FROM
    more: dict[str, Any] = {
        "basis": Basis.BOTH if ruled else Basis.OFFICIAL,
        "source": SEED_RULES if ruled else PACKAGE,
    }
    earlier: dict[tuple[Any, Any, int], str] = {}
    for run in case.runs:
        if run.seeds_unreadable:
            message = f"seeds cannot be read: {run.seeds_unreadable}"
            yield _finding(case, "SEED103", message, path=run.path, **more)
            continue
        if not run.seeds:
            yield _finding(case, "SEED101", "no seed is logged", path=run.path, **more)
        for seed in run.seeds:
            place = (seed.file, seed.lineno, seed.value)
            if place in earlier:
                yield _finding(
                    case,
                    "SEED102",
                    f"seed {seed.value} was logged by the same source line in {earlier[place]}",
                    path=run.path,
                    line=seed.line,
                    found=seed.value,
                    **more,
                )
            earlier.setdefault(place, run.path)


# ---- convergence --------------------------------------------------------------------------


def _rcp_death(case: SetCase) -> str | None:
    """Why the official RCP checker raises on this set, if it does."""
    for run in case.runs:
        if run.convergence.died:
            return f"{run.path}: {run.convergence.died}"
    names = {str(run.convergence.benchmark) for run in case.runs}
    if _batch_size(case.runs) is None:
        return "the batch sizes of the logs differ"
    if len(names) != 1:
        return f"the logs are of {' and '.join(sorted(names)) or 'no benchmark'}"
    name = names.pop()
    if not rcp.is_covered(case.round.usage, name):
        return f"it does not know {name}"
    numbers = [*(run.convergence.to_converge for run in case.runs), _batch_size(case.runs)]
    if not all(isinstance(number, int | float) for number in numbers):
        return "epochs, samples or batch sizes that are no numbers"
    return None if _points(case, name) else f"it has no reference points of {name}"


def _batch_size(runs: Sequence[Run]) -> Any:
    """The batch size of all runs; -1 where none is logged, None where they differ."""
    known: Any = -1
    for run in runs:
        size = run.convergence.batch_size
        if known == -1:
            known = size
        elif size != known:
            return None
    return known


def _points(case: SetCase, benchmark: str) -> tuple[rcp.ReferencePoint, ...]:
    assert case.rules  # noqa: S101
    return rcp.reference_points(
        case.round.usage,
        case.round.ruleset,
        benchmark,
        runs=case.rules.runs.required,
        drop=case.drop,
    )


def _test_rcp(case: SetCase) -> rcp.RcpResult | None:
    """The RCP test itself, of whatever division; None where it does not apply or dies."""
    if case.rules is None or case.version < (1, 0) or _rcp_death(case):
        return None
    benchmark = case.runs[0].convergence.benchmark
    lost = sum(not run.convergence.converged for run in case.runs)
    return rcp.judge(
        rcp.prune(_points(case, benchmark)),
        _batch_size(case.runs),
        None if lost > case.drop else [run.convergence.to_converge for run in case.runs],
        benchmark=benchmark,
        ruleset=case.round.ruleset,
        runs=case.rules.runs.required,
        drop=case.drop,
    )


def _rcp_row(case: SetCase, tested: rcp.RcpResult | None) -> RcpRow | None:
    if tested is None:
        return None
    return RcpRow(
        official_pass=tested.official_pass,
        message=tested.message,
        normalization=tested.normalization,
        bypassed=_bypassed(case, tested),
        batch_size=tested.batch_size,
        mean=tested.mean,
        minimum=tested.minimum,
        explanation=rcp.explain(tested),
    )


def _bypassed(case: SetCase, tested: rcp.RcpResult) -> bool:
    asked = "rcp-bypass" in case.files.flags
    return asked and not tested.official_pass and rcp.bypassed(tested).official_pass


def _rcp_findings(case: SetCase, tested: rcp.RcpResult | None) -> Iterator[Diagnostic]:
    if not case.closed or case.files.benchmark == "minigo" or case.rules is None:
        return
    if tested is None:
        message = f"the RCP checker dies of this set: {_rcp_death(case)}"
        yield _finding(case, "RCP103", message, basis=Basis.OFFICIAL, source=PACKAGE)
        return
    if tested.official_pass:
        return
    bypassed = _bypassed(case, tested)
    yield _finding(
        case,
        "RCP102" if bypassed else "RCP101",
        f"RCP test failed{', by request not counted' if bypassed else ''}: {rcp.explain(tested)}",
        basis=Basis.RULES if bypassed else Basis.OFFICIAL,
        severity=Severity.WARNING if bypassed else Severity.ERROR,
        source=RCP_RULES,
        found=tested.mean,
        expected=tested.minimum,
        hint="a review decides; rcp-bypass in package_checker_params asks for one",
    )


_CHECKS = (_count_findings, _folder_findings, _system_findings, _closed_seed_findings)


def _finding(case: SetCase, code: str, message: str, **more: Any) -> Diagnostic:
    return Diagnostic(code=code, message=message, **{"path": case.path, "source": RULES, **more})
