"""Verify a tree or an archive: it must be what was packed, and pass the checks."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.fold import tool
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.archive import encryption, tar
from mlperf_pkg.commands.archive.encryption import Ask
from mlperf_pkg.commands.archive.tar import ENDING, HashedFile, HashedTree
from mlperf_pkg.commands.builder import manifest as manifests
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Severity, Verdict, Verdicts, folded, in_report
from mlperf_pkg.infra.files import new_folder, scratch_folder
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import open_file, read_file
from mlperf_pkg.infra.streams import temporary_files
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.rulebook.rounds import round_of_tree

SUFFIX = ".sha256"
"""The ending of checksum files, which ``sha256sum -c`` reads."""

_CHECKSUM = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")


def verify_tree(
    root: Path, options: Options, *, manifest_required: bool = True
) -> tuple[HashedTree, Report]:
    """Return the files of a tree, and the report on its integrity and of its checks.

    Raises:
        UserError: the tree cannot be read, or holds no log.
    """
    tree = tar.hash_tree(root)
    findings = list(check_manifest(tree, required=manifest_required))
    return tree, report_on(root, str(root), options, findings)


def verify_archive(
    archive: Path,
    options: Options,
    ask: Ask,
    identities: Path | None = None,
    extract: Path | None = None,
    *,
    largest: int = tar.LARGEST_GIB * tar.GIB,
) -> Report:
    """Return the report on the checksum and the manifest of an archive, and of its checks.

    It is decrypted with the age identities in a file, else with the passphrase from ``ask``, and
    unpacked into a temporary folder, which the next call removes if this process is killed,
    or into ``extract``, which exists afterwards only if nothing has changed since packing.
    ``largest`` is the limit of the unpacked bytes.

    Raises:
        UserError: it is not an archive, cannot be read or decrypted, holds no log, or cannot be
            unpacked there.
    """
    if not archive.is_file():
        raise UserError(f"{archive}: not a regular file")
    findings = list(check_checksum(archive))
    is_encrypted = encryption.form_of(archive) is not None
    if is_encrypted and integrity_failed(findings):
        return _unchecked(findings)
    with (
        temporary_files() as temporary,
        scratch_folder(temporary) as work,
        _folder(work, extract) as folder,
    ):
        plain = archive
        if is_encrypted:
            plain = work / "plain"
            encryption.decrypt(archive, plain, identities, ask)
        try:
            tree, tree_findings = _unpacked(plain, archive, folder, largest)
        except tar.BadArchive as bad:
            findings.append(finding_of(bad.code, bad.message, bad.path or archive.name))
            report = _unchecked(findings)
        else:
            findings += tree_findings
            options = _with_round(options, tree.root, archive)
            report = report_on(tree.root, str(archive), options, findings)
        if integrity_failed(report.findings):
            shutil.rmtree(folder)  # so that it does not become ``extract``
        return report


def _with_round(options: Options, tree: Path, archive: Path) -> Options:
    """Return options with the round that the tree or a folder above the archive is named after."""
    if options.round:
        return options
    names = [tree.name, *(parent.name for parent in archive.resolve().parents)]
    round_ = round_of_tree(names)
    if round_ is None:
        return options
    return replace(options, usage=options.usage or round_[0], round=round_[1])


def integrity_failed(findings: Iterable[Finding]) -> bool:
    """Return whether a finding says that a file is not as it was packed."""
    for problem in findings:
        if problem.severity is Severity.ERROR and problem.code.startswith("PACK"):
            return True
    return False


def _unpacked(
    plain: Path, archive: Path, folder: Path, largest: int
) -> tuple[HashedTree, list[Finding]]:
    """Unpack an archive; return its tree, and findings about its manifest and its bytes."""
    with open_file(plain) as stream:
        if stream.read(len(tar.GZIP)) != tar.GZIP:
            raise UserError(f"{archive}: not a {ENDING} archive, plain or encrypted")
        stream.seek(0)
        tops, packed_by = tar.untar(tar.GzipDecompressor(stream).read, folder, largest)
    inner = folder / min(tops, default="")
    is_only = len(tops) == 1 and inner.is_dir()
    tree = tar.hash_tree(inner if is_only else folder)
    findings = list(check_manifest(tree))
    if packed_by != tar.compressor():
        reason = "the archive was not packed by mlperf-pkg"
        if packed_by is not None:
            reason = (
                f"the archive was compressed by {packed_by or 'another version of deflate'}, but"
                f" {tar.compressor()} is installed"
            )
        message = f"{reason}; so the files of the archive were compared only with the manifest"
        findings.append(finding_of("PACK106", message, archive.name))
    elif _digest_of_packed(tree) != digest_of(plain):
        message = "packing the files of the archive again gives different bytes"
        findings.append(finding_of("PACK105", message, archive.name))
    return tree, findings


def _digest_of_packed(tree: HashedTree) -> str:
    """Pack a tree again, which gives the same bytes.

    So a change is found even in a bit that unpacking ignores.
    """
    digest = hashlib.sha256()
    for data in tar.compress(tree.root.name, tree.root, tree.files):
        digest.update(data)
    return digest.hexdigest()


# ---- unpacking ----------------------------------------------------------------------------


@contextmanager
def _folder(work: Path, extract: Path | None) -> Iterator[Path]:
    """Provide the folder to unpack into, which nobody else sees before it is complete."""
    if extract is None:
        folder = work / "tree"
        folder.mkdir()
        yield folder
        return
    if extract.exists() or extract.is_symlink():
        raise UserError(f"{extract} exists already; --extract expects a new folder")
    try:
        with new_folder(extract, lambda _: False) as folder:
            yield folder
    except OSError as error:
        raise UserError(f"{extract}: cannot be written: {error.strerror}") from error


# ---- judging ------------------------------------------------------------------------------


def report_on(root: Path, name: str, options: Options, integrity: Sequence[Finding] = ()) -> Report:
    """Check a tree that reports call ``name``, and add the findings about its integrity."""
    failed = integrity_failed(integrity)
    try:
        report = check([str(root)], replace(options, complete=True)).report
    except UserError as error:
        if failed:
            return _unchecked(integrity)
        raise UserError(str(error).replace(str(root), name)) from error
    findings = in_report((*report.findings, *folded(integrity)))
    verdict = report.verdict
    if failed:  # a tree that is not what was packed cannot pass
        official = Verdict.FAIL if verdict.official is Verdict.FAIL else Verdict.NOT_CHECKED
        verdict = Verdicts(official, Verdict.FAIL)
    return replace(report, findings=findings, verdict=verdict)


def _unchecked(findings: Sequence[Finding]) -> Report:
    return Report(
        tool=tool(),
        usage="training",
        round=None,
        round_reason="the files were not checked",
        verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.FAIL),
        findings=in_report(findings),
    )


# ---- integrity ----------------------------------------------------------------------------


def check_checksum(archive: Path) -> Iterator[Finding]:
    """Compare an archive with the checksum file beside it."""
    beside = archive.with_name(archive.name + SUFFIX)
    if not beside.exists():
        message = f"there is no checksum file {beside.name} beside the archive"
        yield finding_of("PACK107", message, archive.name)
        return
    text = read_file(beside, MAX_BYTES).decode("utf-8", "replace")
    expected = _checksum_in(text, archive.name)
    digest = digest_of(archive)
    if expected is None:
        yield finding_of("PACK101", f"the file has no checksum of {archive.name}", beside.name)
    elif digest != expected:
        message = f"the SHA-256 is {digest}; expected {expected}, as in {beside.name}"
        yield finding_of("PACK101", message, archive.name, found=digest, expected=expected)


def _checksum_in(text: str, name: str) -> str | None:
    """Return the first checksum of a file of this name in the text of a checksum file."""
    for line in text.splitlines():
        match = _CHECKSUM.fullmatch(line)
        if match and match[2] == name:
            return match[1].lower()
    return None


def check_manifest(tree: HashedTree, *, required: bool = True) -> Iterator[Finding]:
    """Compare the files of a tree with its manifest."""
    for path, reason in tree.unfit.items():
        yield finding_of("PACK206", reason, path)
    files = {file.path: file for file in tree.files}
    own = files.pop(manifests.MANIFEST, None)
    if own is None:
        if required:
            yield finding_of(
                "PACK201",
                "there is no manifest, so the files were not compared",
                manifests.MANIFEST,
            )
    elif own.size > manifests.LARGEST:
        yield finding_of(
            "PACK202",
            f"the manifest is larger than {manifests.LARGEST >> 20} MiB, so it is not read",
            manifests.MANIFEST,
        )
    else:
        try:
            entries = manifests.read_manifest(tree.root)
        except ValueError as error:
            yield finding_of("PACK202", str(error), manifests.MANIFEST)
        else:
            yield from _compare(entries, files)


def _compare(
    entries: dict[str, manifests.ManifestEntry], files: dict[str, HashedFile]
) -> Iterator[Finding]:
    for path in sorted(entries.keys() | files.keys()):
        if path not in files:
            yield finding_of(
                "PACK203", f"this file is listed in {manifests.MANIFEST}, but does not exist", path
            )
            continue
        if path not in entries:
            yield finding_of("PACK205", f"this file is not listed in {manifests.MANIFEST}", path)
            continue
        file = files[path]
        entry = entries[path]
        if file.size != entry.size:
            message = (
                f"the file has {file.size} bytes; expected {entry.size}, as in {manifests.MANIFEST}"
            )
            yield finding_of("PACK204", message, path, found=file.size, expected=entry.size)
        elif file.sha256 != entry.sha256:
            message = f"the SHA-256 of the file differs from that in {manifests.MANIFEST}"
            yield finding_of("PACK204", message, path, found=file.sha256, expected=entry.sha256)


# ---- checksums ----------------------------------------------------------------------------


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """Return the digest of a file, in hexadecimal digits."""
    with open_file(path) as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()
