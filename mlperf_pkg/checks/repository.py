"""The whole tree of a submission, as the repository checker wants it for git.

Source: mlperf_logging.repo_checker. It walks the tree without following links, so that a link to
a folder is neither tested by its name nor for where it leads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.infra.tree import Entry

SOURCE = "mlperf-logging, repo_checker"
LARGEST_BYTES = 50 << 20
FIRST_ROUND = (2, 0)


def check_repository(name: str, label: str, entries: Sequence[Entry]) -> Iterator[Finding]:
    """Judge the names, sizes and links of a submission's tree.

    ``name`` is that of its top folder, which is tested too; ``label`` begins the paths in reports.
    """
    if _is_odd(name):
        yield _bad_name(label or ".", name)
    above = f"{label}/" if label else ""
    for entry in entries:
        if entry.folder and entry.link is not None:
            continue
        if _is_odd(name := entry.name):
            yield _bad_name(above + entry.path, name)
        if entry.size > LARGEST_BYTES:
            yield _too_large(above + entry.path, entry.size)
        if entry.link is not None:
            yield from _link(above + entry.path, entry.link, entry.resolves)


def _is_odd(name: str) -> bool:
    return name.startswith(".") or " " in name


def _bad_name(path: str, name: str) -> Finding:
    return _finding(
        "REPO101",
        path,
        "a name that begins with a dot or holds a space",
        found=name,
        hint="rename it, or leave it out of the submission",
    )


def _too_large(path: str, size: int) -> Finding:
    return _finding(
        "REPO102",
        path,
        f"{size / (1 << 20):.1f} MiB, at most {LARGEST_BYTES >> 20} MiB may be uploaded",
        found=size,
        expected=LARGEST_BYTES,
    )


def _link(path: str, target: str, resolves: bool) -> Iterator[Finding]:
    """The checker looks for a link's target from its working directory, not from the link."""
    if not resolves:
        message = f"a broken link: there is no {target}"
        yield _finding("REPO103", path, message, basis=Basis.BOTH, found=target)
    elif not target.startswith("/"):
        yield _finding(
            "REPO104",
            path,
            f"the repository checker takes this link to {target} for broken, as it looks for it"
            " from its working directory",
            found=target,
            hint="put the file itself here",
        )


def _finding(code: str, path: str, message: str, **more: Any) -> Finding:
    fields = {"basis": Basis.OFFICIAL, "source": SOURCE, **more}
    return Finding(code=code, path=path, message=message, **fields)
