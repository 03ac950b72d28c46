"""The rulebook is compiled before the tests, as ``make test`` does: hundreds of them start a process."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.compile import compile_rulebook


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # which only the processes of pytest-xdist have
        with suppress(RulebookError):  # the tests of the rulebook report it
            compile_rulebook(data_folder("rules"))


def pytest_collection_finish() -> None:
    """Leave what all tests share to itself: 17,000 tests are much to search for garbage, and to copy in a fork."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let it be collected at the end, without which extension modules report leaks."""
    gc.unfreeze()
