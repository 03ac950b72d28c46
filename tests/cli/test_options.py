"""Options of commands that report findings: what is shown, and what fails the command."""

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mlperf_pkg.cli import options as shared
from mlperf_pkg.cli.group import Command
from mlperf_pkg.findings import Finding, Severity, Waiver
from mlperf_pkg.render import FORMATS, View
from tests.helpers.program import call
from tests.helpers.reports import finding, report
from tests.helpers.trees import SYSTEM, remove, write_code, write_submission, write_system
from tests.helpers.workspaces import POD16, RESNET, lay, numbered

ERROR = finding()
WARNING = finding(severity=Severity.WARNING)
NOTE = finding(severity=Severity.NOTE)
WAIVED = finding(waiver=Waiver("agreed", "Jane", "2026-12-31"))


def run(made: list[Finding], *options: str) -> tuple[int, str]:
    """Return the exit status and the output of a command that reports findings."""

    @click.group()
    @click.pass_context
    def program(ctx: click.Context) -> None:
        ctx.params["quiet"] = False

    @program.command(cls=Command)
    @shared.shown
    @shared.failing
    def command(*, showing: shared.Showing, status: shared.Status) -> None:
        checked = report(findings=made)
        click.echo(FORMATS["text"](checked, showing(View(80))), nl=False)
        click.get_current_context().exit(status(checked))

    result = CliRunner().invoke(program, ["command", *options])
    return result.exit_code, result.output


@pytest.mark.parametrize("options", [(), ("--quiet", "--show", "errors")])
@pytest.mark.parametrize(
    ("one", "statuses"),
    [
        (NOTE, [0, 0, 1]),
        (WARNING, [0, 1, 1]),
        (ERROR, [1, 1, 1]),
        (WAIVED, [0] * 3),
    ],
)
def test_exit_statuses(options: tuple[str, ...], one: Finding, statuses: list[int]) -> None:
    """By default (errors), of warnings, of notes."""
    fail_on = ((), ("--fail-on", "warning"), ("--fail-on", "note"))
    assert [run([one], *options, *more)[0] for more in fail_on] == statuses


@pytest.mark.parametrize(
    ("options", "severities"),
    [
        ("", "Errors Warnings"),
        ("--show errors", "Errors"),
        ("--show statistics", "Errors Warnings Notes"),
        ("-q --show statistics", ""),
    ],
)
def test_what_is_shown(options: str, severities: str) -> None:
    lines = run([ERROR, WARNING, NOTE], *options.split())[1].splitlines()
    shown = [line for line in lines if line in {"Errors", "Warnings", "Notes"}]
    assert shown == severities.split()
    assert any(line.startswith("official: ") for line in lines)


# ---- the commands that have them ----------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A submission without an error: its code is missing."""
    return write_submission(tmp_path / "Graphcore")


def packed(tree: Path) -> Path:
    write_code(tree)
    (tree / "benchmarks/resnet/setup.sh").unlink()
    assert call("pack", tree).exit_code == 0
    return tree.with_name("Graphcore.tar.gz")


def described(tree: Path) -> Path:
    return write_system(tree / "systems", accelerators_per_node="eight")


@pytest.mark.parametrize(
    ("command", "path"),
    [(("check",), Path), (("verify",), packed), (("system", "check"), described)],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_commands(tree: Path, command: tuple[str, ...], path: Callable[[Path], Path]) -> None:
    target = path(tree)
    every = ((), ("-q",), ("-q", "--fail-on", "warning"))
    loud, quiet, strict = (call(*command, target, *options) for options in every)
    assert (loud.exit_code, quiet.exit_code, strict.exit_code) == (0, 0, 1)
    assert "Warnings\n" in loud.stdout
    assert [line[:10] for line in quiet.stdout.splitlines()] == ["official: ", "rules:    "]
    assert quiet.stdout == strict.stdout


# ---- what was not checked -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("removed", "options", "reason"),
    [
        pytest.param(
            [],
            "--round 2.0",
            r"mlperf-logging \S+ does not check benchmarks that are not in round 2\.0",
            id="no benchmark of the round",
        ),
        pytest.param(
            [f"results/{SYSTEM}"], "--round 2.0", "there is no result set", id="no result set"
        ),
        pytest.param(
            [f"results/{SYSTEM}", f"systems/{SYSTEM}.json"],
            "",
            "neither a log nor the name of a folder names the round",
            id="nothing",
        ),
    ],
)
def test_what_was_not_checked_never_passes(
    removed: list[str], options: str, reason: str, tree: Path
) -> None:
    of_system = tree / "results" / SYSTEM
    (of_system / "resnet").rename(of_system / "chess")
    for path in removed:
        remove(tree / path)
    words = " ".join(call("check", tree, *options.split(), "-q").stdout.split())
    assert re.match(f"official: not checked, as {reason} rules: FAIL, ", words)


# ---- logs that cannot be read -------------------------------------------------------------

UTF_16 = "is UTF-16 text; expected UTF-8 text (convert it with iconv -f UTF-16 -t UTF-8)"


@pytest.mark.parametrize(
    "command",
    [
        *("check logs", "score logs", "select logs", "report logs", "export logs -o out.csv"),
        *("compare logs", "diff logs logs/1.log", "rcp check logs"),
        *("watch logs/0.log --timeout 0.001 --interval 0.05", "build .", "init ."),
    ],
)
def test_utf_16_is_named_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    encoding = "utf-16-be" if command == "check logs" else "utf-16-le"
    logs = ["\ufeff".encode(encoding) + RESNET[0].decode().encode(encoding), *RESNET[1:]]
    monkeypatch.chdir(lay(tmp_path, POD16, numbered(logs, "logs/{}.log")))
    output = " ".join(call(*command.split()).output.split())
    assert f"the log {UTF_16}" in output
    assert "Traceback" not in output
