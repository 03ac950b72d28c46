"""Damaged logs: the rules judge all records that can be read with certainty."""

import pytest

from mlperf_pkg.findings import Severity, Verdict
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run
from tests.helpers.logs import good_log, line_of, run_of

GOOD = good_log("bert")
LINES = GOOD.splitlines(keepends=True)
EVALUATION = line_of(GOOD, "eval_accuracy", 1) - 1
SEED = line_of(GOOD, "seed") - 1
STOP = line_of(GOOD, "run_stop") - 1
WITHOUT_SPACE = LINES[STOP].replace(b"G {", b"G{")
STOPLESS = ["RUN109 official", "LOG103 official"]
CACHE = line_of(GOOD, "cache_clear") - 1
NAME = line_of(GOOD, "submission_benchmark") - 1


def changed(at: int, old: bytes, new: bytes) -> bytes:
    """The log with another text in one of its lines."""
    return b"".join([*LINES[:at], LINES[at].replace(old, new), *LINES[at + 1 :]])


def errors_of(log: bytes, severity: Severity = Severity.ERROR) -> list[str]:
    findings = run_of(log, "1.0").findings
    return [f"{f.code} {f.basis.value}" for f in findings if f.severity is severity]


# what is damaged, the log, the basis of each error by its code
READ = [
    ("marker of an evaluation", changed(EVALUATION, b":::M", b"u::M"), []),
    ("marker of the stop", changed(STOP, b"MLLOG {", b"MLLOG{"), ["RUN109 official"]),
    ("marker of the benchmark", changed(NAME, b":::MLLOG", b":::mllog"), ["RUN119 official"]),
    ("text after the stop", changed(STOP, b"\n", b" done\n"), STOPLESS),
    ("text after an evaluation", changed(EVALUATION, b"}\n", b"}\x1b[0m\n"), ["LOG103 official"]),
    ("text before the stop", changed(STOP, b":::", b"0: step 7 :::"), []),
    ("two on a line", changed(CACHE, b"\n", b""), ["RUN105 official"]),
    ("text between two", changed(CACHE, b"\n", b" 10% |# "), ["RUN105 official"]),
    ("CRLF and text after", changed(STOP, b"\n", b" x\r\n"), STOPLESS),
    ("an equal record is intact", changed(STOP, b"\n", b"\n" + WITHOUT_SPACE), []),
    ("a seed, torn", changed(SEED, b'"value"', b'"va\n'), ["LOG101 both"]),
]  # fmt: skip


@pytest.mark.parametrize(("log", "errors"), [r[1:] for r in READ], ids=[r[0] for r in READ])
def test_the_rules_read_what_is_certain(log: bytes, errors: list[str]) -> None:
    run = run_of(log, "1.0")
    good = run_of(GOOD, "1.0")
    assert errors_of(log) == errors
    assert (run.minutes, run.status, run.benchmark) == (good.minutes, good.status, good.benchmark)
    assert run.fingerprint == good.fingerprint
    assert run.verdicts.rules is Verdict.of("LOG101 both" in errors)
    assert run.verdicts.official is Verdict.of(bool(errors))


def test_findings_keep_their_lines() -> None:
    log = changed(STOP - 1, b"\n", b"").replace(b'"status": "success"', b'"status": "aborted"')
    (finding,) = (f for f in run_of(log, "1.0").findings if f.code == "RUN140")
    assert finding.line == STOP


def of_processes(count: int, skew_ms: int = 0) -> bytes:
    """The log of a run of which each record is written by several processes, one after another."""
    lines = []
    for line in LINES:
        start = line.index(b'"time_ms": ') + len(b'"time_ms": ')
        end = line.index(b",", start)
        for process in range(count):
            time_ms = int(line[start:end]) + process * skew_ms
            lines.append(line[:start] + str(time_ms).encode() + line[end:])
    return b"".join(lines)


def of_named_processes() -> bytes:
    """The log of a run of which each record is written by two processes, each as itself."""
    lines = of_processes(2).splitlines(keepends=True)
    lines[1::2] = [line.replace(b'"namespace": ""', b'"namespace": "1"') for line in lines[1::2]]
    return b"".join(lines)


