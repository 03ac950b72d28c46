"""The command line as a whole: exit statuses, help, mistakes, and how it ends."""

import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from mlperf_pkg import __version__
from mlperf_pkg.cli import main
from tests.helpers.program import call, command_paths, start
from tests.helpers.trees import simulated, write_set

PATHS = list(command_paths(main.cli))


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option: str) -> None:
    result = call(option)
    assert (result.exit_code, result.output) == (0, f"mlperf-pkg {__version__}\n")


@pytest.mark.parametrize(
    ("imports", "statement", "slow"),
    [
        pytest.param(
            "sys",
            "from mlperf_pkg.cli.main import cli; cli(['--version'], standalone_mode=False)",
            "rich numpy yaml msgspec jsonschema",
            id="version",
        ),
        pytest.param(
            "sys, click, msgspec",
            "import mlperf_pkg.cli.check",
            "rich yaml jsonschema multiprocessing csv html shutil signal statistics heapq",
            id="check",
        ),
    ],
)
def test_little_is_imported(imports: str, statement: str, slow: str) -> None:
    code = (
        f"import {imports}; before = set(sys.modules); {statement};"
        f"print(set('{slow}'.split()) & set(sys.modules) - before)"
    )
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert output.splitlines()[-1] == "set()"


_BROKEN = re.compile(r"[\w-]-\n|(?<!\w)'[\w-]+(?: [\w-]+)?\n *[\w-]+'")
"""A name with hyphens, such as that of an option, or a quoted command, over two lines."""


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_no_option_is_broken_over_two_lines(path: tuple[str, ...]) -> None:
    assert _BROKEN.findall(call(*path, "--help").output) == []


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = call(*path, "--help")
    assert result.exit_code == 0
    assert all(len(line) <= 80 for line in result.output.splitlines())
    assert not re.search(r"(?m)^  [a-z-]+  .*\.\.\.$", result.output)  # a sentence that is cut
    words = " ".join(result.output.split())
    assert "Exit status: " in words
    assert f"Examples: mlperf-pkg {' '.join(path)}".rstrip() in words
    assert result.output == call(*path, "-h").output


def test_the_help_has_a_section_for_each_kind_of_user() -> None:
    _, *sections = re.split(r"\n\n(\w[\w ]+):\n", call("--help").output)[2:]
    names = [tuple(re.findall(r"(?m)^  (\S+)", text)) for text in sections[1::2]]
    assert dict(zip(sections[::2], names, strict=True)) == main.SECTIONS


# ---- general options ----------------------------------------------------------------------


def test_general_options_are_described_once() -> None:
    assert {"--jobs", "--usage", "--verbose"} <= set(re.findall(r"--\w+", call("--help").stdout))
    *_, last, names = call("rcp", "check", "--help").stdout.splitlines()
    assert f"{last} {names}" == (
        "General options (mlperf-pkg --help): -j/--jobs, --scheduler, --config, --usage, --rules,"
        " -v/--verbose, --debug"
    )


def test_general_options_stand_before_a_command_or_after_it(folder: Path) -> None:
    after = call("check", folder, "-q", "-j", "1").stdout
    assert after != call("check", folder).stdout
    assert after == call("-q", "-j", "1", "check", folder).stdout
    assert after == call("-j", "1", "check", "-q", folder).stdout
    points = call("rcp", "show", "--usage", "hpc").stdout
    assert points == call("rcp", "--usage", "hpc", "show").stdout
    assert points == call("--usage", "hpc", "rcp", "show").stdout
    help_text = call("review", "compare", "--help").stdout
    assert help_text == call("review", "-j", "1", "compare", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("doctor --usage hpc", "--usage does not apply to 'mlperf-pkg doctor'"),
        ("--usage hpc rules show RUN101", "--usage does not apply to 'mlperf-pkg rules show'"),
        ("check --scheduler tcp://x -j 2 .", "--jobs and --scheduler cannot be used together"),
    ],
)
def test_general_options_that_are_refused(arguments: str, message: str) -> None:
    result = call(*arguments.split())
    assert (result.exit_code, message in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "no such command 'chekc'; did you mean check?"),
        (["check", "--fromat", "json"], "--format"),
        (["check", "--format", "jsn", "."], "; did you mean json?"),
        (["rules", "list", "--benchmark", "brt", "--round", "2.0"], "; did you mean bert?"),
    ],
)
def test_mistyped(arguments: list[str], message: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True)


NO_THREAD = "no thread can be started: the limit of processes is reached (ulimit -u)"


class PanicError(BaseException):
    """What a library in Rust raises."""


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (PermissionError(13, "Denied", "a/b"), 2, "mlperf-pkg: error: a/b: Denied\n"),
        (KeyError("oops"), 2, "mlperf-pkg: error: KeyError: 'oops'\nThis is a bug"),
        (KeyboardInterrupt(), 130, ""),
        (RuntimeError("can't start new thread"), 2, f"mlperf-pkg: error: {NO_THREAD}\n"),
        (PanicError("OS can't spawn worker thread: x"), 2, f"mlperf-pkg: error: {NO_THREAD}"),
        (PanicError("oops"), 2, "mlperf-pkg: error: PanicError: oops\nThis is a bug"),
    ],
)
def test_how_a_command_ends(
    error: BaseException, status: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlperf_pkg.cli.check.check", Mock(side_effect=error))
    result = call("check", tmp_path)
    assert (result.exit_code, result.stdout) == (status, "")
    assert result.stderr.startswith(message)
    assert bool(result.stderr) is bool(message)
    if isinstance(error, KeyError):
        assert isinstance(call("--debug", "check", tmp_path).exception, KeyError)
        assert isinstance(call("check", tmp_path, "--debug").exception, KeyError)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("logs"), simulated())


def test_a_closed_pipe(folder: Path) -> None:
    with start("check", folder, "--format", "json") as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 141)


@pytest.mark.parametrize("line", ["--help", "--version", "check --help"])
def test_a_pipe_that_is_closed_before_the_help(line: str) -> None:
    with start(*line.split()) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 141)


def test_a_current_folder_that_was_removed(folder: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    script = 'cd "$1" && rmdir "$1" && exec "$2" -m mlperf_pkg check "$3"'
    process = subprocess.run(
        ["sh", "-c", script, "sh", here, sys.executable, folder], capture_output=True, check=False
    )
    assert process.returncode == 2
    assert b"error: the current folder does not exist any more" in process.stderr


ASCII, LATIN = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}


@pytest.mark.parametrize(
    ("format_", "environment"), [("markdown", ASCII), ("text", {**LATIN, "COLUMNS": "1"})]
)
def test_any_terminal(
    format_: str, environment: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "größer 日本 \x1b[31m"
    odd.symlink_to(folder)
    process = start("check", odd, folder, "--format", format_, **environment)
    output, errors = process.communicate()
    assert (process.returncode, errors, b"\x1b" in output) == (0, b"", False)
