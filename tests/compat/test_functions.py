"""The functions that programs import, beside the official ones, live."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.package_checker import package_checker as official_package_checker
from mlperf_logging.rcp_checker import rcp_checker as official_rcp_checker
from mlperf_logging.result_summarizer import result_summarizer as official_summarizer

from mlperf_pkg.compat import compliance_checker, package_checker, rcp_checker, result_summarizer
from mlperf_pkg.errors import UserError
from tests.compat.official import FINAL
from tests.compat.sequences import written
from tests.helpers.broken_runs import SET, every_log, fast, slightly_fast, twice
from tests.helpers.logs import edited, without
from tests.helpers.trees import remove, write_submission
from tests.parity.incumbent import quickened


@pytest.fixture(autouse=True)
def _fresh() -> None:
    mlp_compliance.enqueued_configs.clear()


@pytest.mark.parametrize("change", [bytes, slightly_fast, fast], ids=lambda f: f.__name__)
@pytest.mark.parametrize("bypass", [False, True])
def test_packages(
    change: Callable[[bytes], bytes],
    bypass: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.INFO)
    root = every_log(change, write_submission(tmp_path / "ours" / "ACME"))
    copy = shutil.copytree(root, tmp_path / "theirs" / "ACME")
    outputs = []
    for module, tree in ((package_checker, root), (official_package_checker, copy)):
        caplog.clear()
        with quickened():
            check: Callable[..., None] = module.check_training_package
            check(str(tree), "training", "2.0.0", False, False, bypass, False, False, "a.log")
        outputs.append(
            ([m for m in caplog.messages if FINAL in m], capsys.readouterr().out, files(tree))
        )
    assert outputs[0] == outputs[1]


def files(tree: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in tree.rglob("scaling.json")}


@pytest.mark.parametrize(
    "change",
    [bytes, twice, lambda text: without(text, "opt_name"), lambda _: b""],
    ids=["valid", "twice", "incomplete", "empty"],
)
@pytest.mark.parametrize("werror", [False, True])
def test_logs(change: Callable[[bytes], bytes], werror: bool, tmp_path: Path) -> None:
    log = str(every_log(change, write_submission(tmp_path / "ACME")) / SET / "result_0.txt")
    config = "training_2.0.0/common.yaml"
    ours, theirs = (
        module.main(log, config, module.make_checker("training", "2.0.0", False, werror))
        for module in (compliance_checker, mlp_compliance)
    )
    assert ours == theirs


@pytest.mark.parametrize("usage", ["training", "hpc"])
def test_reference_points(usage: str) -> None:
    ruleset, benchmark = {"training": ("5.1.0", "llama2_70b_lora"), "hpc": ("3.0.0", "oc20")}[usage]
    ours = rcp_checker.RCP_Checker(usage, ruleset, benchmark, False)
    theirs = official_rcp_checker.RCP_Checker(usage, ruleset, benchmark, False)
    assert ours.submission_runs == theirs.submission_runs
    for which in ("rcp_data", "pruned_rcp_data"):
        assert [*getattr(ours, which)] == [*getattr(theirs, which)]
    assert ours.rcp_data == theirs.rcp_data
    sizes = [record["BS"] for record in theirs.pruned_rcp_data.values()]
    for size in (sizes[0] - 1, *sizes, sizes[0] + 1, sizes[-1] + 1):
        for name in ("_find_rcp", "_find_top_min_rcp", "_find_bottom_max_rcp"):
            for points in ("pruned_rcps", "full_rcps"):
                assert getattr(ours, name)(size, points) == getattr(theirs, name)(size, points)
    low, *_, high = theirs.rcp_data.values()
    between = low["BS"] + 1
    assert ours._create_interp_rcp(between, low, high) == theirs._create_interp_rcp(
        between, low, high
    )


@pytest.mark.parametrize(
    "change",
    [
        *(bytes, slightly_fast, fast),
        lambda text: edited(text, "global_batch_size", value=3000),
        lambda text: edited(text, "global_batch_size", value=99999),
    ],
)
@pytest.mark.parametrize("options", [{}, {"rcp_bypass": True}, {"set_scaling": True}], ids=str)
def test_convergence(
    change: Callable[[bytes], bytes], options: dict[str, Any], tmp_path: Path
) -> None:
    root = every_log(change, write_submission(tmp_path / "ours"))
    written('{"scaling_factor": 3}')(root)
    copy = shutil.copytree(root, tmp_path / "theirs")
    arguments = ("training", "2.0.0", False, False, None, "pruned_rcps")
    ours = rcp_checker.check_directory(str(root / SET), *arguments, **options)
    assert ours == official_rcp_checker.check_directory(str(copy / SET), *arguments, **options)
    assert files(root) == files(copy)


def test_tables(tmp_path: Path) -> None:
    root = every_log(slightly_fast, write_submission(tmp_path / "ours" / "ACME"))
    written('{"scaling_factor": 3}')(root)
    copy = shutil.copytree(root, tmp_path / "theirs" / "ACME")
    ours = result_summarizer.summarize_results(str(root), "training", "2.0.0")
    theirs = official_summarizer.summarize_results(str(copy), "training", "2.0.0")
    assert [len(table) for table in ours] == [len(table) for table in theirs]
    for index, is_detailed in ((0, False), (2, True)):
        schema = official_summarizer._get_column_schema("training", "2.0.0", detailed=is_detailed)
        pd.testing.assert_frame_equal(ours[index].astype(schema), theirs[index].astype(schema))
    assert files(root) == files(copy)


@pytest.mark.parametrize(
    "call",
    [
        lambda root: package_checker.check_training_package(
            str(root), "training", "2.0.0", False, False, False, False, False, "a.log"
        ),
        lambda root: result_summarizer.summarize_results(str(root), "training", "9.9.0"),
        lambda root: compliance_checker.make_checker("training", "2.0.0", False, False).check_file(
            str(root / SET / "result_9.txt")
        ),
        lambda root: rcp_checker.RCP_Checker("training", "2.0.0", "chess"),
        lambda root: rcp_checker.check_directory(str(root), "training", "2.0.0", False, False),
    ],
)  # fmt: skip
def test_what_raises(call: Callable[[Path], object], tmp_path: Path) -> None:
    root = write_submission(tmp_path / "ACME")
    remove(root / "systems") if "check_training" in str(call.__code__.co_names) else None
    with pytest.raises(UserError):
        call(root)
