"""The official package checker, in process, on trees that nobody else needs: it writes to them."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest
from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.package_checker import package_checker
from mlperf_logging.repo_checker import repo_checker

from mlperf_pkg.submission.model import PARAMS, TRAIN_SAMPLES, top_params
from tests.parity.incumbent import quickened

SUCCESS = "PACKAGE CHECKER FOUND NO ERRORS, SUCCESS !"
NO_RULES_OF_NAMES = ("0.7.0", "1.0.0", "1.1.0")


def package_verdict(
    root: Path, caplog: pytest.LogCaptureFixture, usage: str = "training", ruleset: str = "2.0.0"
) -> str:
    """``pass``, ``fail``, or ``crash`` where it raises; with the flags at the top, as on upload."""
    mlp_compliance.enqueued_configs.clear()
    caplog.clear()
    set_flags = {
        flag for params in root.glob(PARAMS) for flag in top_params(params.read_bytes()).flags
    }
    flags = [
        bool(set_flags & {*names})
        for names in (["rcp-bypass"], TRAIN_SAMPLES, ["seed-checker-bypass"])
    ]
    try:
        with caplog.at_level("INFO"), quickened(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of several seeds: printed, and without effect
            package_checker.check_training_package(
                str(root), usage, ruleset, False, False, *flags, "log"
            )
    except Exception:  # noqa: BLE001 - whatever it raises
        return "crash"
    finally:
        mlp_compliance.enqueued_configs.clear()
    return "pass" if SUCCESS in caplog.messages else "fail"


def repository_passes(root: Path, caplog: pytest.LogCaptureFixture, ruleset: str) -> bool:
    """Whether the repository checker is content; it takes rounds from 2.0 on."""
    if ruleset in NO_RULES_OF_NAMES:
        return True
    caplog.clear()
    with caplog.at_level("INFO"):
        repo_checker.run_checks(str(root))
    return "ALL CHECKS PASSED." in caplog.messages


def official_verdict(
    root: Path,
    scratch: Path,
    caplog: pytest.LogCaptureFixture,
    usage: str = "training",
    ruleset: str = "2.0.0",
) -> tuple[str, str]:
    """What an upload meets: the verdict of both checkers on a copy, and what they said."""
    copy = Path(shutil.copytree(root, scratch / "copy" / root.name, symlinks=True))
    package = package_verdict(copy, caplog, usage, ruleset)
    package_log = caplog.text
    accepted = repository_passes(copy, caplog, ruleset) and package == "pass"
    return ("pass" if accepted else "fail"), f"{package}\n{package_log}{caplog.text}"
