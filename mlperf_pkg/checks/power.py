"""Rules on measured power: the files that the official checker expects, sampling, and energy.

Sources: mlperf_logging.package_checker, PowerChecker; power_measurement.adoc.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from msgspec import Struct, field

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.findings import NOTE, Basis, Finding, Severity, Verdict
from mlperf_pkg.results.scoring import olympic_mean
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.run import power
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.model import PowerFolder, is_result_log, power_names

_MIN_READINGS = 60
_TOLERATED = 0.1  # of a measurement: published ones lack up to 9.4 % of their samples
_ROUNDING_MS = 1  # minutes are doubles
_MS_PER_MINUTE = 60_000
_KINDS = ("node", "sw")
_MOST_LISTED = 5  # of the numbers of files, as many as a message lists of those that are there


class PowerFiles(Struct, frozen=True):
    """What the official power checker reports on the files of a set.

    ``findings`` are by the path of the run to which it attributes them. ``crash`` is the reason
    why it crashes, and with it the package checker; None where it does not.
    """

    findings: Mapping[str, list[Finding]] = field(default_factory=dict)
    crash: str | None = None


class _CrashError(Exception):
    """The official power checker crashes here."""


def power_files(context: SetContext) -> PowerFiles:
    """Check the names and the number of the files in a set's ``power`` folder, if it has one."""
    if context.files.power is None or context.rules is None:
        return PowerFiles()
    findings: defaultdict[str, list[Finding]] = defaultdict(list)
    try:
        for run, finding in _findings_of_runs(context, context.files.power):
            findings[run.path].append(finding)
    except _CrashError as error:
        return PowerFiles(crash=str(error))
    return PowerFiles(findings)


def _findings_of_runs(context: SetContext, folder: PowerFolder) -> Iterator[tuple[Run, Finding]]:
    results = folder.results or {}
    counts: dict[str, list[tuple[Run, int]]] = {kind: [] for kind in _KINDS}
    for run in context.runs:
        name = _result_name(folder, run)
        key = _key(folder, run)
        if key not in results:
            message = "power/ has no folder {found:s}; expected a folder for each run"
            path = _path(folder, run).rpartition("/")[0]
            yield run, finding_of("POW101", message, path, found=name)
            continue
        names = results[key]
        if names is None:
            raise _CrashError(f"power/{name} is not a folder")
        for kind in _KINDS:
            numbers = _numbers(names, kind)
            counts[kind].append((run, len(numbers)))
            expected = list(range(len(numbers)))
            if not {*numbers} <= {*expected}:
                message = _wrong_numbers(kind, expected)
                finding = finding_of(
                    "POW102", message, _path(folder, run), found=sorted(numbers), expected=expected
                )
                yield run, finding
    for kind in _KINDS:
        yield from _unequal_counts(context, folder, kind, counts[kind])


def _wrong_numbers(kind: str, expected: Sequence[int]) -> str:
    """Return the template of a message about files with other numbers than these."""
    if len(expected) == 1:
        return f"the only file {kind}_<number>.txt has the number {{found:s}}; expected 0"
    numbers = ", ".join(map(str, expected))
    if len(expected) > _MOST_LISTED:
        numbers = f"{expected[0]} to {expected[-1]}"
    return f"the files {kind}_<number>.txt have the numbers {{found:s}}; expected {numbers}"


def _key(folder: PowerFolder, run: Run) -> str:
    """Return under which name the folder has the measurements of a run."""
    return run.path if folder.folders else _result_name(folder, run)


def _result_name(folder: PowerFolder, run: Run) -> str:
    """Return the name of the folder with the measurements of a run; a raw log may end otherwise."""
    if run.path in folder.folders:
        return folder.folders[run.path].name
    name = run.file.rpartition("/")[2]
    return name.removesuffix(".txt") if is_result_log(name) else power_names(name)[0]


def _numbers(names: Sequence[str], kind: str) -> list[int]:
    """Return the number at the end of each name that starts with ``kind``, as the checker does."""
    try:
        return [
            int(os.path.splitext(name)[0].split("_")[-1])  # noqa: PTH122 - as the checker does
            for name in names
            if name.startswith(kind)
        ]
    except ValueError as error:
        raise _CrashError(f'the name of a file has no number after "{kind}"') from error


def _unequal_counts(
    context: SetContext, folder: PowerFolder, kind: str, counts: Sequence[tuple[Run, int]]
) -> Iterator[tuple[Run, Finding]]:
    """Yield runs with more or fewer files than most runs.

    The official checker leaves out runs without files when it counts, and so blames other runs.
    """
    if not counts:
        raise _CrashError("no run has a folder in power/")
    usual = Counter(count for _, count in counts).most_common(1)[0][0]
    # A count is that of the run with it; the run beside it is the one that is blamed.
    for blamed_run, (run, count) in zip(context.runs, counts, strict=False):
        if count != usual:
            message = (
                f"the number of files {kind}_<number>.txt is {{found}}; expected {{expected}},"
                " as in other runs"
            )
            basis = Basis.BOTH
            if blamed_run != run:
                basis = Basis.OFFICIAL
                blamed = _result_name(folder, blamed_run)
                message = f"{message} (the official checker reports this for {blamed} instead)"
            finding = finding_of(
                "POW103", message, _path(folder, run), basis=basis, found=count, expected=usual
            )
            yield blamed_run, finding


