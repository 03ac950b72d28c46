"""Manual pages."""

import re
from pathlib import Path

import click
import pytest
from man_page import pages

from mlperf_pkg.cli.main import cli
from tests.helpers.ci import needs
from tests.helpers.program import call, command_paths
from tests.helpers.wheels import run

ROOT = click.Context(cli, info_name="mlperf-pkg", **cli.context_settings)
PAGES = dict(pages(ROOT, "1.2.3"))
PATHS = list(command_paths(cli))
NAMES = ["-".join(("mlperf-pkg", *path)) for path in PATHS]


def test_every_command_has_a_page() -> None:
    assert list(PAGES) == [f"{name}.1" for name in NAMES]


@pytest.mark.parametrize(("path", "name"), list(zip(PATHS, NAMES, strict=True)), ids=NAMES)
def test_a_page_says_what_the_help_says(path: tuple[str, ...], name: str) -> None:
    page = PAGES[f"{name}.1"]
    assert page.startswith('.TH "MLPERF')
    assert '"mlperf-pkg 1.2.3"' in page.splitlines()[0]
    plain = " ".join(re.sub(r"^\.\w+ ?", "", page, flags=re.M).replace("\\-", "-").split())
    helped = call(*path, "--help").output
    assert [
        option
        for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", helped, re.MULTILINE)
        if option not in plain
    ] == []
    assert [
        example
        for example in re.findall(r"^    (mlperf-pkg .*)", helped, re.MULTILINE)
        if example not in plain
    ] == []
    sections = re.findall(r'^\.SH "(.*)"$', page, re.MULTILINE)
    assert sections[:4] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
    assert sections[-3:] == ["EXIT STATUS", "EXAMPLES", "SEE ALSO"]


@needs("mandoc")
def test_mandoc_finds_nothing(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text, "utf-8")
    done = run("mandoc", "-Tlint", "-Wwarning", *tmp_path.glob("*.1"), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a-b --c", r"a\-b \-\-c"),
        ("back\\slash", r"back\eslash"),
        (".nf", r"\&.nf"),
        ("'quoted'", r"\&'quoted'"),
        ("one\ntwo\n.three", "one\ntwo\n\\&.three"),
    ],
)
def test_text_is_no_macro(text: str, line: str) -> None:
    ctx = click.Context(click.Command("x", help=f"Do it.\n\n{text}"), info_name="x")
    assert f'.SH "DESCRIPTION"\nDo it.\n.PP\n{line}\n' in dict(pages(ctx, "1"))["x.1"]
