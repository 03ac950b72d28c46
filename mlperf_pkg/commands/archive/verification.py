"""Verify a tree or an archive: it must be what was packed, and pass the checks."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.fold import tool
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.archive.compression import GZIP, Decompressor
from mlperf_pkg.commands.archive.encryption import Ask, decrypt, form_of
from mlperf_pkg.commands.archive.errors import BadArchive
from mlperf_pkg.commands.archive.hashed_tree import HashedTree, hash_tree
from mlperf_pkg.commands.archive.integrity import check_checksum, check_manifest, finding
from mlperf_pkg.commands.archive.packing import ENDING, compress
from mlperf_pkg.commands.archive.untar import GIB, LARGEST_GIB, Unpacked, untar
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Severity, Verdict, Verdicts, folded, in_order
from mlperf_pkg.infra.files import new_folder, scratch_folder
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.rounds import round_of_tree


class Secrets(Struct, frozen=True):
    """The secrets to decrypt with: a file of age identities, else the passphrase from ``ask``."""

    ask: Ask
    identities: Path | None = None


def verify_tree(
    root: Path, options: Options, *, manifest_required: bool = True
) -> tuple[HashedTree, Report]:
    """Return the files of a tree, and the report on its integrity and of its checks.

    Raises:
        UserError: the tree cannot be read, or holds no log.
    """
    tree = hash_tree(root)
    findings = list(check_manifest(tree, required=manifest_required))
    return tree, report_on(root, str(root), options, findings)


def verify_archive(
    archive: Path,
    options: Options,
    secrets: Secrets,
    extract: Path | None = None,
    *,
    largest: int = LARGEST_GIB * GIB,
) -> Report:
    """Return the report on the checksum and the manifest of an archive, and of its checks.

    The archive is unpacked into a temporary folder, which the next call removes if this process is
    killed, or into ``extract``, which exists afterwards only if nothing has changed since packing.
    ``largest`` is the limit of the unpacked bytes.

    Raises:
        UserError: it is not an archive, cannot be read or decrypted, holds no log, or cannot be
            unpacked there.
    """
    if not archive.is_file():
        raise UserError(f"{archive}: not a regular file")
    findings = list(check_checksum(archive))
    encrypted = form_of(archive) is not None
    if encrypted and integrity_failed(findings):
        return _unchecked(findings)
    with scratch_folder(Path(gettempdir())) as work, _folder(work, extract) as folder:
        plain = work / "plain" if encrypted else archive
        if encrypted:
            decrypt(archive, plain, secrets.identities, secrets.ask)
        _require_gzip(plain, archive)
        report = _verify_unpacked(plain, archive, folder, options, findings, largest=largest)
        if integrity_failed(report.findings):
            shutil.rmtree(folder)  # so that it does not become ``extract``
        return report


def integrity_failed(findings: Iterable[Finding]) -> bool:
    """Return whether a finding says that a file is not as it was packed."""
    return any(f.severity is Severity.ERROR and f.code.startswith("PACK") for f in findings)


def _verify_unpacked(
    plain: Path,
    archive: Path,
    folder: Path,
    options: Options,
    findings: list[Finding],
    *,
    largest: int,
) -> Report:
    try:
        unpacked = _unpack(plain, folder, largest)
    except BadArchive as bad:
        path = bad.path or archive.name
        return _unchecked([*findings, finding(bad.code, bad.message, path)])
    tree = hash_tree(_top(folder, unpacked))
    findings += check_manifest(tree)
    findings += _check_canonical(plain, archive.name, unpacked, tree)
    return report_on(tree.root, str(archive), _with_round(options, archive, tree.root), findings)


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
        raise UserError(f"{extract}: exists already; --extract expects a new folder")
    try:
        with new_folder(extract, lambda _: False) as folder:
            yield folder
    except OSError as error:
        raise UserError(f"{extract}: cannot be written: {error.strerror}") from error


def _require_gzip(plain: Path, archive: Path) -> None:
    with plain.open("rb") as stream:
        if stream.read(len(GZIP)) != GZIP:
            raise UserError(f"{archive}: not a {ENDING} archive, plain or encrypted")


def _unpack(plain: Path, folder: Path, largest: int) -> Unpacked:
    with plain.open("rb") as stream:
        return untar(Decompressor(stream).read, folder, largest)


def _top(folder: Path, unpacked: Unpacked) -> Path:
    """Return the only folder at the top of an archive; if there is more, the folder of all."""
    inner = folder / min(unpacked.tops, default="")
    return inner if len(unpacked.tops) == 1 and inner.is_dir() else folder


# ---- judging ------------------------------------------------------------------------------


class _Differs(Exception):  # noqa: N818 - ends a comparison, is not an error
    """The archive has other bytes."""


def _check_canonical(
    plain: Path, name: str, unpacked: Unpacked, tree: HashedTree
) -> Iterator[Finding]:
    """Check that packing the unpacked files again gives the same bytes.

    So a change is found even in a bit that unpacking ignores.
    """
    if not unpacked.marked:
        message = "not packed by mlperf-pkg: only its manifest vouches for its files"
        yield finding("PACK106", message, name, Severity.NOTE)
    elif not _is_canonical(plain, tree):
        yield finding("PACK105", "packing its files again gives other bytes", name)


def _is_canonical(plain: Path, tree: HashedTree) -> bool:
    with plain.open("rb") as stream:

        def compare(data: bytes) -> None:
            if stream.read(len(data)) != data:
                raise _Differs

        try:
            compress(compare, tree.root.name, tree.root, tree.files)
        except _Differs:
            return False
        return not stream.read(1)


def _with_round(options: Options, archive: Path, tree: Path) -> Options:
    """Add the round that the name of the tree or of a folder above the archive has, if none."""
    above = [parent.name for parent in archive.resolve().parents]
    if options.round or not (named := round_of_tree([tree.name, *above])):
        return options
    usage, round_ = named
    return replace(options, usage=options.usage or usage, round=round_)


def report_on(root: Path, name: str, options: Options, integrity: Sequence[Finding] = ()) -> Report:
    """Check a tree that reports call ``name``, and add the findings about its integrity."""
    failed = integrity_failed(integrity)
    try:
        report = check([str(root)], options).report
    except UserError as error:
        if failed:
            return _unchecked(integrity)
        raise UserError(str(error).replace(str(root), name)) from error
    findings = in_order((*report.findings, *folded(integrity)))
    verdict = _without_pass(report.verdict) if failed else report.verdict
    return replace(report, findings=findings, verdict=verdict)


def _without_pass(verdicts: Verdicts) -> Verdicts:
    """A tree that is not what was packed cannot pass."""
    failed = verdicts.official is Verdict.FAIL
    return Verdicts(Verdict.FAIL if failed else Verdict.NOT_CHECKED, Verdict.FAIL)


def _unchecked(findings: Sequence[Finding]) -> Report:
    return Report(
        tool=tool(),
        usage="training",
        round=None,
        round_reason="the files were not checked",
        verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.FAIL),
        findings=tuple(findings),
    )
