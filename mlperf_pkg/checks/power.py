"""Measured power: its files as the official power checker wants them, and its samples as the rules.

Sources: mlperf_logging.package_checker, PowerChecker; power_measurement.adoc.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.results.scoring import olympic_mean
from mlperf_pkg.run import power
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog

CHECKER = "mlperf-logging, power_checker"
SUMMARIZER = "mlperf-logging, result_summarizer"
RULES = "power_measurement, Sampling"
_LEAST_READINGS = 60
_LONGEST_GAP_MS = 1000
_ROUNDING_S = 0.001  # minutes are doubles
_KINDS = ("node", "sw")


class PowerFiles(Struct, frozen=True):
    """What the official power checker makes of a set's files.

    ``blamed`` are the findings by the path of the run that it takes them for. ``died`` tells why
    it raises, and with it the check of the whole package, if it does.
    """

    blamed: dict[str, list[Finding]] = field(default_factory=dict)
    died: str | None = None


def power_files(case: SetContext) -> PowerFiles:
    """Judge names and numbers of the files of a set's ``power`` folder, where it has one."""
    if case.files.power is None or case.rules is None or case.loose:
        return PowerFiles()
    try:
        return PowerFiles(_blamed(case))
    except _DiedError as error:
        return PowerFiles(died=str(error))


class _DiedError(Exception):
    """The official power checker raises here."""


def _blamed(case: SetContext) -> dict[str, list[Finding]]:
    blamed: dict[str, list[Finding]] = {}
    counts: dict[str, list[int]] = {kind: [] for kind in _KINDS}
    measured: list[str] = []
    for run in case.runs:
        name = run.path.rpartition("/")[2].removesuffix(".txt")
        results = (case.files.power.results if case.files.power else None) or {}
        if name not in results:
            blamed.setdefault(run.path, []).append(_missing(case, name))
            continue
        measured.append(name)
        for kind in _KINDS:
            numbers = _numbers(_names(results[name], name), kind)
            counts[kind].append(len(numbers))
            if any(not 0 <= number < len(numbers) for number in numbers):
                blamed.setdefault(run.path, []).append(_misnamed(case, name, kind, numbers))
    for kind, numbers in counts.items():
        for run, finding in _unequal(case, measured, kind, numbers):
            blamed.setdefault(run.path, []).append(finding)
    return blamed


def _names(listed: tuple[str, ...] | None, result: str) -> tuple[str, ...]:
    if listed is None:
        raise _DiedError(f"power/{result} is no folder")
    return listed


def _numbers(names: Sequence[str], kind: str) -> list[int]:
    """The number at the end of each name that begins with ``kind``, as the checker reads it."""
    try:
        return [
            int(os.path.splitext(name)[0].split("_")[-1])  # noqa: PTH122 - as the checker does
            for name in names
            if name.startswith(kind)
        ]
    except ValueError as error:
        raise _DiedError(f"a name begins with {kind} but holds no number: {error}") from error


def _unequal(
    case: SetContext, measured: Sequence[str], kind: str, counts: Sequence[int]
) -> Iterator[tuple[Run, Finding]]:
    """Runs with more or fewer files than most; the checker counts past runs that have none."""
    if not counts:
        raise _DiedError("no run has a folder in power/")
    usual = Counter(counts).most_common(1)[0][0]
    for run, name, count in zip(case.runs, measured, counts, strict=False):
        if count != usual:
            blamed = run.path.rpartition("/")[2].removesuffix(".txt")
            other = "" if blamed == name else f"; the official checker takes it for {blamed}"
            finding = _finding(
                case,
                "POW103",
                f"{count} files {kind}_<number>.txt, most runs have {usual}{other}",
                name,
                basis=Basis.OFFICIAL if other else Basis.BOTH,
                found=count,
                expected=usual,
            )
            yield run, finding


def _missing(case: SetContext, name: str) -> Finding:
    return _finding(case, "POW101", f"no folder power/{name}: this run's power is not there")


def _misnamed(case: SetContext, name: str, kind: str, numbers: Sequence[int]) -> Finding:
    return _finding(
        case,
        "POW102",
        f"{len(numbers)} files {kind}_<number>.txt, needed numbers from 0 to {len(numbers) - 1}",
        name,
        found=sorted(numbers),
        expected=list(range(len(numbers))),
    )


def _finding(case: SetContext, code: str, message: str, result: str = "", **more: Any) -> Finding:
    path = "/".join(part for part in (case.path, "power", result) if part)
    return Finding(**{"code": code, "message": message, "path": path, "source": CHECKER, **more})


