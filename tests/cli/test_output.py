"""Width, colours and encoding of output, and the paths in it."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from mlperf_pkg.cli.output import Output, checkout, destinations
from mlperf_pkg.commands.charts import drawing
from mlperf_pkg.render import FORMATS, View
from tests.helpers.program import Terminal, call
from tests.helpers.trees import simulated, write_set, write_submission
from tests.helpers.workspaces import bytes_below


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"COLUMNS": "100", "NO_COLOR": "", "FORCE_COLOR": "", "TERM": "xterm"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("stream", "variables", "colored"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "0"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "0", "TERM": "dumb"}, True),
    ],
)
def test_colors(
    stream: Any, variables: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        for name, value in variables.items():
            patch.setenv(name, value)
        assert Output().view() == View(100, color=colored, wraps=stream.isatty())
        assert Output(Path("a file"), verbose=True).view() == View(80, verbose=True)
        Output().write("\x1b[1mbold\x1b[0m")
    assert ("\x1b" in stream.getvalue()) == colored


@pytest.mark.parametrize(
    ("columns", "width"), [("120", 120), ("0", 80), ("wide", 80), ("-1", 80), ("9" * 5000, 80)]
)
def test_the_width_is_that_of_columns(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert Output().view().width == width


@pytest.mark.parametrize(
    ("encoding", "written"), [("utf-8", "größer 日"), ("latin-1", "größer \\u65e5")]
)
def test_unencodable_characters_are_escaped(
    monkeypatch: pytest.MonkeyPatch, encoding: str, written: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    Output().write("größer 日")
    stream.seek(0)
    assert stream.read() == written


@pytest.mark.parametrize(
    ("inputs", "path"),
    [(["logs"], "logs/a"), (["../sub/logs/"], "logs/a"), ([".", "logs"], "a")],
)
@pytest.mark.parametrize(("folder", "top"), [("unused", ""), (".git", "sub/")])
def test_paths_start_from_the_repository(
    folder: str,
    top: str,
    inputs: list[str],
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = tmp_path / "sub" / "logs"
    logs.mkdir(parents=True)
    (tmp_path / folder).mkdir()
    monkeypatch.chdir(logs.parent)
    assert checkout(inputs).path("a") == f"{top}{path}"


TABLE = [
    ([], None, ["text -"]),
    ([], "json", ["json -"]),
    (["a.txt"], "json", ["json a.txt"]),
    (["a.JSON"], None, ["json a.JSON"]),
    (
        ["a.sarif", "b.xml", "c.md", "d.csv"],
        None,
        ["sarif a.sarif", "junit b.xml", "markdown c.md", "csv d.csv"],
    ),
    (["gitlab:a.json"], "text", ["gitlab a.json"]),
    (["github:-", "a", "junit:b"], "csv", ["github -", "csv a", "junit b"]),
    (["json:a:b"], None, ["json a:b"]),
]


@pytest.mark.parametrize(("outputs", "format_", "expected"), TABLE)
def test_destinations(outputs: list[str], format_: str | None, expected: list[str]) -> None:
    outcome = destinations(outputs, format_, tuple(FORMATS))
    assert [f"{name} {file or '-'}" for name, file in outcome] == expected


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (
            ["jsn:a"],
            r"unknown format 'jsn'; did you mean json\? \(to write to a file of this name,",
        ),
        (["json:"], "no file name"),
        (["a", "json:./a"], "-o json:./a is given twice"),
        (["-", "json:-"], "-o json:- is given twice"),
    ],
)
def test_refused(outputs: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        destinations(outputs, None, tuple(FORMATS))


# ---- what is there already ----------------------------------------------------------------

WRITE = (
    "check v2.0 -o {}",
    "check v2.0 --log-output {}",
    "score v2.0 --tables {}",
    "select v2.0 -o {}",
    "report v2.0 -o {}",
    "report v2.0 --draw times -o {}",
    "report v2.0 --site {}",
    "results v2.0 -o {}",
    "diff v2.0 logs -o {}",
    "compare v2.0 -o {}",
    "system check v2.0/ACME/systems -o {}",
)


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A round and a folder of logs, in the current folder; charts are not drawn, which takes
    seconds.
    """
    monkeypatch.setattr(drawing, "runtime", lambda: "")
    monkeypatch.setitem(drawing.PICTURES, "svg", lambda chart: b"<svg/>")
    monkeypatch.chdir(tmp_path)
    write_submission(tmp_path / "v2.0" / "ACME")
    write_set(tmp_path / "logs", simulated())
    return tmp_path


