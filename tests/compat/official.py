"""The official package checker as its command line runs it, in this process."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.package_checker import package_checker

from tests.parity.incumbent import quickened

FINAL = "PACKAGE CHECKER FOUND"


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} - {record.getMessage()}")


@contextmanager
def _kept() -> Iterator[list[str]]:
    root, kept = logging.getLogger(), _Kept()
    level = root.level
    root.addHandler(kept)
    root.setLevel(logging.INFO)
    try:
        yield kept.lines
    finally:
        root.removeHandler(kept)
        root.setLevel(level)


def package_checker_run(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Return its exit status and its log lines; it writes into the submission."""
    args = package_checker.get_parser().parse_args(arguments)
    flags = (args.rcp_bypass, args.rcp_bert_train_samples, args.seed_checker_bypass)
    mlp_compliance.enqueued_configs.clear()
    with _kept() as lines, quickened(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            package_checker.check_training_package(
                args.folder, args.usage, args.ruleset, args.quiet, args.werror, *flags, "log"
            )
        except Exception:  # noqa: BLE001 - whatever it raises
            return 1, lines
        finally:
            mlp_compliance.enqueued_configs.clear()
    return 0, lines


def outcomes(lines: Sequence[str]) -> list[str]:
    """Return the lines on which scripts rely, in an order that does not depend on the folder's."""
    return sorted(
        line
        for line in lines
        if FINAL in line or "RCP Test" in line or "comply" in line or "Seed checker failed" in line
        if "found the following" not in line
    )
