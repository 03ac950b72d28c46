"""``mlperf-pkg init``: a first configuration."""

from __future__ import annotations

from pathlib import Path

from mlperf_pkg.config import CONFIG_NAME, Config, read_config
from tests.helpers.program import call
from tests.helpers.workspaces import bytes_below, closed_workspace


def test_an_empty_folder(tmp_path: Path) -> None:
    result = call("init", tmp_path)
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / CONFIG_NAME}\n"
    assert "note: no value could be filled in" in result.stderr
    assert read_config(tmp_path) == Config()


def test_what_is_there_is_filled_in(tmp_path: Path) -> None:
    result = call("init", closed_workspace(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    config = read_config(tmp_path)
    assert (config.submitter, config.round, list(config.systems)) == (
        "Graphcore",
        "2.0",
        ["bow-pod16"],
    )
    assert call("build", tmp_path).exit_code == 0


def test_a_configuration_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / CONFIG_NAME).write_text("submitter: me\n")
    before = bytes_below(tmp_path)
    result = call("init", tmp_path)
    assert result.exit_code == 2
    assert "exists already; --force overwrites it" in result.stderr
    assert bytes_below(tmp_path) == before
    assert call("init", tmp_path, "--force").exit_code == 0
    assert bytes_below(tmp_path) != before


def test_no_folder(tmp_path: Path) -> None:
    result = call("init", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "no such folder" in result.stderr