def _path(folder: PowerFolder, run: Run) -> str:
    """Return the path of the folder with the measurements of a run, which is beside its log."""
    above = run.file.rpartition("/")[0]
    return "/".join(filter(None, (above, "power", _result_name(folder, run))))


# ---- findings about the set ---------------------------------------------------------------


def check_power(context: SetContext) -> Iterator[Finding]:
    """Check for what makes the official checkers crash, and the samples by the written rules."""
    folder = context.files.power
    if folder is None:
        return
    crash = power_files(context).crash
    if crash:
        message = f"{crash}, so the power checker crashes, and with it the official package checker"
        yield finding_of("POW104", message, folder.place.label)
    reason = energy(context).crash
    if reason:
        message = f"{reason}, so the result summarizer crashes"
        yield finding_of("POW105", message, folder.place.label)
    for run in context.runs:
        logs = context.power_of(run)
        yield from (log.unchecked for log in logs if log.unchecked)
        if not crash:
            yield from _all_nodes(context, folder, run, logs)
        nodes = [log for log in logs if not log.switch and not log.unchecked]
        yield from _sampling(nodes)
        yield from _start(nodes)
        yield from _coverage(run, nodes)
        without = next((log for log in logs if log.switch and not log.estimated), None)
        if without:
            message = (
                "interconnect_power_est is missing from the log of a switch, so the official"
                " checker counts no energy for the switch"
            )
            yield finding_of("POW204", message, without.path)
        yield from _values(logs)


def _all_nodes(
    context: SetContext, folder: PowerFolder, run: Run, logs: Sequence[PowerLog]
) -> Iterator[Finding]:
    """Check that each node has a file, and the interconnect of several nodes has one.

    The number of nodes is that of the log or else of the system description.
    """
    switches = sum(log.switch for log in logs)
    measured = len(logs) - switches
    nodes = run.nodes or (context.system.nodes if context.system else None)
    if not nodes or _key(folder, run) not in (folder.results or {}):
        return
    path = _path(folder, run)
    if nodes > 1 and measured and not switches:
        message = (
            "there is no file sw_<number>.txt; expected a file for the interconnect of {expected:s}"
        )
        yield finding_of("POW207", message, path, expected=f"{nodes} nodes")
    if measured != nodes:
        message = "the number of files node_<number>.txt is {found}; expected {expected} (one for"
        severity = Severity.ERROR if measured < nodes else Severity.WARNING
        yield finding_of(
            "POW205",
            f"{message} each node)",
            path,
            severity=severity,
            found=measured,
            expected=nodes,
        )


def _sampling(nodes: Sequence[PowerLog]) -> Iterator[Finding]:
    """Check for a sample per second, and for 60 of them; one finding for all nodes of a run."""
    slowest = max(nodes, key=lambda log: (log.missing, log.longest_gap_ms), default=None)
    if slowest and slowest.longest_gap_ms > power.MAX_GAP_MS:
        message = "gaps of {found:.1f} s between power samples"
        amount = slowest.longest_gap_ms / 1000
        severity = Severity.WARNING
        if slowest.missing > _TOLERATED:
            message = "{found} % of the power samples are missing"
            amount = round(100 * slowest.missing)
            severity = Severity.ERROR
        message = f"{message}; expected one sample per second"
        yield finding_of(
            "POW201",
            message,
            slowest.path,
            severity=severity,
            found=amount,
            expected=power.MAX_GAP_MS / 1000,
        )
    shortest = min(nodes, key=lambda log: log.readings, default=None)
    if shortest and shortest.readings < _MIN_READINGS:
        message = "the power log has {found} samples; expected at least {expected}"
        weight = NOTE if shortest.readings else {}
        yield finding_of(
            "POW202",
            message,
            shortest.path,
            found=shortest.readings,
            expected=_MIN_READINGS,
            **weight,
        )


def _start(nodes: Sequence[PowerLog]) -> Iterator[Finding]:
    """Check that the measurement has a start; one finding for all nodes of a run."""
    for log in nodes:
        if log.readings and log.start_ms is None:
            message = "power_measurement_start is not logged; expected once before the first sample"
            yield finding_of("POW208", message, log.path)
            return


class _Gap(Struct, frozen=True):
    """How long the samples of a run, or the measurement as stated, do not cover the run.

    ``is_late`` if that is at its start.
    """

    missing_ms: float
    is_late: bool

    @property
    def verb(self) -> str:
        """What the samples do before or after they should."""
        return "start" if self.is_late else "end"

    @property
    def key(self) -> str:
        """The key of that end of the measurement."""
        return "power_measurement_start" if self.is_late else "power_measurement_stop"

    @property
    def seconds_at(self) -> str:
        """Where the seconds are missing, with a placeholder for their number."""
        place = "after run_start" if self.is_late else "before run_stop"
        return f"{{found:,.3f}} s {place}"


