"""What the pages tell one to do works, and prints what they say."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest

from mlperf_pkg.cli.main import cli
from tests.helpers.console import DOCS, follow
from tests.helpers.program import call
from tests.helpers.wheels import NOT_IN_GIT, run


def test_the_tutorial(tmp_path: Path) -> None:
    follow("tutorial.md", tmp_path)
    assert (tmp_path / "submissions" / "Submitter1.tar.gz.sha256").is_file()


def test_the_example_of_check(tmp_path: Path) -> None:
    follow("guide/check.md", tmp_path)


ADDED_ROUND = DOCS / "howto" / "add-a-round.md"


def write_round(folder: Path) -> None:
    """Write the files that the page shows."""
    text = ADDED_ROUND.read_text("utf-8")
    files = re.findall(r"`(our-rules/\S*)`:\n\n```yaml\n(.*?)```", text, re.DOTALL)
    assert len(files) == 3
    for name, content in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")


def test_a_round_is_added(tmp_path: Path) -> None:
    """By the files that the page shows."""
    write_round(tmp_path)
    follow("howto/add-a-round.md", tmp_path)


def test_a_round_is_moved_to_the_rulebook(tmp_path: Path) -> None:
    """In a copy of the clone, as the page says; its tests pass, and they are of the round."""
    clone = tmp_path / "clone"
    ignored = {*NOT_IN_GIT} - {"*.so", "__pycache__"}  # what is compiled is up to date there, too
    shutil.copytree(DOCS.parent, clone, ignore=shutil.ignore_patterns(*ignored))
    write_round(clone)
    section = ADDED_ROUND.read_text("utf-8").partition("## 6. ")[2]
    (commands,) = re.findall(r"^```sh\n(.*?)^```", section.partition("## 7. ")[0], re.M | re.S)
    # The environment of the clone is this one, and is up to date; one process runs the tests.
    environment = Path(sys.prefix)
    make = f"make -o {environment}/.ready VENV={environment} "
    script = commands.replace("make ", make)
    more = {"PYTHONPATH": str(clone), "PYTEST_XDIST_AUTO_NUM_WORKERS": "0"}
    done = run("sh", "-e", "-c", script, cwd=clone, **more)
    assert done.returncode == 0, done.stdout
    assert (clone / "rules" / "training" / "7.0" / "newb.yaml").is_file()
    assert " passed" in done.stdout


def test_named_modules_exist() -> None:
    root = DOCS.parent
    tops = [root, *(root / top for top in ("mlperf_pkg", "tests", "docs", "bench"))]
    modules = [path for top in tops for path in top.glob("*.py" if top == root else "**/*.py")]
    assert [
        page
        for page in [*DOCS.rglob("*.md"), *{*root.glob("*.md")} - {root / "CHANGELOG.md"}]
        if [
            name
            for name in re.findall(r"`([\w/]+\.py)(?:::\w+)?`", page.read_text("utf-8"))
            if not any(f"/{path}".endswith(f"/{name}") for path in modules)
        ]
        != []
    ] == []


def commands(page: Path) -> list[str]:
    """The commands in the blocks for a shell, their further lines joined to the first."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("mlperf-pkg ")]


SHOWN = [
    (page, line)
    for page in sorted(DOCS.rglob("*.md"))
    for line in commands(page)
    if "reference" not in page.parts
]


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=lambda value: getattr(value, "stem", value))
def test_commands_and_options_exist(page: Path, line: str) -> None:
    command: click.Command = cli
    ctx = click.Context(cli, **cli.context_settings)
    words = shlex.split(line, comments=True)[1:]
    while isinstance(command, click.Group):
        below = command.get_command(ctx, words[0])
        command = below or getattr(command, "default")  # noqa: B009 - a group of ours
        words = words[1:] if below else words
        ctx = click.Context(command, ctx)
    values, _, _ = command.make_parser(ctx).parse_args(words)
    for param in command.get_params(ctx):
        value = values.get(param.name or "")  # an argument that is left out has a mark of click
        if isinstance(param.type, click.Choice) and isinstance(value, str | list | tuple):
            param.type_cast_value(ctx, value)


def test_a_round_is_reviewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page does its work; that of the simulation is the first."""
    page = DOCS / "howto" / "review-a-round.md"
    simulation, *others = sorted(commands(page), key=lambda line: " simulate " not in line)
    assert len(others) > 4
    monkeypatch.chdir(tmp_path)
    simulated = call(*shlex.split(simulation)[1:])
    assert simulated.exit_code in {0, 1}, simulated.stderr
    shutil.copytree(tmp_path / "training_results_v5.1", tmp_path / "submitted")
    (waivers,) = re.findall(r"^```yaml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    (tmp_path / "mlperf-pkg.yaml").write_text(waivers, "utf-8")
    outcomes = {line: call(*shlex.split(line)[1:]) for line in others}
    assert {
        line: done.stderr for line, done in outcomes.items() if done.exit_code not in {0, 1}
    } == {}
