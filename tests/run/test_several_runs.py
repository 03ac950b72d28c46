"""Files of several runs, and others that are not a log of one run: one finding each."""

import gzip
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.findings import Basis, Verdict
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.streams import Compression
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.helpers.logs import edited, good_log, joined, records, run_of, without
from tests.helpers.stored import compared

LOGS = [good_log(seed=seed) for seed in range(5)]
LINES = LOGS[0].count(b"\n")
CUT_OFF = "the log cannot be read: the gzip data is cut off"


def findings(run: Run) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.line) for finding in run.findings]


def test_five_runs() -> None:
    run = compared(run_of(b"".join(LOGS)))
    (finding,) = run.findings
    lines = [sum(log.count(b"\n") for log in LOGS[:number]) + 1 for number in range(1, 5)]
    assert finding.text == (
        "the file has 5 runs; expected 1 run in a file (split the file before lines"
        f" {', '.join(map(str, lines))})"
    )
    assert (finding.code, finding.line, finding.basis) == ("LOG111", lines[0], Basis.BOTH)
    assert (run.verdicts.official, run.verdicts.rules) == (Verdict.FAIL, Verdict.FAIL)


def test_a_run_that_was_started_again() -> None:
    """The first was killed before its end."""
    killed = joined(records(LOGS[0])[:-40])
    run = compared(run_of(killed + LOGS[1]))
    leading = next(finding for finding in run.findings if finding.code == "LOG111")
    assert leading.text.endswith(f"(split the file before line {leading.line})")
    assert leading.line == killed.count(b"\n") + 1


def test_the_seeds_of_several_runs_are_not_several_seeds_of_one(tmp_path: Path) -> None:
    logs = [good_log("llama2_70b_lora", round_="5.1", seed=seed) for seed in range(2)]
    log = tmp_path / "run.log"
    log.write_bytes(b"".join(logs))
    codes = [
        finding.code
        for finding in compared(check([str(log)], Options(round="5.1"))).report.findings
    ]
    assert (codes.count("LOG111"), "SEED105" in codes) == (1, False)


def test_copies_of_one_run_pass_officially() -> None:
    run = compared(run_of(LOGS[0] * 2))
    assert ("LOG111", LINES + 1) in findings(run)
    assert run.verdicts.rules is Verdict.FAIL


def test_other_findings_stay() -> None:
    wrong = edited(LOGS[1], "submission_division", value="shut")
    codes = {code for code, _ in findings(compared(run_of(LOGS[0] + wrong)))}
    assert codes == {"LOG111", *(code for code, _ in findings(compared(run_of(wrong))))}


@pytest.mark.parametrize(
    "log",
    [
        without(LOGS[0], "run_stop"),
        b"".join(line * 8 for line in LOGS[0].splitlines(keepends=True)),  # of eight ranks
        joined([*records(LOGS[0]), *(r for r in records(LOGS[0]) if r["key"] == "run_start")]),
    ],
    ids=["cut off", "ranks", "one more run_start"],
)
def test_one_run(log: bytes) -> None:
    assert "LOG111" not in {code for code, _ in findings(compared(run_of(log)))}


@pytest.mark.parametrize(
    ("log", "code", "text"),
    [
        (b"", "LOG110", "this is not an MLPerf log, as no record in it can be read"),
        (
            LOGS[0].decode().encode("utf-16"),
            "LOG112",
            "the log is UTF-16 text; expected UTF-8 text"
            " (convert it with iconv -f UTF-16 -t UTF-8)",
        ),
        (
            gzip.compress(LOGS[0], mtime=0),
            "LOG112",
            "the log is gzip data; expected UTF-8 text (decompress it with gzip -d)",
        ),
        (
            b"PK\x03\x04" + bytes(99),
            "LOG112",
            "the log is an archive; expected UTF-8 text (unpack it)",
        ),
    ],
    ids=["empty", "UTF-16", "gzip", "zip"],
)
def test_a_file_without_records(log: bytes, code: str, text: str) -> None:
    run = compared(run_of(log))
    assert [(finding.code, finding.text) for finding in run.findings] == [(code, text)]
    assert (run.verdicts.official, run.verdicts.rules) == (Verdict.FAIL, Verdict.FAIL)


def test_utf_16_with_records_is_judged_as_officially() -> None:
    """The records after the two bytes count."""
    assert "LOG112" not in {code for code, _ in findings(compared(run_of(b"\xff\xfe" + LOGS[0])))}


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        (gzip.compress(LOGS[0], mtime=0), []),
        (gzip.compress(LOGS[0], mtime=0)[:-1000], [CUT_OFF]),
        (b"\x1f\x8b\x08", [CUT_OFF]),
    ],
    ids=["whole", "cut off", "its beginning"],
)
def test_compressed_logs(packed: bytes, expected: list[str]) -> None:
    source = Source("log.gz", packed, Compression.GZIP)
    run = compared(read_run(LogFile(source, round="2.0")))
    assert [finding.text for finding in run.findings] == expected
    assert run.verdicts.official is Verdict.of(bool(expected))


@pytest.mark.parametrize(
    ("lost", "ending"),
    [(2, "RUN140"), (30, "RUN140"), (len(LOGS[0]) // 2, "RUN130")],
    ids=["end", "run_stop", "half"],
)
def test_a_log_that_is_cut_off(lost: int, ending: str) -> None:
    """What the rest may have had is not reported."""
    log = LOGS[0][:-lost]
    run = compared(run_of(log))
    cut = next(finding for finding in run.findings if finding.code == "LOG101")
    assert cut.text.startswith("the log ends inside this record, after ")
    assert cut.line == log.count(b"\n") + 1
    assert {code for code, _ in findings(run)} == {"LOG101", ending}
    assert (run.verdicts.official, run.verdicts.rules) == (Verdict.FAIL, Verdict.FAIL)
