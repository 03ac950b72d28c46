"""What is in an input and is not read: each such file is named once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlperf_pkg.findings import Basis, Finding, Severity, Unchecked
from mlperf_pkg.rulebook.load import codes
from mlperf_pkg.submission.model import Input, Place, Unread, Why


def check_input(contents: Input) -> Iterator[Finding]:
    """Report the links that are not followed and the files that are not read."""
    for place in contents.skipped:
        message = "not checked: the link leads out of the checked folder"
        yield _finding("TREE102", message, place)
    yield from map(_unread, contents.unread)


def _unread(file: Unread) -> Finding:
    match file.why:
        case Why.PROBLEM:
            return _finding("TREE111", "not read: {found:s}", file.place, found=file.reason)
        case Why.NOT_A_LOG:
            message, code = "not read as a log: {found:s}", "TREE112"
        case Why.UNCHECKED:
            return not_read(file.place.label or ".", file.reason)
        case Why.TWICE:
            message, code = "judged once: {found:s}", "TREE113"
    return _finding(code, message, file.place, severity=Severity.NOTE, found=file.reason)


def not_read(path: str, reason: str) -> Unchecked:
    """Report a file or folder that cannot be read and was not checked."""
    return Unchecked(
        code="TREE114",
        message="cannot be read: {found:s}; not checked",
        path=path,
        found=reason,
        source=codes()["TREE114"].source,
    )


def _finding(code: str, message: str, place: Place, **fields: Any) -> Finding:
    defaults = {"severity": Severity.WARNING, "basis": Basis.ADVICE}
    source = codes()[code].source
    return Finding(
        code=code, message=message, path=place.label, source=source, **{**defaults, **fields}
    )
