"""Manual pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from mlperf_pkg import __version__
from mlperf_pkg.cli.main import cli
from mlperf_pkg.cli.man_page import pages
from tests.cli.test_main import PATHS
from tests.helpers.ci_kit import needs
from tests.helpers.program import call

ROOT = click.Context(cli, info_name="mlperf-pkg", **cli.context_settings)
PAGES = dict(pages(ROOT))
NAMES = ["-".join(("mlperf-pkg", *path)) for path in PATHS]


def test_every_command_has_a_page() -> None:
    assert list(PAGES) == [f"{name}.1" for name in NAMES]


@pytest.mark.parametrize(("path", "name"), list(zip(PATHS, NAMES, strict=True)), ids=NAMES)
def test_a_page_says_what_the_help_says(path: tuple[str, ...], name: str) -> None:
    page = PAGES[f"{name}.1"]
    assert page.startswith('.TH "MLPERF')
    assert f'"mlperf-pkg {__version__}"' in page.splitlines()[0]
    plain = " ".join(re.sub(r"^\.\w+ ?", "", page, flags=re.M).replace("\\-", "-").split())
    helped = call(*path, "--help").output
    for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", helped, re.MULTILINE):
        assert option in plain
    for example in re.findall(r"^    (mlperf-pkg .*)", helped, re.MULTILINE):
        assert example in plain
    sections = re.findall(r'^\.SH "(.*)"$', page, re.MULTILINE)
    assert sections[:4] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
    assert sections[-3:] == ["EXIT STATUS", "EXAMPLES", "SEE ALSO"]


@needs("mandoc")
def test_mandoc_finds_nothing(tmp_path: Path) -> None:
    assert call("man", tmp_path).exit_code == 0
    done = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", *tmp_path.glob("*.1")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
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
    assert f'.SH "DESCRIPTION"\nDo it.\n.PP\n{line}\n' in dict(pages(ctx))["x.1"]


def test_where_pages_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for _ in range(2):
        done = call("man")
        assert done.output == f"wrote {len(NAMES)} pages into {tmp_path}/man/man1\n"
    assert {path.stem for path in (tmp_path / "man" / "man1").iterdir()} == set(NAMES)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = call("man", tmp_path / "file" / "man1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot be written into" in done.stderr


@needs("man")
def test_man_shows_a_page(tmp_path: Path) -> None:
    call("man", tmp_path)
    program = shutil.which("man")
    assert program
    done = subprocess.run(
        [program, "-l", tmp_path / "mlperf-pkg-check.1"],
        capture_output=True, text=True, check=False, env={**os.environ, "MANWIDTH": "80"},
    )  # fmt: skip
    assert "mlperf-pkg-check - Check logs, result sets" in done.stdout
