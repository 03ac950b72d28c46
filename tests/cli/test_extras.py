"""Commands that need an extra which is not installed name the command that installs it.

Those that encrypt are in tests/commands/archive.
"""

import sys
from pathlib import Path

import pytest

from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (
            "pyarrow",
            "export --published -o x.parquet",
            "an export as Parquet needs the package pyarrow: pip install 'pyarrow",
        ),
        (
            "jinja2",
            "report logs -o x.html",
            "a page needs the package jinja2: pip install 'jinja2<4,>=3.1' 'vl-convert-python",
        ),
        (
            "vl_convert",
            "report logs -o x.html",
            "needs the package vl_convert: pip install 'jinja2<4,>=3.1' 'vl-convert-python",
        ),
        (
            "vl_convert",
            "rcp show bert --round 5.0 --chart x.svg",
            "a chart needs the package vl_convert: pip install 'jinja2<4,>=3.1' 'vl-convert-python",
        ),
        (
            "distributed",
            "check logs --scheduler tcp://127.0.0.1:9",
            "--scheduler needs the package distributed: pip install 'distributed",
        ),
        (
            "s3fs",
            "check s3://bucket/logs",
            "s3://bucket/logs needs the package s3fs: pip install s3fs",
        ),
    ],
)
def test_message(
    module: str, arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_set(tmp_path / "logs", simulated())
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    done = call(*arguments.split())
    assert (done.exit_code, message in done.stderr, "Traceback" in done.output) == (2, True, False)
