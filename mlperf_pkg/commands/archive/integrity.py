"""Check that the files of a tree, or an archive as a whole, are as they were packed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mlperf_pkg.commands.archive.checksum import SUFFIX, digest_of, expected_of
from mlperf_pkg.commands.archive.tar import HashedFile, HashedTree
from mlperf_pkg.commands.builder.manifest import MANIFEST, ManifestEntry, read_manifest
from mlperf_pkg.findings import Basis, Finding, Severity

_SOURCE = "mlperf-pkg: integrity of archives and trees"
_LARGEST_MANIFEST = 64 << 20


def finding(
    code: str, message: str, path: str, severity: Severity = Severity.ERROR, **more: str | int
) -> Finding:
    """Return a finding about integrity: reviewers must get what was checked and packed."""
    return Finding(
        code=code,
        message=message,
        path=path,
        severity=severity,
        basis=Basis.RULES if severity is Severity.ERROR else Basis.ADVICE,
        source=_SOURCE,
        **more,  # type: ignore[arg-type]
    )


def check_checksum(archive: Path) -> Iterator[Finding]:
    """Compare an archive with the checksum file beside it."""
    beside = archive.with_name(archive.name + SUFFIX)
    if not beside.exists():
        message = f"no checksum file {beside.name} beside it"
        yield finding("PACK107", message, archive.name, Severity.NOTE)
        return
    expected = expected_of(beside.read_bytes().decode("utf-8", "replace"), archive.name)
    digest = digest_of(archive)
    if expected is None:
        yield finding("PACK101", f"no checksum of {archive.name}", beside.name)
    elif digest != expected:
        message = f"SHA-256 is {digest}; expected {expected} as in {beside.name}"
        yield finding("PACK101", message, archive.name, found=digest, expected=expected)


def check_manifest(tree: HashedTree, *, required: bool = True) -> Iterator[Finding]:
    """Compare the files of a tree with its manifest."""
    for path, reason in tree.unfit.items():
        yield finding("PACK206", reason, path)
    own = next((file for file in tree.files if file.path == MANIFEST), None)
    if own is None:
        if required:
            yield finding("PACK201", "no manifest lists the files", MANIFEST)
        return
    if own.size > _LARGEST_MANIFEST:
        yield finding("PACK202", f"larger than {_LARGEST_MANIFEST >> 20} MiB", MANIFEST)
        return
    try:
        entries = read_manifest((tree.root / MANIFEST).read_bytes())
    except ValueError as error:
        yield finding("PACK202", str(error), MANIFEST)
        return
    yield from _compare(entries, {file.path: file for file in tree.files if file is not own})


def _compare(entries: dict[str, ManifestEntry], files: dict[str, HashedFile]) -> Iterator[Finding]:
    for path in sorted(entries.keys() | files.keys()):
        if path not in files:
            yield finding("PACK203", f"listed in {MANIFEST}, but does not exist", path)
        elif path not in entries:
            yield finding("PACK205", f"not listed in {MANIFEST}", path)
        else:
            yield from _compare_one(entries[path], files[path])


def _compare_one(entry: ManifestEntry, file: HashedFile) -> Iterator[Finding]:
    if file.size != entry.size:
        message = f"{file.size} bytes; expected {entry.size} as in {MANIFEST}"
        yield finding("PACK204", message, file.path, found=file.size, expected=entry.size)
    elif file.sha256 != entry.sha256:
        message = f"the content differs from {MANIFEST} (SHA-256)"
        yield finding("PACK204", message, file.path, found=file.sha256, expected=entry.sha256)
