"""The official compliance checker, in process, with fresh state for each log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import yaml
from mlperf_logging.compliance_checker import mlp_compliance

_TOKEN = ":::MLLOG "
_BEFORE_RECORD = f".*{_TOKEN}"
_sub = re.sub


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
    """Speed up the official checker and silence its logging."""
    logging.disable(logging.CRITICAL)
    try:
        with quickened():
            yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def quickened() -> Iterator[None]:
    """Let the tools parse each rule file only once, and find the record of a line in linear time."""
    module = SimpleNamespace(load=_load, BaseLoader=yaml.BaseLoader)
    with mock.patch.object(mlp_compliance, "yaml", module), mock.patch.object(re, "sub", sub):
        yield


def sub(pattern: Any, by: Any, text: str, *more: Any, **named: Any) -> str:
    """Do as ``re.sub`` with a line; its time is quadratic for the pattern that precedes a record."""
    if pattern == _BEFORE_RECORD and by == _TOKEN and _TOKEN in text:
        return text[text.rindex(_TOKEN) :]
    return _sub(pattern, by, text, *more, **named)


def _load(stream: Any, Loader: Any) -> Any:  # noqa: N803 - called by that name
    return _parsed(stream.name)


@cache
def _parsed(name: str) -> Any:
    return yaml.load(Path(name).read_text("utf-8"), yaml.BaseLoader)
