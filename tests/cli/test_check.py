"""``mlperf-pkg check``: its arguments, what it writes, and its exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.render import FORMATS
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set, write_submission


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_set(tmp_path / "logs", simulated())


def spoil(folder: Path) -> None:
    """Take the seed, which the rules want logged, from one log and the benchmark from another."""
    for number, key in ((0, b'"seed"'), (1, b'"submission_benchmark"')):
        log = folder / f"result_{number}.txt"
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(line for line in lines if key not in line))


def test_clean(folder: Path) -> None:
    result = call("check", folder)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Result sets")
    assert "official: pass, mlperf-logging" in result.stdout


def test_errors(folder: Path) -> None:
    spoil(folder)
    result = call("check", folder)
    assert result.exit_code == 1
    assert (
        "Errors\n  result_1.txt: submission_benchmark is not logged; expected once  RUN119\n"
        in result.stdout
    )


def test_a_submission(tmp_path: Path) -> None:
    result = call("check", write_submission(tmp_path))
    assert result.exit_code == 0
    assert "bow-pod16 (closed)\n  resnet      5/5   19.5" in result.stdout


def test_a_single_log(folder: Path) -> None:
    result = call("check", folder / "result_0.txt")
    assert result.exit_code == 0
    assert "  resnet      1/5        -  too few runs" in result.stdout


@pytest.mark.parametrize("format_", FORMATS)
def test_formats(folder: Path, format_: str) -> None:
    result = call("check", folder, "--format", format_)
    assert result.exit_code == 0
    assert result.stdout.endswith("\n") == (format_ != "concise")  # which has nothing but findings
    if format_ == "json":
        assert json.loads(result.stdout)["format"] == "mlperf-pkg/report/3"


def test_verbose_shows_more(folder: Path) -> None:
    assert len(call("check", folder, "-v").stdout) >= len(call("check", folder).stdout)


@pytest.mark.parametrize("round_", ["2.0", "v2.0"])
def test_a_round_as_given(folder: Path, round_: str) -> None:
    assert "round 2.0: as given\n" in call("check", folder, "--round", round_).stdout


def test_an_unknown_round(folder: Path) -> None:
    result = call("check", folder, "--round", "2.00")
    assert result.exit_code == 2
    assert "no round '2.00'" in result.stderr
    assert "2.0" in result.stderr


def test_without_a_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert call("check").exit_code == 0
    monkeypatch.chdir(folder)
    result = call("check")
    assert result.exit_code == 2
    assert "no PATH given, and there is no folder logs/ here" in result.stderr


def test_without_a_log(tmp_path: Path) -> None:
    result = call("check", tmp_path)
    assert result.exit_code == 2
    assert "no MLPerf log here" in result.stderr


def test_output_is_a_file(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    result = call("check", folder, "-o", file)
    assert (result.exit_code, result.output) == (0, "")
    assert file.read_text("utf-8") == call("check", folder).stdout
    again = call("check", folder, "-o", file, "--format", "json")
    assert again.exit_code == 2
    assert "report.txt: exists already; --force overwrites it" in again.stderr
    assert call("check", folder, "-o", file, "--format", "json", "--force").exit_code == 0
    assert json.loads(file.read_text("utf-8"))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("logs/report.txt", "refusing to write inside an input folder"),
        ("logs/result_0.txt", "refusing to write inside an input folder"),
        ("none/report.txt", "/none does not exist"),
        (".", "is a folder"),
    ],
)
def test_output_refused(folder: Path, tmp_path: Path, file: str, message: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    result = call("check", folder, "--force", "-o", tmp_path / file)
    assert result.exit_code == 2
    assert message in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_log_is_never_overwritten(folder: Path) -> None:
    result = call("check", folder / "result_0.txt", "--force", "-o", folder / "result_0.txt")
    assert result.exit_code == 2
    assert (folder / "result_0.txt").read_bytes() == simulated()[0]


# ---- waivers, --select and --ignore -------------------------------------------------------

WAIVER = """\
waivers:
  - {code: RUN119, path: result_1.txt, reason: a reason, approved_by: Jane, until: 9999-12-31}
