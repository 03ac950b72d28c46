"""The official package checker as its command line runs it, in this process."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.package_checker import package_checker

from tests.helpers.official import kept
from tests.parity.incumbent import quickened

FINAL = "PACKAGE CHECKER FOUND"


def package_checker_run(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Return its exit status and its log lines; it writes into the submission."""
    args = package_checker.get_parser().parse_args(arguments)
    flags = (args.rcp_bypass, args.rcp_bert_train_samples, args.seed_checker_bypass)
    mlp_compliance.enqueued_configs.clear()
    status = 0
    with kept() as records, quickened(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            package_checker.check_training_package(
                args.folder, args.usage, args.ruleset, args.quiet, args.werror, *flags, "log"
            )
        except Exception:  # noqa: BLE001 - whatever it raises
            status = 1
    mlp_compliance.enqueued_configs.clear()
    return status, [f"{record.levelname} - {record.getMessage()}" for record in records]


def outcomes(lines: Sequence[str]) -> list[str]:
    """Return the lines on which scripts rely, in an order that does not depend on the folder's."""
    return sorted(
        line
        for line in lines
        if FINAL in line or "RCP Test" in line or "comply" in line or "Seed checker failed" in line
        if "found the following" not in line
    )
