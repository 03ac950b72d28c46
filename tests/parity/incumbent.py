"""The official compliance checker, in process, with fresh state for each log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from mlperf_logging.compliance_checker import mlp_compliance


@dataclass(frozen=True)
class Official:
    """Its verdict on a log; ``crash`` is the exception that it raised, if it did."""

    passes: bool
    crash: str | None = None


def check(path: Path, usage: str, ruleset: str) -> Official:
    """Check one log, as if in a process of its own."""
    mlp_compliance.enqueued_configs.clear()
    checker = mlp_compliance.make_checker(usage, ruleset, quiet=True, werror=False)
    try:
        return Official(checker.check_file(str(path), f"{usage}_{ruleset}/common.yaml"))
    except Exception as error:  # noqa: BLE001 - any exception is a crash
        return Official(False, f"{type(error).__name__}: {error}")


@contextmanager
def cached_rules() -> Iterator[None]:
    """Let the checker parse each of its rule files only once, and log nothing."""
    logging.disable(logging.CRITICAL)
    try:
        with rules_parsed_once():
            yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def rules_parsed_once() -> Iterator[None]:
    """Let the checker parse each of its rule files only once."""
    before, mlp_compliance.yaml = (
        mlp_compliance.yaml,
        SimpleNamespace(load=_load, BaseLoader=yaml.BaseLoader),
    )
    try:
        yield
    finally:
        mlp_compliance.yaml = before


def _load(stream: Any, Loader: Any) -> Any:  # noqa: N803 - called by that name
    return _parsed(stream.name)


@cache
def _parsed(name: str) -> Any:
    return yaml.load(Path(name).read_text("utf-8"), yaml.BaseLoader)