def _coverage(run: Run, nodes: Sequence[PowerLog]) -> Iterator[Finding]:
    """Check that the samples cover the run; if they do, note a measurement that says otherwise.

    A sample measures the second before it. There is one finding for all nodes of a run.
    """
    if run.start_ms is None or run.minutes is None:
        return
    run_ms = run.minutes * _MS_PER_MINUTE
    stop_ms = run.start_ms + run_ms
    tolerated_ms = _TOLERATED * run_ms
    for log in nodes:
        gap = _gap(run.start_ms, stop_ms, log.first_ms, log.last_ms)
        if gap.missing_ms > power.MAX_GAP_MS:
            severity = Severity.ERROR if gap.missing_ms > tolerated_ms else Severity.WARNING
            message = (
                f"the power samples {gap.verb} {gap.seconds_at}; expected samples of the whole run"
            )
            seconds = gap.missing_ms / 1000
            yield finding_of("POW203", message, log.path, found=seconds, severity=severity)
            return
    for log in nodes:
        gap = _gap(run.start_ms, stop_ms, log.start_ms, log.stop_ms)
        if log.readings and gap.missing_ms > _ROUNDING_MS:
            message = (
                f"{gap.key} is logged {gap.seconds_at}, although the power samples cover the run;"
                " expected a measurement of the whole run"
            )
            yield finding_of("POW203", message, log.path, found=gap.missing_ms / 1000, **NOTE)
            return


def _gap(start_ms: float, stop_ms: float, first_ms: float | None, last_ms: float | None) -> _Gap:
    """Return the longer gap at the ends of a run; a time that is unknown leaves none."""
    late_ms = 0.0 if first_ms is None else first_ms - start_ms
    early_ms = 0.0 if last_ms is None else stop_ms - last_ms
    return _Gap(max(late_ms, early_ms), is_late=late_ms >= early_ms)


def _values(logs: Sequence[PowerLog]) -> Iterator[Finding]:
    """Report the first impossible value of a run."""
    for log in logs:
        if log.impossible:
            key, value = log.impossible
            yield _impossible(log, key, value)
            return
        if log.watts == 0 and log.readings and not log.switch:
            message = "the mean of the power samples is {found} watts; expected more than 0 watts"
            yield finding_of("POW206", message, log.path, found=0, expected="more than 0")
            return


def _impossible(log: PowerLog, key: str, value: Any) -> Finding:
    expected = "a number of watts, at least 0"
    if key == "conversion_eff":
        expected = "a number above 0 and at most 1"
    message = f"{key} is {{found}}; expected {{expected:s}}"
    weight = NOTE if power.is_possible(key, value) else {}
    return finding_of("POW206", message, log.path, found=value, expected=expected, **weight)


# ---- energy -------------------------------------------------------------------------------


class Energy(Struct, frozen=True):
    """The energy of a set's runs by the official summarizer, or why it crashes.

    ``by_run`` is that of each run that passes, in joules, by its path. ``reason`` says why a set
    with a folder ``power`` has none.
    """

    joules: float | None = None
    crash: str | None = None
    by_run: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None


def energy(context: SetContext) -> Energy:
    """Return the mean energy of the runs that the mean time counts.

    For a weak scaling set it is the mean of all but the smallest energy.
    """
    if context.files.power is None:
        return Energy()
    if context.files.power.results is None:
        return Energy(reason="power is not a folder")
    timed: list[tuple[float, str, Run]] = []
    for run in context.runs:
        if run.verdicts.official is Verdict.PASS and run.official_minutes is not None:
            timed.append((run.official_minutes, run.path, run))
    by_run: dict[str, float] = {}
    for minutes, path, run in sorted(timed, key=itemgetter(0, 1)):
        logs = context.power_of(run)
        crash = _energy_crash(context.files.power, run, logs)
        if crash:
            return Energy(crash=crash, reason=crash)
        by_run[path] = power.joules(logs, minutes * _MS_PER_MINUTE)
    mean = _mean_energy(context, list(by_run.values()))
    if mean is None:
        few = f"too few runs ({len(by_run)} of {len(context.runs)}) pass the official checker"
        return Energy(by_run=by_run, reason=few)
    return Energy(mean, by_run=by_run)


def _mean_energy(context: SetContext, joules: Sequence[float]) -> float | None:
    """Return the mean of the energies, in the order of time, that count; None if none does."""
    if context.weak:
        return olympic_mean(joules, 1, 1)
    failed = len(context.runs) - len(joules)
    kept = joules[context.drop : len(joules) - context.drop + failed]
    if not kept or failed > context.drop:
        return None
    return sum(kept) / len(kept)


def _energy_crash(folder: PowerFolder, run: Run, logs: Sequence[PowerLog]) -> str | None:
    if all(log.switch for log in logs):
        return f"{_path(folder, run)}/ has no node_<number>.txt"
    return next((f"{log.path}: {log.crash}" for log in logs if log.crash), None)
