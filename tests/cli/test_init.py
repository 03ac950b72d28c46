"""``mlperf-pkg init``: a first configuration."""

from pathlib import Path

from mlperf_pkg.config import CONFIG_NAME, Config, SystemConfig, read_config
from tests.helpers.program import call
from tests.helpers.workspaces import POD16, closed_workspace, described, lay, logs_of, numbered


def test_an_empty_folder(tmp_path: Path) -> None:
    result = call("init", tmp_path)
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / CONFIG_NAME}\n"
    assert (
        "note: mlperf-pkg.yaml was written without values, as there are no logs or systems yet to"
        in result.stderr
    )
    assert read_config(tmp_path) == Config()


def test_what_is_there_is_filled_in(tmp_path: Path) -> None:
    result = call("init", closed_workspace(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    config = read_config(tmp_path)
    assert (config.submitter, config.round) == ("Graphcore", "2.0")
    assert [*config.systems] == ["bow-pod16"]
    assert call("build", tmp_path).exit_code == 0
    (tmp_path / CONFIG_NAME).write_text("submitter: me\n")
    result = call("init", tmp_path)
    assert (result.exit_code, read_config(tmp_path)) == (2, Config(submitter="me"))
    assert "exists already; --force overwrites it" in result.stderr
    assert call("init", tmp_path, "--force").exit_code == 0
    assert read_config(tmp_path).systems == config.systems


def test_several_submitters_and_unknown_platforms(tmp_path: Path) -> None:
    """Two submitters with a system each, whose logs name neither."""
    other = {"systems/bow-pod64.json": described("bow-pod64", submitter="ACME")}
    bert = numbered(logs_of("Pod_64 (bow)", "bert", organization="ACME"), "logs/a{}.log")
    lay(tmp_path, POD16, other, bert, numbered(logs_of("POD16", "resnet"), "logs/b{}.log"))
    result = call("init", tmp_path)
    assert result.exit_code == 0
    config = read_config(tmp_path)
    assert config.submitter is None
    assert config.systems == {
        "bow-pod16": SystemConfig(platforms=("POD16",)),
        "bow-pod16 or bow-pod64 for bert on Pod_64 (bow)": SystemConfig(
            platforms=("Pod_64 (bow)",)
        ),
    }
    errors = result.stderr.splitlines()
    task = "to do: put one of bow-pod16, bow-pod64 in place of this key"
    assert [line for line in errors if line.startswith(task)]
    left = "left to fill in: ACME/Pod_64 (bow)/bert/closed: SET110: submission_platform"
    assert [line for line in errors if line.startswith(left)]
    assert call("build", tmp_path).exit_code == 1