@pytest.mark.parametrize("line", WRITE)
def test_no_command_writes_into_its_input(line: str, inputs: Path) -> None:
    before = bytes_below(inputs)
    result = call(*line.format("v2.0/ACME/systems/x").split(), "--force")
    assert (result.exit_code, bytes_below(inputs)) == (2, before), line
    assert "v2.0" in result.stderr, line


PRICES = "system,price_usd\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("check logs --config own.yaml -o json:own.yaml", "own.yaml: refusing to overwrite"),
        ("check logs --log-output mlperf-pkg.yaml", "mlperf-pkg.yaml: refusing to overwrite"),
        ("check v2.0 --objections o.yaml -o o.yaml", "o.yaml: refusing to overwrite an input"),
        ("review objections o.yaml -o json:o.yaml", "o.yaml: refusing to overwrite an input"),
        ("compare v2.0 --prices p.csv -o json:p.csv", "p.csv: refusing to overwrite an input"),
        ("report --history --from r.csv -o r.csv", "r.csv: refusing to overwrite an input"),
        ("check logs --log-output l -o text:l", "l: is named for two outputs"),
        ("check logs --log-output l -o text:../{here}/l", "/l: is named for two outputs"),
        ("score v2.0 --tables t --private-ids i -o i", "i: is named for two outputs"),
        ("score v2.0 --tables t --private-ids t/summary.json", "summary.json: is named for two"),
        ("score v2.0 --tables t -o t/summary.csv", "summary.csv: is named for two outputs"),
        ("verify a.tar.gz --extract e -o e", "e: is named for two outputs"),
        ("results v2.0 -o s --private-ids s", "s: is named for two outputs"),
    ],
)
def test_no_output_is_another_file_of_the_command(line: str, message: str, inputs: Path) -> None:
    for name in ("mlperf-pkg.yaml", "own.yaml"):
        Path(name).write_text("usage: training\n", "utf-8")
    Path("p.csv").write_text(PRICES, "utf-8")
    Path("r.csv").touch()
    Path("a.tar.gz").touch()
    Path("t").mkdir()
    Path("o.yaml").write_text("objections: []\n", "utf-8")
    before = bytes_below(inputs)
    result = call(*line.format(here=inputs.name).split(), "--force")
    if result.exit_code == 2 and "No such option" in result.stderr:
        result = call(*line.format(here=inputs.name).split())
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert bytes_below(inputs) == before


@pytest.mark.parametrize(("number", "line"), list(enumerate(WRITE)))
def test_every_command_overwrites_only_by_force(number: int, line: str, inputs: Path) -> None:
    words = line.format(f"out/{number}").split()
    (inputs / "out").mkdir(exist_ok=True)
    assert call(*words).exit_code in (0, 1), line
    if (inputs / words[-1]).is_dir():
        (inputs / words[-1] / "CNAME").write_text("of somebody else")
    before = bytes_below(inputs)
    if "--log-output" not in words:  # a log of what was done last
        again = call(*words)
        assert (again.exit_code, bytes_below(inputs)) == (2, before), line
        assert "exists already" in again.stderr, line
    assert call(*words, "--force").exit_code in (0, 1), line
    assert bytes_below(inputs).keys() == before.keys(), line


def test_two_outputs_may_be_one_device(inputs: Path) -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = call("check", "logs", "-o", "pipe", "--log-output", "pipe")
        assert (result.exit_code, result.stderr) == (0, "")
        assert b"rules verdict: pass" in os.read(reader, 1 << 16)
    finally:
        os.close(reader)


def test_a_configuration_that_does_not_exist_is_not_an_input(inputs: Path) -> None:
    assert call("check", "logs", "-o", "mlperf-pkg.yaml").exit_code == 0
