"""Whether the files of a tree, or an archive as a whole, are those that were packed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mlperf_pkg.commands.archive.checksum import SUFFIX, digest_of, expected_of
from mlperf_pkg.commands.archive.hashed_tree import HashedFile, HashedTree
from mlperf_pkg.commands.builder.manifest import MANIFEST, ManifestEntry, read_manifest
from mlperf_pkg.findings import Basis, Finding, Severity

_SOURCE = "mlperf-pkg"
_LARGEST_MANIFEST = 64 << 20


def finding(
    code: str, message: str, path: str, severity: Severity = Severity.ERROR, **more: str | int
) -> Finding:
    """A finding about integrity: what reviewers get must be what was checked and packed."""
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
        message = f"there is no checksum file {beside.name} beside it"
        yield finding("PACK107", message, archive.name, Severity.NOTE)
        return
    expected = expected_of(beside.read_bytes().decode("utf-8", "replace"), archive.name)
    found = digest_of(archive)
    if expected is None:
        yield finding("PACK101", f"no checksum of {archive.name} in it", beside.name)
    elif found != expected:
        message = f"SHA-256 is {found}, but {beside.name} says {expected}"
        yield finding("PACK101", message, archive.name, found=found, expected=expected)


def check_manifest(tree: HashedTree, *, required: bool = True) -> Iterator[Finding]:
    """Compare the files of a tree with its manifest."""
    for path, what in tree.unfit.items():
        yield finding("PACK206", what, path)
    own = next((file for file in tree.files if file.path == MANIFEST), None)
    if own is None:
        if required:
            yield finding("PACK201", "nothing tells what the files were", MANIFEST)
        return
    if own.size > _LARGEST_MANIFEST:
        yield finding("PACK202", f"larger than {_LARGEST_MANIFEST >> 20} MiB", MANIFEST)
        return
    try:
        listed = read_manifest((tree.root / MANIFEST).read_bytes())
    except ValueError as error:
        yield finding("PACK202", str(error), MANIFEST)
        return
    yield from _compare(listed, {file.path: file for file in tree.files if file is not own})


def _compare(listed: dict[str, ManifestEntry], found: dict[str, HashedFile]) -> Iterator[Finding]:
    for path in sorted(listed.keys() | found.keys()):
        if path not in found:
            yield finding("PACK203", f"{MANIFEST} lists it, but it is not there", path)
        elif path not in listed:
            yield finding("PACK205", f"{MANIFEST} does not list it", path)
        else:
            yield from _compare_one(listed[path], found[path])


def _compare_one(listed: ManifestEntry, found: HashedFile) -> Iterator[Finding]:
    if found.size != listed.size:
        message = f"{found.size} bytes, but {listed.size} in {MANIFEST}"
        yield finding("PACK204", message, found.path, found=found.size, expected=listed.size)
    elif found.sha256 != listed.sha256:
        message = f"its content is not what {MANIFEST} tells (SHA-256)"
        yield finding("PACK204", message, found.path, found=found.sha256, expected=listed.sha256)