# ---- findings about the set ---------------------------------------------------------------


def check_power(case: SetContext) -> Iterator[Finding]:
    """What ends the official checks, and what the written rules ask of the samples."""
    if case.files.power is None:
        return
    if died := power_files(case).died:
        message = f"the power checker dies, and with it the check of the package: {died}"
        yield _finding(case, "POW104", message, basis=Basis.OFFICIAL)
    if died := energy(case).died:
        yield _finding(
            case,
            "POW105",
            f"the result summarizer dies of this power: {died}",
            severity=Severity.WARNING,
            basis=Basis.OFFICIAL,
            source=SUMMARIZER,
        )
    for run in case.runs:
        logs = case.power_logs(run)
        nodes = [log for log in logs if not log.switch]
        yield from _sampling(nodes)
        yield from _coverage(run, nodes)
        yield from _estimates([log for log in logs if log.switch])


def _sampling(nodes: Sequence[PowerLog]) -> Iterator[Finding]:
    """At least a sample a second, and 60 of them; one finding for all nodes of a run."""
    slow = max(nodes, key=lambda log: log.longest_gap_ms, default=None)
    if slow and slow.longest_gap_ms > _LONGEST_GAP_MS:
        yield _rule(
            "POW201",
            f"{slow.longest_gap_ms / 1000:g} s without a sample, needed one a second",
            slow,
            found=slow.longest_gap_ms,
            expected=_LONGEST_GAP_MS,
        )
    few = min(nodes, key=lambda log: log.readings, default=None)
    if few and few.readings < _LEAST_READINGS:
        message = f"{few.readings} samples, needed at least {_LEAST_READINGS}"
        yield _rule("POW202", message, few, found=few.readings, expected=_LEAST_READINGS)


def _coverage(run: Run, nodes: Sequence[PowerLog]) -> Iterator[Finding]:
    """The measurement begins before the run and ends after it."""
    if run.start_ms is None or run.minutes is None:
        return
    stop_ms = run.start_ms + run.minutes * 60_000
    for log in nodes:
        late = 0.0 if log.start_ms is None else (log.start_ms - run.start_ms) / 1000
        early = 0.0 if log.stop_ms is None else (stop_ms - log.stop_ms) / 1000
        if late > 0 or early > _ROUNDING_S:
            words = [f"begins {late:.3f} s after run_start"] * (late > 0)
            words += [f"ends {early:.3f} s before run_stop"] * (early > _ROUNDING_S)
            yield _rule("POW203", f"the measurement {' and '.join(words)} of {run.path}", log)
            return


def _estimates(switches: Sequence[PowerLog]) -> Iterator[Finding]:
    silent = next((log for log in switches if not log.estimated), None)
    if silent:
        message = "no interconnect_power_est: the official energy counts nothing for this switch"
        yield _rule("POW204", message, silent)


def _rule(code: str, message: str, log: PowerLog, **more: Any) -> Finding:
    """Warnings only: published measurements miss seconds."""
    fields = {"severity": Severity.WARNING, "basis": Basis.RULES, "source": RULES, **more}
    return Finding(code=code, message=message, path=log.path, **fields)


# ---- energy -------------------------------------------------------------------------------


class Energy(Struct, frozen=True):
    """The energy of a set's runs by the official summarizer, or why it dies."""

    joules: float | None = None
    died: str | None = None


def energy(case: SetContext, factor: float = 1.0) -> Energy:
    """The mean over the same runs as the mean time, times the factor of ``scaling.json``.

    Of a weak scaling set it is the mean of all but the least energy, without any factor.
    """
    if case.files.power is None or case.files.power.results is None:
        return Energy()
    valid = [run for run in case.runs if run.verdicts.official is Verdict.PASS]
    timed = sorted((r.official_minutes, r.path, r) for r in valid if r.official_minutes is not None)
    for _, path, run in timed:
        if died := _energy_death(case.power_logs(run)):
            return Energy(died=f"{path}: {died}")
    each = [power.joules(case.power_logs(run), minutes * 60_000) for minutes, _, run in timed]
    if case.weak:
        return Energy(olympic_mean(each, 1, 1))
    dropped = len(case.runs) - len(each)
    kept = each[case.drop : len(each) - case.drop + dropped] if dropped <= case.drop else []
    return Energy(sum(kept) / len(kept) * factor if kept else None)


def _energy_death(logs: Sequence[PowerLog]) -> str | None:
    if all(log.switch for log in logs):
        return "no power/<result>/node_<number>.txt"
    return next((f"{log.path}: {log.crash}" for log in logs if log.crash), None)