"""


@pytest.mark.parametrize("format_", ["text", "markdown", "json"])
def test_every_report_shows_a_waived_finding(
    folder: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    monkeypatch.chdir(folder.parent)
    spoil(folder)
    Path("mlperf-pkg.yaml").write_text(WAIVER)
    result = call("check", "--format", format_)
    assert result.exit_code == 1
    assert all(text in result.stdout for text in ("RUN119", "Jane", "a reason", "9999-12-31"))


def test_a_waiver_of_what_only_the_rules_forbid(folder: Path, tmp_path: Path) -> None:
    log = (folder / "result_0.txt").read_bytes()
    (folder / "result_1.txt").write_bytes(re.sub(rb'("key": "seed", "value": )', rb"\g<1>9", log))
    (tmp_path / "waivers.yaml").write_text(WAIVER.replace("RUN119", "SET112"))
    assert call("check", folder).exit_code == 1
    result = call("check", folder, "--config", tmp_path / "waivers.yaml")
    assert result.exit_code == 0
    assert "official: pass" in result.stdout
    assert re.search(r"0 errors, .*, 1 waived", result.stdout)


def test_a_waiver_does_not_help_where_the_official_checker_rejects(
    folder: Path, tmp_path: Path
) -> None:
    spoil(folder)
    (tmp_path / "waivers.yaml").write_text(WAIVER)
    result = call("check", folder, "--partial", "--config", tmp_path / "waivers.yaml")
    assert result.exit_code == 1
    assert "official: FAIL" in result.stdout
    assert "1 waived, which the official checker ignores" in result.stdout.replace("\n", " ")
    assert (
        "Waived\n  result_1.txt: submission_benchmark is not logged; expected once  RUN119\n"
        "    waived by Jane until 9999-12-31: a reason\n"
    ) in result.stdout
    assert "rules:    pass" in result.stdout
    assert re.search(r"0 errors, .*, [0-9]+ waived", result.stdout)


def test_a_configuration_in_the_input_is_ignored(folder: Path) -> None:
    spoil(folder)
    (folder / "mlperf-pkg.yaml").write_text(WAIVER)
    assert "waived" not in call("check", folder).stdout


@pytest.mark.parametrize(
    ("arguments", "is_read"),
    [
        (("logs",), True),
        ((".",), False),
        (("logs", "."), False),
        ((".", "--config", "mlperf-pkg.yaml"), True),
    ],
)
def test_the_configuration_here_is_read_unless_it_is_inside_the_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], is_read: bool
) -> None:
    monkeypatch.chdir(folder.parent)
    spoil(folder)
    Path("mlperf-pkg.yaml").write_text(WAIVER)
    result = call("check", *arguments)
    note = "note: mlperf-pkg.yaml is inside the input .: its waivers are not read; to read"
    assert (note in result.stderr) is not is_read
    assert ("waived by Jane" in result.stdout) is is_read
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("options", "status", "prefixes"),
    [
        (("--select", "RUN119"), 1, {"RUN119"}),
        (("--select", "run11"), 1, {"RUN119"}),
        (("--select", "LOG"), 0, set()),
        (("--select", "RUN", "--ignore", "RUN1"), 0, set()),
        (("--ignore", "RUN", "--ignore", "SEED,SET,RN"), 0, set()),
    ],
)
def test_select_and_ignore(
    folder: Path, options: tuple[str, ...], status: int, prefixes: set[str]
) -> None:
    spoil(folder)
    result = call("check", folder, *options)
    errors = result.stdout.partition("Errors\n")[2].partition("\n\n")[0]
    codes = re.findall(r"  ([A-Z]+[0-9]+)$", errors, re.MULTILINE)
    assert all(any(code.startswith(prefix) for prefix in prefixes) for code in codes)
    assert (result.exit_code, bool(codes)) == (status, bool(prefixes))
    assert "hidden by --select or --ignore" in result.stdout
    assert "rules:    FAIL" in result.stdout


def test_an_unknown_prefix_is_refused(folder: Path) -> None:
    result = call("check", folder, "--select", "SEET")
    assert result.exit_code == 2
    assert "no code begins with 'SEET': did you mean" in result.stderr


# ---- formats and several outputs ----------------------------------------------------------


def test_several_outputs_of_one_check(folder: Path, tmp_path: Path) -> None:
    spoil(folder)
    prefixes = {"report.json": "", "report.sarif": "", "report.xml": "", "x": "github:"}
    prefixes["quality.json"] = "gitlab:"
    outputs = ["-", *(f"{prefix}{tmp_path / name}" for name, prefix in prefixes.items())]
    result = call("check", folder, *(word for output in outputs for word in ("-o", output)))
    assert (result.exit_code, result.stdout) == (1, call("check", folder).stdout)
    files = {"report.json": "json", "report.sarif": "sarif", "report.xml": "junit"}
    files |= {"quality.json": "gitlab", "x": "github"}
    for name, format_ in files.items():
        alone = call("check", folder, "--format", format_).stdout
        assert (tmp_path / name).read_text("utf-8") == alone


def test_one_output_refused_refuses_all(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("old")
    before = sorted(tmp_path.rglob("*"))
    result = call("check", folder, "-o", tmp_path / "a.json", "-o", tmp_path / "b.json", "-o", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "b.json: exists already; --force overwrites it" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "b.json").read_text() == "old"


@pytest.mark.parametrize("format_", ["sarif", "junit", "github", "gitlab", "concise"])
def test_paths_lead_to_the_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    spoil(folder)
    monkeypatch.chdir(tmp_path)
    for paths in (("logs",), ("logs/result_1.txt",), ("logs/result_1.txt", "logs/result_2.txt")):
        output = call("check", *paths, "--format", format_).stdout
        assert re.search(r"(?m)(?:^|[=\" ])logs/result_1\.txt\b", output)


@pytest.mark.parametrize("format_", ["sarif", "junit", "github", "gitlab", "concise"])
def test_the_same_bytes_again(folder: Path, format_: str) -> None:
    spoil(folder)
    first, again = (call("check", folder, "--format", format_).stdout for _ in range(2))
    assert first == again


def test_a_command_of_one_file(tmp_path: Path) -> None:
    @click.command()
    @options.written(FORMATS)
    def single(*, format_: str, target: Output) -> None:
        target.write(format_)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(single, arguments)

    assert run().stdout == "text"
    assert run("-o", str(tmp_path / "a.xml")).exit_code == 0
    assert (tmp_path / "a.xml").read_text() == "junit"
    assert "give -o once" in run("-o", "a", "-o", "b").stderr
