"""``mlperf-pkg build``: refusals, their reasons, and the options that override them."""

import shutil
from pathlib import Path

import pytest

from mlperf_pkg.config import CONFIG_NAME
from tests.helpers.program import call
from tests.helpers.workspaces import (
    POD16,
    RESNET,
    RESULTS,
    built_results,
    bytes_below,
    described,
    lay,
    logs_of,
    numbered,
    resnet_workspace,
)

OPEN = logs_of("bow-pod64-open", "rnnt", "open")


def nothing_built(root: Path) -> bool:
    return not (root / "submissions").exists()


def test_ambiguous_platform_until_the_configuration_resolves_it(tmp_path: Path) -> None:
    tf = {"systems/pod16-tf.json": described("bow-pod16")}
    logs = logs_of("Bow Pod16")
    root = lay(tmp_path, POD16, tf, numbered(logs, "logs/{}.log"))
    result = call("build", root)
    assert result.exit_code == 1
    assert (
        "error: Graphcore/Bow Pod16/resnet/closed: SET125: the system may be bow-pod16, pod16-tf,"
        " judging by a similar submission_platform; expected one system\n"
    ) in result.stderr
    _, _, block = result.stderr.partition("Save this as mlperf-pkg.yaml and complete it:\n")
    assert "systems:\n  bow-pod16:\n    logs: []\n  pod16-tf:\n    logs: []\n" in block
    assert nothing_built(root)
    lay(root, {CONFIG_NAME: b"systems:\n  pod16-tf:\n    logs: ['logs/[0-9].log']\n"})
    result = call("build", root)
    assert result.exit_code == 0
    assert ", system found by a pattern in mlperf-pkg.yaml\n" in result.stdout
    assert built_results(root) == [path.replace("bow-pod16", "pod16-tf") for path in RESULTS]


def test_every_reason_is_reported(tmp_path: Path) -> None:
    root = lay(
        resnet_workspace(tmp_path, RESNET[:4]),
        numbered(logs_of("bow-pod16", "bert", runs=11), "logs/b{}.log"),
        numbered(OPEN, "logs/o{}.log"),
        {"logs/strange.log": b':::MLLOG {"key": "x"}'},
    )
    result = call("build", root)
    assert result.exit_code == 1
    for text in (
        "error: 1 log (logs/strange.log): line 1: cannot read this record: missing time_ms",
        "error: Graphcore/bow-pod64-open/rnnt/open: SET110: no system description of the open",
        "error: bow-pod16/resnet is not valid:\n",
        ": SET101: the number of runs (files result_*.txt) is 4; expected 5 [rules and official checker]\n",
        ": SET101: the number of runs (files result_*.txt) is 11; expected 10 [official checker]\n",
        "    --choose-runs takes the 10 consecutive runs whose result is closest to the",
    ):
        assert text in result.stderr
    assert result.stderr.endswith("\nnothing was built\n")
    assert nothing_built(root)


# ---- what cannot be done ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("remove", "options", "message"),
    [
        ("logs", (), "put the logs into {root}/logs or name their folder with --logs"),
        (
            "systems",
            (),
            "{root}/systems: no system descriptions: No such file or directory; put <system>.json files there ('mlperf-pkg system init' writes a first one)",
        ),
        (
            "",
            ("--output", "{root}/logs"),
            "{root}/logs/Graphcore: overlaps with the input folder {root}/logs",
        ),
    ],
)
def test_usage(tmp_path: Path, remove: str, options: tuple[str, ...], message: str) -> None:
    root = resnet_workspace(tmp_path)
    if remove:
        shutil.rmtree(root / remove)
    before = bytes_below(root)
    result = call("build", root, *(option.format(root=root) for option in options))
    assert result.exit_code == 2
    assert message.format(root=root) in result.stderr
    assert bytes_below(root) == before


def test_a_tree_is_never_written_into_itself(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    assert call("build", root).exit_code == 0
    tree = root / "submissions/Graphcore"
    for output in ((), ("--output", root / "submissions")):
        result = call("build", tree, *output, "--force")
        assert result.exit_code == 2
        assert ": choose another --output" in result.stderr


@pytest.mark.parametrize(
    ("org", "config", "status"),
    [
        ("ACME", "", 1),
        ("ACME", "organizations: [acm*]", 0),
        ("ACME", "submitter: ACME", 0),
    ],
)
def test_logs_of_another_organisation(tmp_path: Path, org: str, config: str, status: int) -> None:
    logs = logs_of("bow-pod16", organization=org)
    root = lay(resnet_workspace(tmp_path, logs), {CONFIG_NAME: config.encode()})
    result = call("build", root, "--invalid", "keep")
    assert result.exit_code == status
    assert ("- ACME\n" in result.stderr) is bool(status)


def test_closed_logs_of_a_system_that_is_described_as_open(tmp_path: Path) -> None:
    open_ = {"systems/bow-pod16.json": described("bow-pod16", division="open")}
    root = lay(tmp_path, open_, numbered(RESNET, "logs/{}.log"))
    result = call("build", root)
    assert result.exit_code == 1
    assert "'mlperf-pkg build --as-open' submits closed runs as open" in result.stderr
    for division in ((), ("--division", "open", "--force")):
        result = call("build", root, "--as-open", *division)
        assert result.exit_code == 0
        assert "bow-pod16/resnet: submitted as Open, as you asked" in result.stderr
    assert [bytes_below(root)[f"submissions/Graphcore/{path}"] for path in RESULTS] == list(RESNET)