@pytest.mark.parametrize(
    ("log", "errors"),
    [
        (of_processes(2), ["LOG114 rules"]),
        (of_named_processes(), ["LOG114 rules"]),
        (of_processes(8), ["LOG114 rules"]),
        (of_processes(4, skew_ms=100), ["LOG114 rules"]),
        (changed(STOP, b"\n", b"\n" + LINES[STOP]), ["RUN152 rules"]),
    ],
    ids=["two", "two of other names", "eight", "at other times", "one record twice"],
)
def test_processes_that_write_every_record(log: bytes, errors: list[str]) -> None:
    """One sentence; the run is that of one process."""
    run = run_of(log, "1.0")
    assert errors_of(log) == errors
    assert errors_of(log, Severity.WARNING) == errors_of(GOOD, Severity.WARNING)
    assert run.minutes == run_of(GOOD, "1.0").minutes
    assert run.verdicts.official is Verdict.PASS


def test_the_number_of_processes_is_said() -> None:
    (finding,) = (f for f in run_of(of_processes(3), "1.0").findings if f.code == "LOG114")
    assert finding.text == "3 processes write every record; expected one process"
    assert finding.line == 2


@pytest.mark.parametrize(
    ("factor", "unit"),
    [(1e-3, "seconds"), (1e3, "microseconds"), (1e6, "nanoseconds")],
    ids=["s", "us", "ns"],
)
def test_times_in_another_unit(factor: float, unit: str) -> None:
    log = b""
    for line in LINES:
        head, name, rest = line.partition(b'"time_ms": ')
        time_ms, comma, tail = rest.partition(b",")
        log += head + name + str(float(time_ms) * factor).encode() + comma + tail
    (finding,) = (f for f in run_of(log, "1.0").findings if f.code == "LOG115")
    assert f", in {unit}; expected milliseconds since 1970" in finding.text
    assert finding.line == line_of(GOOD, "run_start")


@pytest.mark.parametrize(
    ("value", "name"),
    [(b"NaN", "NaN"), (b"-Infinity", "-Infinity"), (b'{"AP": NaN}', "NaN")],
)
def test_an_evaluation_that_is_not_finite(value: bytes, name: str) -> None:
    _, _, rest = LINES[EVALUATION].partition(b'"value": ')
    log = changed(EVALUATION, rest.partition(b",")[0], value)
    texts = [f.text for f in run_of(log, "1.0").findings if f.code == "RUN168"]
    assert texts == [f"eval_accuracy is {name}; expected a finite number"]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (b"".join(LINES[:STOP]), True),
        (b"".join(LINES[:EVALUATION]), True),
        (GOOD.rstrip(b"\n"), False),
        (b"".join(LINES[:NAME]), False),
    ],
    ids=["before the stop", "in training", "without the last line end", "before the start"],
)
def test_a_log_that_ends_inside_an_open_run(log: bytes, expected: bool) -> None:
    texts = [f.text for f in run_of(log, "1.0").findings if f.severity is Severity.WARNING]
    assert any(text.startswith("the log ends inside a run") for text in texts) is expected


@pytest.mark.parametrize(
    ("key", "target"),
    [("run_stop", "run_start"), ("run_start", "run_stop")],
    ids=["stop before the start", "start after the stop"],
)
def test_times_decide_not_lines(key: str, target: str) -> None:
    """A ``run_stop`` that is logged before ``run_start``, at a later time, ends the run."""
    lines = list(LINES)
    record = lines.pop(line_of(GOOD, key) - 1)
    at = next(i for i, line in enumerate(lines) if f'"key": "{target}"'.encode() in line)
    lines.insert(at + (key == "run_start"), record)
    run = run_of(b"".join(lines), "1.0")
    good = run_of(GOOD, "1.0")
    assert (run.minutes, run.status) == (good.minutes, "success")
    assert {"RUN130", "RUN140"}.isdisjoint(finding.code for finding in run.findings)


def test_lines_of_a_part_of_a_file() -> None:
    """Findings on what is read again name the lines of the file, as does the run."""
    log = changed(STOP - 1, b"\n", b"").replace(b'"status": "success"', b'"status": "aborted"')
    part = Source("all.log, lines 101 to 200", log, lines=(101, 200))
    run = read_run(LogFile(part, "training", "1.0"))
    (finding,) = (f for f in run.findings if f.code == "RUN140")
    assert (finding.line, run.lines, run.file) == (STOP + 100, (101, 200), "all.log")
