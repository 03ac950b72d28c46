"""``mlperf-pkg build`` of MLPerf HPC: folders tell strong from weak scaling."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlperf_pkg.config import CONFIG_NAME
from tests.helpers.program import call
from tests.helpers.workspaces import bytes_below, described, lay

STRONG, WEAK = "box/strong/cosmoflow", "box/weak/cosmoflow"
TREE = "submissions/ACME"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Logs of strong scaling in logs/, and of weak scaling in logs/weak/."""
    root = tmp_path_factory.mktemp("hpc")
    common = (
        "--usage",
        "hpc",
        "--benchmark",
        "cosmoflow",
        "--system",
        "box",
        "--submitter",
        "ACME",
    )
    for seed, folder in enumerate(["logs", "logs/weak"]):
        assert call("simulate", root / folder, *common, "--seed", str(seed)).exit_code == 0
    return bytes_below(root)


def workspace(root: Path, logs: dict[str, bytes], config: str = "") -> Path:
    box = described("bow-pod16", submitter="ACME")
    return lay(root, logs, {"systems/box.json": box, CONFIG_NAME: config.encode()})


def test_scalings_have_names_and_folders(tmp_path: Path, logs: dict[str, bytes]) -> None:
    root = workspace(tmp_path, logs)
    result = call("build", root)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()[1:3]
    assert [re.sub(r" +[0-9.]+ minutes", "", line) for line in lines] == [
        f"  {STRONG}  closed  10/10 runs, system found by submission_platform",
        f"  {WEAK}    closed  10/10 runs, system found by submission_platform",
    ]
    tree = bytes_below(root / TREE)
    for name, folder in ((STRONG, "logs"), (WEAK, "logs/weak")):
        built = [data for path, data in tree.items() if path.startswith(f"results/{name}/")]
        assert sorted(built) == sorted(logs[f"{folder}/box_cosmoflow_{n}.log"] for n in range(10))


@pytest.mark.parametrize("how", ["option", "configuration"])
def test_leave_out(tmp_path: Path, logs: dict[str, bytes], how: str) -> None:
    root = workspace(tmp_path, logs, f"leave_out: [{WEAK}]" if how == "configuration" else "")
    result = call("build", root, *(("--leave-out", WEAK) if how == "option" else ()))
    assert result.exit_code == 0
    assert f"note: left out as you asked: {WEAK}, 10 runs\n" in result.stderr
    assert [path.name for path in (root / TREE / "results/box").iterdir()] == ["strong"]


def test_notes(tmp_path: Path, logs: dict[str, bytes]) -> None:
    root = workspace(tmp_path, logs, f"notes: {{{WEAK}: of ten models, box/cosmoflow: of one}}")
    result = call("build", root)
    assert result.exit_code == 0
    assert "note: there is no result set box/cosmoflow for a note; did you mean " in result.stderr
    assert f"{WEAK}: of ten models" in bytes_below(root / TREE)["results.md"].decode()


def test_reasons_name_the_scaling(tmp_path: Path, logs: dict[str, bytes]) -> None:
    root = workspace(tmp_path, logs)
    (root / "logs/weak/box_cosmoflow_0.log").unlink()
    result = call("build", root)
    assert result.exit_code == 1
    assert f"error: {WEAK} is not valid:\n" in result.stderr
    assert f"error: {STRONG}" not in result.stderr


def test_the_configuration_explains_weak_scaling(tmp_path: Path) -> None:
    assert call("init", tmp_path).exit_code == 0
    text = " ".join((tmp_path / CONFIG_NAME).read_text("utf-8").replace("\n#", "").split())
    assert "below a folder named weak, such as logs/weak/, are of weak scaling" in text


def test_weak_scaling_is_not_packed_without_strong_scaling(
    tmp_path: Path, logs: dict[str, bytes]
) -> None:
    root = workspace(tmp_path, logs)
    other = ("--usage", "hpc", "--benchmark", "deepcam", "--system", "box", "--submitter", "ACME")
    assert call("simulate", root / "logs", *other).exit_code == 0
    (root / "logs/box_cosmoflow_0.log").unlink()
    assert call("build", root, "--invalid", "keep").exit_code == 0
    result = call("pack", root / TREE, "--invalid", "drop")
    assert result.exit_code == 0, result.output
    left_out = re.findall(r"(?m)^note: left out: (\S+) is not valid:\n  \S+ (\w+): ", result.stderr)
    assert left_out == [(STRONG, "SET101"), (WEAK, "SET131")]
    assert call("verify", root / f"{TREE}.tar.gz").exit_code == 0
