"""The official compliance checker, in process, with fresh state for each log."""

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import blake2b
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any
from unittest import mock

import yaml
from mlperf_logging.compliance_checker import mlp_compliance, mlp_parser

_TOKEN = ":::MLLOG "
_BEFORE_RECORD = f".*{_TOKEN}"
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # which reads the same, if it is there
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
    """Let the tools do once what they do for every log, or for every reader of a log.

    They parse each rule file and compile each rule once, check and parse a log once by the same
    rules, search the least mean of a reference point once, and find the record of a line in linear
    time. ``test_incumbent.py`` compares.
    """
    module = SimpleNamespace(load=_load, BaseLoader=yaml.BaseLoader)
    reference_points = sys.modules.get("mlperf_logging.rcp_checker.rcp_checker")
    with ExitStack() as patches:
        patch = patches.enter_context
        patch(mock.patch.object(mlp_compliance, "yaml", module))
        patch(mock.patch.object(re, "sub", sub))
        patch(mock.patch.object(mlp_compliance, "eval", _eval, create=True))
        patch(mock.patch.object(mlp_compliance, "exec", _exec, create=True))
        patch(mock.patch.object(mlp_compliance.ComplianceChecker, "check_file", _checked))
        for name, parser in _PARSERS.items():
            patch(mock.patch.object(mlp_parser, name, parser))
        if reference_points:
            checker, name = reference_points.RCP_Checker, "_find_min_acceptable_mean"
            patch(mock.patch.object(checker, name, _least_mean(getattr(checker, name))))
        yield


@cache
def _compiled(code: str, mode: str) -> CodeType:
    return compile(code, "<string>", mode)


def _eval(code: str, *spaces: Any) -> Any:
    return eval(_compiled(code, "eval"), *spaces)


def _exec(code: str, *spaces: Any) -> None:
    exec(_compiled(code, "exec"), *spaces)


def _parser(parse_file: Any) -> Callable[[str], tuple[list[Any], list[Any]]]:
    parse: Any = parse_file.__globals__["parse_generator"]

    @lru_cache(maxsize=64)
    def parsed(content: bytes) -> tuple[list[Any], list[Any]]:
        records, errors = parse(TextIOWrapper(BytesIO(content), encoding="latin-1"))
        return records, errors

    return lambda path: parsed(Path(path).read_bytes())


_PARSERS = {
    name: _parser(value)
    for name, value in vars(mlp_parser).items()
    if name.startswith("parse_file_")
}


@dataclass
class _Check:
    """What a check logged, and the warnings and messages that it left in its checker."""

    logged: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    left: tuple[dict[str, str], dict[str, str], list[str]] | None = None

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Log, as the module ``logging`` does, and keep it."""

        def log(*arguments: Any) -> None:
            self.logged.append((name, arguments))
            getattr(logging, name)(*arguments)

        return log


@lru_cache(maxsize=4096)
def _check_of(*key: Any) -> _Check:
    return _Check()


_check_file = mlp_compliance.ComplianceChecker.check_file


def _checked(self: Any, path: str, config: str) -> bool:
    """Do as ``check_file``, which is called by each tool and for each state of other files."""
    if self.warnings or self.has_messages() or mlp_compliance.enqueued_configs:
        return bool(_check_file(self, path, config))
    digest = blake2b(Path(path).read_bytes()).digest()
    check = _check_of(digest, config, self.ruleset, self.quiet, self.werror)
    if check.left is None:
        check.logged.clear()  # of a check that crashed
        with mock.patch.object(mlp_compliance, "logging", check):
            _check_file(self, path, config)
        check.left = ({**self.warnings}, {**self.overwritable}, [*self.not_overwritable])
    else:
        logging.info("Running compliance on file: %s", path)
        for name, arguments in check.logged[1:]:
            getattr(logging, name)(*arguments)
        self.warnings, self.overwritable = {**check.left[0]}, {**check.left[1]}
        self.not_overwritable = [*check.left[2]]
    return not self.has_messages()


_LEAST_MEANS: dict[tuple[Any, ...], Any] = {}


def _least_mean(search: Callable[..., Any]) -> Callable[..., Any]:
    """Do as ``_find_min_acceptable_mean``, whose search asks SciPy 30 times."""

    def least_mean(self: Any, *point: Any) -> Any:
        key = (self.submission_runs, self.tolerance, self.alpha, *point)
        if key not in _LEAST_MEANS:
            _LEAST_MEANS[key] = search(self, *point)
        return _LEAST_MEANS[key]

    return least_mean


def sub(pattern: Any, by: Any, text: str, *more: Any, **named: Any) -> str:
    """Do as ``re.sub`` with a line; its time is quadratic for the pattern that precedes a
    record.
    """
    if pattern == _BEFORE_RECORD and by == _TOKEN and _TOKEN in text:
        return text[text.rindex(_TOKEN) :]
    return _sub(pattern, by, text, *more, **named)


def _load(stream: Any, Loader: Any) -> Any:  # noqa: N803 - called by that name
    return _parsed(stream.name)


@cache
def _parsed(name: str) -> Any:
    return yaml.load(Path(name).read_text("utf-8"), _LOADER)
