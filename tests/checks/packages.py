"""The official package checker, in process, on trees that nobody else needs: it writes to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.package_checker import package_checker

SUCCESS = "PACKAGE CHECKER FOUND NO ERRORS, SUCCESS !"


def package_verdict(
    root: Path, caplog: pytest.LogCaptureFixture, usage: str = "training", ruleset: str = "2.0.0"
) -> str:
    """``pass``, ``fail``, or ``died`` where it raises."""
    mlp_compliance.enqueued_configs.clear()
    caplog.clear()
    bypasses = (False, False, False)
    try:
        with caplog.at_level("INFO"):
            package_checker.check_training_package(
                str(root), usage, ruleset, False, False, *bypasses, "log"
            )
    except Exception:  # noqa: BLE001 - whatever it raises
        return "died"
    finally:
        mlp_compliance.enqueued_configs.clear()
    return "pass" if SUCCESS in caplog.messages else "fail"
