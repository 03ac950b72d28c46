"""Verifying a tree or an archive: that it is what was packed, and what the checks say of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

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
from mlperf_pkg.commands.archive.untar import Unpacked, untar
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Severity, Verdict, Verdicts
from mlperf_pkg.infra.folders import new_folder
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.rounds import round_of_tree


class Secrets(Struct, frozen=True):
    """What decrypts: a file of identities (age), else the passphrase that ``ask`` gives."""

    ask: Ask
    identities: Path | None = None


def verify_tree(
    place: Path, options: Options, *, manifest_required: bool = True
) -> tuple[HashedTree, Report]:
    """The files of a tree, and what integrity and the checks say of them.

    Raises:
        UserError: it cannot be read, or holds no log.
    """
    tree = hash_tree(place)
    wrong = list(check_manifest(tree, required=manifest_required))
    return tree, _report(place, str(place), options, wrong)


def verify_archive(
    archive: Path, options: Options, secrets: Secrets, extract: Path | None = None
) -> Report:
    """What checksum, manifest and the checks say of an archive.

    It is unpacked into a temporary folder, or into ``extract``, which is there in the end only if
    the archive is what was packed.

    Raises:
        UserError: it is no archive, cannot be read or decrypted, holds no log, or there is no
            place to unpack it.
    """
    if not archive.is_file():
        raise UserError(f"{archive}: no regular file")
    wrong = list(check_checksum(archive))
    encrypted = form_of(archive) is not None
    if encrypted and integrity_failed(wrong):
        return _unchecked(wrong)
    with TemporaryDirectory(prefix="mlperf-pkg-") as work, _folder(work, extract) as folder:
        plain = Path(work) / "plain" if encrypted else archive
        if encrypted:
            decrypt(archive, plain, secrets.identities, secrets.ask)
        _refuse_others(plain, archive)
        report = _verify_unpacked(plain, archive, folder, options, wrong)
        if integrity_failed(report.findings):
            shutil.rmtree(folder)  # so that it does not become ``extract``
        return report


def integrity_failed(findings: Iterable[Finding]) -> bool:
    """Whether something is not as it was packed."""
    return any(
        each.severity is Severity.ERROR and each.code.startswith("PACK") for each in findings
    )


def _verify_unpacked(
    plain: Path, archive: Path, folder: Path, options: Options, wrong: list[Finding]
) -> Report:
    try:
        unpacked = _unpack(plain, folder)
    except BadArchive as bad:
        path = bad.path or archive.name
        return _unchecked([*wrong, finding(bad.code, bad.message, path)])
    tree = hash_tree(_top(folder, unpacked))
    wrong += check_manifest(tree)
    wrong += _check_canonical(plain, archive.name, unpacked, tree)
    return _report(tree.root, str(archive), _rounded(options, archive, tree.root), wrong)


# ---- unpacking ----------------------------------------------------------------------------


@contextmanager
def _folder(work: str, extract: Path | None) -> Iterator[Path]:
    """The folder to unpack into, private until it is whole."""
    if extract is None:
        folder = Path(work) / "tree"
        folder.mkdir()
        yield folder
        return
    if extract.exists() or extract.is_symlink():
        raise UserError(f"{extract}: exists already; --extract takes the name of a new folder")
    try:
        with new_folder(extract, lambda _: False) as folder:
            yield folder
    except OSError as error:
        raise UserError(f"{extract}: cannot be written: {error.strerror}") from error


def _refuse_others(plain: Path, archive: Path) -> None:
    with plain.open("rb") as stream:
        if stream.read(len(GZIP)) != GZIP:
            raise UserError(f"{archive}: no {ENDING} archive, and none that is encrypted")


def _unpack(plain: Path, folder: Path) -> Unpacked:
    with plain.open("rb") as stream:
        return untar(Decompressor(stream).read, folder, plain.stat().st_size)


def _top(folder: Path, unpacked: Unpacked) -> Path:
    """The one folder that everything is in; where there is more, all of it."""
    inner = folder / min(unpacked.tops, default="")
    return inner if len(unpacked.tops) == 1 and inner.is_dir() else folder


# ---- judging ------------------------------------------------------------------------------


class _Differs(Exception):  # noqa: N818 - a way out
    """The archive is another from here on."""


def _check_canonical(
    plain: Path, name: str, unpacked: Unpacked, tree: HashedTree
) -> Iterator[Finding]:
    """Pack again what was unpacked: the same bytes must come out.

    So not even a bit that unpacking ignores can have changed.
    """
    if not unpacked.marked:
        message = "it was not packed by mlperf-pkg; nothing but its manifest vouches for it"
        yield finding("PACK106", message, name, Severity.NOTE)
    elif not _is_canonical(plain, tree):
        yield finding("PACK105", "it is not what packing its files gives, to the last byte", name)


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


def _rounded(options: Options, archive: Path, tree: Path) -> Options:
    """The round as given, else as the tree or the folders above the archive tell."""
    above = [each.name for each in archive.resolve().parents]
    if options.round or not (found := round_of_tree([tree.name, *above])):
        return options
    return replace(options, usage=options.usage or found[0], round=found[1])


def _report(place: Path, name: str, options: Options, wrong: Sequence[Finding]) -> Report:
    try:
        report = check([str(place)], options).report
    except UserError as error:
        if integrity_failed(wrong):
            return _unchecked(wrong)
        raise UserError(str(error).replace(str(place), name)) from error
    findings = sorted((*report.findings, *wrong), key=lambda each: each.sort_key)
    verdict = _doubted(report.verdict) if integrity_failed(wrong) else report.verdict
    return replace(report, findings=tuple(findings), verdict=verdict)


def _doubted(verdicts: Verdicts) -> Verdicts:
    """What is not what was packed cannot pass for it."""
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
