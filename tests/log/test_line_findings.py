"""What is wrong with a damaged line, in words, and the command that repairs the file."""

import io
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap

import pytest

from mlperf_pkg.findings import Finding, folded
from mlperf_pkg.log.reader import LogReader
from tests.helpers.logs import good_log, run_of

GOOD = good_log("bert")
LINES = GOOD.decode().splitlines()
AT = 20  # a line that is damaged, from 0
MARKER = ":::MLLOG "


def findings_of(log: bytes) -> list[Finding]:
    findings: list[Finding] = []
    for _ in LogReader(io.BytesIO(log), "logs/run 1.log", findings.append):
        pass
    return folded(findings)


def with_line(text: str, at: int = AT) -> bytes:
    """The log with another text in place of a line."""
    return "\n".join([*LINES[:at], text, *LINES[at + 1 :], ""]).encode()


def each(change: Callable[[str], str]) -> bytes:
    """The log with a change to every line."""
    return "".join(f"{change(line)}\n" for line in LINES).encode()


def json_file(line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-01-01T00:00:00Z"})


def fluentd(line: str) -> str:
    return json.dumps({"message": line, "host": "node1"})


def python_dict(line: str) -> str:
    head, marker, record = line.partition(MARKER)
    return head + marker + repr(json.loads(record))


def wrapped(width: int) -> Callable[[str], str]:
    return lambda line: "\n".join(
        line[start : start + width] for start in range(0, len(line), width)
    )


def between_words(line: str) -> str:
    """As a console wraps: at a space, which is left out."""
    return "\n".join(wrap(line, 80))


LINE = LINES[AT]
HALF = len(LINE) // 2

# the kind of damage, the log, the code, how the message begins
DAMAGED = [
    ("torn", with_line(f"{LINE[:HALF]}1: step 7\n{LINE[HALF:]}"), "LOG101", "the record is torn: "),
    ("a part is lost", with_line(LINE[:HALF]), "LOG101", "the record is torn: "),
    ("torn at a colon", with_line(LINE[: LINE.index("value") + 7]), "LOG101", "the record is torn"),
    ("a warning inside", with_line(LINE.replace('"value"', '"W: low "value"')), "LOG101", "this "),
    ("bytes lost inside", with_line(LINE.replace('", "value": ', "")), "LOG101", "this record"),
    ("json-file", each(json_file), "LOG101", "the record is inside a JSON string, as docker's"),
    ("fluentd", each(fluentd), "LOG101", "the record is inside a JSON string, as docker's"),
    ("Python's repr", each(python_dict), "LOG101", "the record is printed as a Python dict: '{'"),
    ("wrapped at 80", each(wrapped(80)), "LOG101", "the record is wrapped over several lines: it"),
    ("wrapped at words", each(between_words), "LOG101", "the record is wrapped over several lines"),
    ("text after", with_line(f"{LINE} done"), "LOG103", 'text follows the record "'),
    ("a bar after", each(lambda line: f"{line}  10%|#   |"), "LOG103", 'text follows the record "'),
    ("a colour after", each(lambda line: f"{line}\x1b[0m"), "LOG103", 'text follows the record "'),
    ("bytes printed", each(lambda line: f"b'{line}\\n'"), "LOG103", 'text follows the record "'),
    ("two on a line", with_line(f"{LINE}{LINES[AT + 1]}", AT), "LOG104", "several records are on"),
    ("torn by a record", with_line(LINE[:30] + LINES[AT + 1]), "LOG104", "several records are on"),
    ("no space", each(lambda line: line.replace("G {", "G{")), "LOG108", "no space follows the"),
    ("a tab", each(lambda line: line.replace("G {", "G\t{")), "LOG108", "no space follows the"),
    ("other case", each(lambda line: line.replace("MLLOG", "mllog")), "LOG108", "the marker is ':"),
    ("byte lost", with_line(LINE.replace(":::M", "u::M")), "LOG108", "the marker is 'u::MLLOG'"),
    ("colon lost", with_line(LINE.replace(":::M", "::M")), "LOG108", "the marker is '::MLLOG'"),
    ("no marker", with_line(LINE.replace(MARKER, "")), "LOG108", "there is no marker before"),
    ("round 0.6", each(lambda line: f":::MLL 12.5 {line[9:]}"), "LOG108", "the marker ':::MLL"),
    ("0.5", each(lambda _: ":::MLPv0.5.0 resnet 12.5 (a.py:1) x"), "LOG108", "the marker ':"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("log", "code", "message"), [d[1:] for d in DAMAGED], ids=[d[0] for d in DAMAGED]
)
def test_damage_has_a_name(log: bytes, code: str, message: str) -> None:
    """All lines with the same damage are one finding, with a short text around the first."""
    (finding,) = findings_of(log)
    assert finding.code == code
    assert finding.text.startswith(message)
    assert len(finding.text) < 240
    assert finding.line in (1, AT + 1)


REPAIRED = [d[:2] for d in DAMAGED if d[0] in {
    "json-file", "fluentd", "Python's repr", "wrapped at 80", "text after", "a bar after",
    "a colour after", "bytes printed", "no space", "a tab", "other case", "byte lost", "colon lost",
}]  # fmt: skip


@pytest.mark.parametrize("log", [d[1] for d in REPAIRED], ids=[d[0] for d in REPAIRED])
def test_the_command_repairs_the_file(log: bytes, tmp_path: Path) -> None:
    """It works as printed, keeps the file, and all records are those of the run."""
    (finding,) = findings_of(log)
    command = (finding.hint or "").partition("in its folder: ")[2]
    if command.startswith("cp ") and " jq " in command and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    file = tmp_path / "run 1.log"
    file.write_bytes(log)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "run 1.log.bak").read_bytes() == log
    assert findings_of(file.read_bytes()) == []
    assert run_of(file.read_bytes(), "1.0") == run_of(GOOD, "1.0")
