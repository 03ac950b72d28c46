"""``mlperf-pkg build``: refusals, their reasons, and the options that override them."""

import shutil
from pathlib import Path

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


def test_ambiguous_platform_until_the_configuration_resolves_it(tmp_path: Path) -> None:
    tf = {"systems/pod16-tf.json": described("bow-pod16")}
    root = lay(tmp_path, POD16, tf, numbered(logs_of("Bow Pod16"), "logs/{}.log"))
    result = call("build", root)
    assert result.exit_code == 1
    assert "Bow Pod16/resnet/closed: SET125: the system may be bow-pod16, pod16-tf" in result.stderr
    _, _, block = result.stderr.partition("Save this as mlperf-pkg.yaml and complete it:\n")
    assert "systems:\n  bow-pod16:\n    logs: []\n  pod16-tf:\n    logs: []\n" in block
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
    assert not (root / "submissions").exists()


# ---- what cannot be done ------------------------------------------------------------------


def test_usage(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    before = bytes_below(root)
    result = call("build", root, "--output", root / "logs")
    overlaps = f"{root}/logs/Graphcore: overlaps with the input folder {root}/logs"
    assert (result.exit_code, overlaps in result.stderr) == (2, True)
    assert bytes_below(root) == before
    for folder, message in (
        ("systems", f"{root}/systems: no system descriptions: No such file or directory; put"),
        ("logs", f"put the logs into {root}/logs or name their folder with --logs"),
    ):
        shutil.rmtree(root / folder)
        result = call("build", root)
        assert (result.exit_code, message in result.stderr) == (2, True)


def test_a_tree_is_never_written_into_itself(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    assert call("build", root).exit_code == 0
    tree = root / "submissions/Graphcore"
    for output in ((), ("--output", root / "submissions")):
        result = call("build", tree, *output, "--force")
        assert result.exit_code == 2
        assert ": choose another --output" in result.stderr


def test_logs_of_another_organisation(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path, logs_of("bow-pod16", organization="ACME"))
    for config, status in (("", 1), ("organizations: [acm*]", 0), ("submitter: ACME", 0)):
        lay(root, {CONFIG_NAME: config.encode()})
        result = call("build", root, "--invalid", "keep")
        assert (result.exit_code, "- ACME\n" in result.stderr) == (status, bool(status))


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
