"""An empty path, as a variable that is not set gives: every command, tool and function refuses it.

It would mean the current folder. Commands and their parameters are found by walking the program.
"""

import importlib
import pkgutil
import re
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import mlperf_pkg
from mlperf_pkg import compat
from mlperf_pkg.cli.main import cli
from mlperf_pkg.compat import compliance_checker
from mlperf_pkg.compat.compliance_checker import ComplianceChecker
from mlperf_pkg.compat.package_checker import check_training_package
from mlperf_pkg.compat.rcp_checker import check_directory
from mlperf_pkg.compat.result_summarizer import summarize_results
from mlperf_pkg.errors import EMPTY_PATH, UserError
from mlperf_pkg.infra.stores import path_of
from tests.helpers.program import call

_OF_FILES = re.compile(r"FILE|FOLDER|DIR|PATH")
_VALUE = "5.1"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which has what the other parameters of a command name."""
    (tmp_path / "file").touch()
    (tmp_path / "logs").mkdir()
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- commands -----------------------------------------------------------------------------


class PathParameter(NamedTuple):
    """A parameter of a command that is a path."""

    words: tuple[str, ...]
    command: click.Command
    parameter: click.Parameter

    @property
    def name(self) -> str:
        """What the case is called."""
        return " ".join([*self.words, self.parameter.opts[0]])


def is_path(parameter: click.Parameter) -> bool:
    """Whether a parameter takes a path, by its type or by what the help calls it."""
    if isinstance(parameter.type, click.Path | click.File):
        return True
    return bool(_OF_FILES.search(parameter.metavar or ""))


def path_parameters(
    command: click.Command, context: click.Context, *words: str
) -> Iterator[PathParameter]:
    """Yield the paths that a command and the commands below it take."""
    for parameter in command.params:
        if is_path(parameter):
            yield PathParameter(words, command, parameter)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below
            yield from path_parameters(
                below, click.Context(below, parent=context, info_name=name), *words, name
            )


PARAMETERS = list(path_parameters(cli, click.Context(cli)))


def some_value(parameter: click.Parameter) -> str:
    """A value that the type of a parameter accepts."""
    kind = parameter.type
    if isinstance(kind, click.Path):
        return "file" if kind.file_okay else "folder"
    if isinstance(kind, click.Choice):
        return str(kind.choices[0])
    return _VALUE


def arguments_of(command: click.Command, empty: click.Parameter) -> list[str]:
    """The arguments that a command needs, and an empty one."""
    words = []
    for parameter in command.params:
        if parameter is not empty and not parameter.required:
            continue
        if isinstance(parameter, click.Option):
            words.append(parameter.opts[0])
        words.append("" if parameter is empty else some_value(parameter))
    return words


@pytest.mark.parametrize("case", PARAMETERS, ids=[case.name for case in PARAMETERS])
def test_a_command_refuses_it(case: PathParameter, here: Path) -> None:
    before = sorted(here.rglob("*"))
    words = [*case.words, *arguments_of(case.command, case.parameter)]
    if not case.words:
        words.append("doctor")  # as this is a general option
    done = call(*words)
    assert done.exit_code == 2
    assert EMPTY_PATH in done.stderr
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize(
    "name",
    [
        "check paths",
        "check -o",
        "check --objections",
        "build workspace",
        "build --logs",
        "build --systems",
        "compare --prices",
        "compare --chart",
        "diff new",
        "rcp check --custom",
        "results --private-ids",
        "review objections file",
        "watch logs",
        "--config",
        "--rules",
    ],
)
def test_the_walk_finds(name: str) -> None:
    assert name in [case.name for case in PARAMETERS]


@pytest.mark.parametrize("option", ["--config", "--rules"])
def test_a_general_option_after_a_command_refuses_it(option: str, here: Path) -> None:
    done = call("check", "folder", option, "")
    assert done.exit_code == 2
    assert EMPTY_PATH in done.stderr


@pytest.mark.parametrize("position", [0, 1, 2])
def test_one_of_several_paths_is_enough(position: int, here: Path) -> None:
    paths = ["folder", "folder"]
    paths.insert(position, "")
    done = call("check", *paths)
    assert done.exit_code == 2
    assert EMPTY_PATH in done.stderr


# ---- the tools of mlperf-logging ----------------------------------------------------------


COMMANDS = {compliance_checker.__name__: "command"}  # where ``main`` is that of mlperf-logging
NOT_PATHS = {"benchmark", "rcp_version", "system", "version"}


def tools() -> Iterator[str]:
    """Yield the tools, which are the modules with a parser."""
    for module in pkgutil.walk_packages(compat.__path__, f"{compat.__name__}."):
        if hasattr(importlib.import_module(module.name), "get_parser"):
            yield module.name


def path_actions(parser: ArgumentParser) -> Iterator[Action]:
    """Yield the arguments and options that take a path: any text that is not a name."""
    for action in parser._actions:
        takes_text = action.nargs != 0 and action.type is not int and not action.choices
        if takes_text and action.dest not in NOT_PATHS:
            yield action


def argv_of(parser: ArgumentParser, empty: Action) -> list[str]:
    """The arguments that a tool needs, and an empty one."""
    argv = []
    for action in parser._actions:
        if action is not empty and not action.required:
            continue
        if action.option_strings:
            argv.append(action.option_strings[0])
        if action is empty:
            argv.append("")
        else:
            argv.append(str([*action.choices][-1]) if action.choices else "folder")
    return argv


TOOL_CASES = [
    (name, action.dest)
    for name in tools()
    for action in path_actions(importlib.import_module(name).get_parser())
]


@pytest.mark.parametrize(
    ("name", "argument"),
    TOOL_CASES,
    ids=[f"{name.removeprefix(compat.__name__)[1:]} {dest}" for name, dest in TOOL_CASES],
)
def test_a_tool_refuses_it(
    name: str, argument: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(here.rglob("*"))
    module = importlib.import_module(name)
    parser = module.get_parser()
    (action,) = (action for action in path_actions(parser) if action.dest == argument)
    main = getattr(module, COMMANDS.get(name, "main"))
    with pytest.raises(SystemExit) as ended:
        main(argv_of(parser, action))
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f": {EMPTY_PATH}\n")
    assert sorted(here.rglob("*")) == before


def test_each_tool_has_a_case() -> None:
    assert {name for name, _ in TOOL_CASES} == {*tools()}


# ---- functions ----------------------------------------------------------------------------


CALLS: dict[str, Callable[[], object]] = {
    "check": lambda: mlperf_pkg.check(""),
    "check, the second path": lambda: mlperf_pkg.check("logs", ""),
    "check, the configuration": lambda: mlperf_pkg.check("logs", config=""),
    "read_log": lambda: mlperf_pkg.read_log(""),
    "a path of the program": lambda: path_of(""),
    "check_training_package": lambda: check_training_package(
        "", "training", "5.1.0", False, False, False, False, False, "log"
    ),
    "check_file": lambda: ComplianceChecker("training", "5.1.0", False, False).check_file(""),
    "check_directory": lambda: check_directory("", "training", "5.1.0", False, False),
    "summarize_results": lambda: summarize_results("", "training", "5.1.0"),
}


@pytest.mark.parametrize("function", CALLS.values(), ids=CALLS)
def test_a_function_refuses_it(function: Callable[[], object], here: Path) -> None:
    before = sorted(here.rglob("*"))
    with pytest.raises(UserError, match=re.escape(EMPTY_PATH)):
        function()
    assert sorted(here.rglob("*")) == before
