"""The official checkers, in process."""

from __future__ import annotations

from pathlib import Path

from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.rcp_checker import rcp_checker

from tests.parity.incumbent import quickened


def officially_valid(log: bytes, folder: Path, usage: str, ruleset: str) -> bool:
    """The verdict of the compliance checker; it may raise as well."""
    path = folder / "result_0.txt"
    path.write_bytes(log)
    mlp_compliance.enqueued_configs.clear()
    checker = mlp_compliance.make_checker(usage, ruleset, quiet=False, werror=True)
    with quickened():
        valid, *_ = mlp_compliance.main(str(path), f"{usage}_{ruleset}/common.yaml", checker)
    return bool(valid)


def official_rcp(
    logs: list[bytes], folder: Path, usage: str, ruleset: str
) -> tuple[bool, str, float]:
    """Verdict, message and normalization of the RCP checker."""
    for number, log in enumerate(logs):
        (folder / f"result_{number}.txt").write_bytes(log)
    with quickened():
        passed, message, normalization = rcp_checker.check_directory(
            str(folder), usage, ruleset, False, False, rcp_pass="pruned_rcps"
        )
    return bool(passed), message, float(normalization)
