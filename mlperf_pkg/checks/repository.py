"""All files of a submission, as the repository checker requires them for git.

Source: mlperf_logging.repo_checker. It does not follow links, so that a link to a folder is
checked neither for its name nor for its target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.infra.paths import Entry

SOURCE = "mlperf-logging, repo_checker"
MAX_BYTES = 50 << 20
FIRST_ROUND = (2, 0)


def check_repository(name: str, label: str, entries: Sequence[Entry]) -> Iterator[Finding]:
    """Check the names, sizes and links in a submission.

    ``name`` is the name of its top folder, which is checked too; ``label`` is the path of that
    folder in reports.
    """
    if _is_bad_name(name):
        yield _bad_name(label or ".", name)
    prefix = f"{label}/" if label else ""
    for entry in entries:
        if entry.folder and entry.link is not None:
            continue
        if _is_bad_name(entry.name):
            yield _bad_name(prefix + entry.path, entry.name)
        if entry.size > MAX_BYTES:
            yield _too_large(prefix + entry.path, entry.size)
        if entry.link is not None:
            yield from _link(prefix + entry.path, entry.link, entry.resolves)


def _is_bad_name(name: str) -> bool:
    return name.startswith(".") or " " in name


def _bad_name(path: str, name: str) -> Finding:
    return _finding(
        "REPO101",
        path,
        "the name starts with a dot or contains a space",
        found=name,
        hint="rename it, or leave it out of the submission",
    )


def _too_large(path: str, size: int) -> Finding:
    return _finding(
        "REPO102",
        path,
        f"the size is {{found:,}} bytes; expected at most {MAX_BYTES:,} ({MAX_BYTES >> 20} MiB)",
        found=size,
        expected=MAX_BYTES,
    )


def _link(path: str, target: str, resolves: bool) -> Iterator[Finding]:
    """Check a link; the official checker resolves its target in its own working directory."""
    if not resolves:
        message = "a broken link: {found:s} does not exist"
        yield _finding("REPO103", path, message, basis=Basis.BOTH, found=target)
    elif not target.startswith("/"):
        yield _finding(
            "REPO104",
            path,
            "the repository checker reports this link to {found:s} as broken, as it looks for the"
            " target in its own working directory",
            found=target,
            hint="replace the link by the file itself",
        )


def _finding(code: str, path: str, message: str, **fields: Any) -> Finding:
    defaults = {"basis": Basis.OFFICIAL, "source": SOURCE}
    return Finding(code=code, path=path, message=message, **{**defaults, **fields})
