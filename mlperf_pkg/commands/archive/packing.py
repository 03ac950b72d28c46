"""Write an archive and its checksum file, without sets that are not valid; verify it or a tree."""

import hashlib
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.fold import tool
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.archive import encryption, tar
from mlperf_pkg.commands.archive.encryption import Ask, Encryption, Form
from mlperf_pkg.commands.archive.tar import ENDING, HashedFile, HashedTree
from mlperf_pkg.commands.builder import manifest as manifests
from mlperf_pkg.commands.builder.plan import failures, line_of
from mlperf_pkg.commands.builder.writing import tables
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, folded, in_order
from mlperf_pkg.infra.archives import unfit
from mlperf_pkg.infra.files import new_folder, private_folder, scratch_folder
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import open_file, read_file
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, description_path, name
from mlperf_pkg.rulebook.rounds import round_of_tree

_OTHERS = (".7z", ".bz2", ".rar", ".tar", ".xz", ".zip", ".zst")  # what is not written


def name_of(tree: Path) -> str:
    """Return the name of a tree, which is also the only folder at the top of its archive.

    Raises:
        UserError: the name cannot be in an archive.
    """
    name = tree.resolve().name
    if reason := unfit(name):
        raise UserError(f"{tree}: cannot be packed under its name {name!r}: {reason}")
    return name


def default_target(tree: Path, form: Form | None) -> Path:
    """Return the default path of an archive, beside its tree.

    The official pack_submission.sh finds an archive by its name, so OFFICIAL has that name.
    """
    prefix = "mlperf_submission_" if form is Form.OFFICIAL else ""
    suffix = encryption.SUFFIXES[form] if form else ""
    return tree.resolve().with_name(f"{prefix}{name_of(tree)}{ENDING}{suffix}")


def written_names(target: Path, form: Form | None) -> list[str]:
    """Return the names of all files that ``pack`` writes, the archive last.

    Raises:
        UserError: the name of the archive cannot be in a checksum file, or is that of another
            format.
    """
    if not target.name or not target.name.isprintable() or "\\" in target.name:
        raise UserError(f"{target}: the name cannot be in a checksum file")
    if target.suffix.lower() in _OTHERS:
        raise UserError(f"{target}: the format is .tar.gz, not {target.suffix}")
    old = [target.name.removesuffix(ENDING) + ".sha1"] if form is Form.OFFICIAL else []
    return [*old, target.name + SUFFIX, target.name]


def pack(tree: HashedTree, target: Path, how: Encryption | None, *, force: bool) -> list[str]:
    """Pack a tree into ``target`` and its checksum file; add a manifest if it has none.

    Return lines with the name, the size and the checksum of the archive, and how to decrypt it.

    Raises:
        UserError: an entry cannot be packed or changed meanwhile, one of the files exists and
            ``force`` is not set, or a file cannot be read or written.
    """
    if tree.unfit:
        path = min(tree.unfit)
        raise UserError(f"{tree.root / path}: cannot be packed: {tree.unfit[path]}")
    is_listed = any(file.path == manifests.MANIFEST for file in tree.files)
    files = tree.files if is_listed else _with_manifest(tree.files)
    names = written_names(target, how.form if how else None)
    with private_folder(target.parent, names, replace=force) as new:
        archive = new / target.name
        with encryption.encrypting(archive, how) as sink:
            for data in tar.compress(name_of(tree.root), tree.root, files):
                sink(data)
        for name in names[:-1]:
            digest = digest_of(archive, name.rpartition(".")[2])
            (new / name).write_text(f"{digest}  {target.name}\n")
        size = archive.stat().st_size
    unpacked = f"{sum(file.size for file in files):,} bytes in {size:,}"
    lines = [f"packed {target}: {wording.counted(len(files), 'file')}, {unpacked}"]
    lines += [f"sha256 {digest}"]  # that of the last file beside it
    return lines + ([f"decrypt with: {encryption.command(how, target)}"] if how else [])


def _with_manifest(
    files: Collection[HashedFile], origins: Mapping[str, str | None] | None = None
) -> tuple[HashedFile, ...]:
    """Return files and a manifest of them, by path."""
    text = manifests.manifest_text(
        manifests.ManifestEntry(file.path, file.size, file.sha256, (origins or {}).get(file.path))
        for file in files
    )
    manifest = HashedFile.of(manifests.MANIFEST, text.encode())
    return tuple(sorted((*files, manifest), key=lambda file: file.path))


# ---- result sets that are not valid -------------------------------------------------------


def reasons(report: Report) -> dict[str, str]:
    """Return why ``build`` would leave out result sets of a tree, by their ids."""
    found = {}
    for row in report.result_sets:
        of_system = [f for f in report.findings if f.subject == description_path(row)]
        of_set = [f for f in report.findings if f.set == row.id]
        rejected = row.verdict.official is Verdict.FAIL
        if failed := failures(of_system, rejected=True) + failures(of_set, rejected=rejected):
            lines = [f"{row.path.removeprefix('results/')} is not valid:", *map(line_of, failed)]
            found[row.id] = "\n  ".join(lines)
    return found


def without_sets(
    tree: HashedTree, report: Report, ids: Collection[str], options: Options
) -> tuple[HashedTree, Report]:
    """Return a tree without some of its result sets, and the report on the rest.

    Descriptions and code that only these sets need are left out, too. The manifest and the tables
    that ``build`` wrote list the rest.

    Raises:
        UserError: a file cannot be copied to be checked.
    """
    needed: set[str] = set()
    dropped: set[str] = set()
    for row in report.result_sets:
        code = f"benchmarks/{name(row.path)}/"
        files = (f"{row.path}/", f"results/{row.system}/", f"{description_path(row)}/", code)
        (dropped if row.id in ids else needed).update(files)
    tops = tuple(dropped - needed)
    left = replace(tree, files=tuple(f for f in tree.files if not f"{f.path}/".startswith(tops)))
    checked = _checked(left, replace(options, usage=report.usage, round=report.round))
    return replace(left, files=_listing(left, checked, options)), checked


def _checked(tree: HashedTree, options: Options) -> Report:
    """Check a copy of the files in a tree of the same name."""
    with scratch_folder(Path(gettempdir())) as work:
        root = work / tree.root.resolve().name
        for file in tree.files:
            target = root / file.path
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(tree.root / file.path, target, follow_symlinks=False)
            except OSError as error:
                raise UserError(
                    f"{tree.root / file.path}: cannot be copied: {error.strerror}"
                ) from error
        return report_on(root, str(tree.root), options)


def _listing(tree: HashedTree, report: Report, options: Options) -> tuple[HashedFile, ...]:
    """Return the files with new tables and a new manifest, if the tree has a manifest."""
    files = {file.path: file for file in tree.files}
    if manifests.MANIFEST not in files:
        return tree.files
    entries = manifests.read_manifest(tree.root)
    for path, text in tables(report, options.config).items():
        if path in files and entries[path].origin is None:
            files[path] = HashedFile.of(path, text.encode())
    del files[manifests.MANIFEST]
    return _with_manifest(files.values(), {path: entry.origin for path, entry in entries.items()})


# ---- messages -----------------------------------------------------------------------------


def refusal(report: Report, *, keep_invalid: bool) -> str | None:
    """Return why a tree is not packed, None if it may be."""
    if integrity_failed(report.findings):
        return "the tree does not match its manifest, or contains something that cannot be packed"
    if keep_invalid or not report.has_errors:
        return None
    return (
        "fix the errors, or pack the tree anyway with --invalid keep;"
        " --invalid drop leaves out result sets that are not valid, if any others are valid"
    )


# ---- verification -------------------------------------------------------------------------

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
    plain, encrypted = archive, encryption.form_of(archive) is not None
    if encrypted and integrity_failed(findings):
        return _unchecked(findings)
    with scratch_folder(Path(gettempdir())) as work, _folder(work, extract) as folder:
        if encrypted:
            plain = work / "plain"
            encryption.decrypt(archive, plain, identities, ask)
        try:
            tree, found = _unpacked(plain, archive, folder, largest)
        except tar.BadArchive as bad:
            path = bad.path or archive.name
            report = _unchecked([*findings, finding(bad.code, bad.message, path)])
        else:
            # The round that the name of the tree or of a folder above the archive has.
            above = [parent.name for parent in archive.resolve().parents]
            if not options.round and (named := round_of_tree([tree.root.name, *above])):
                options = replace(options, usage=options.usage or named[0], round=named[1])
            report = report_on(tree.root, str(archive), options, [*findings, *found])
        if integrity_failed(report.findings):
            shutil.rmtree(folder)  # so that it does not become ``extract``
        return report


def integrity_failed(findings: Iterable[Finding]) -> bool:
    """Return whether a finding says that a file is not as it was packed."""
    return any(f.severity is Severity.ERROR and f.code.startswith("PACK") for f in findings)


def _unpacked(
    plain: Path, archive: Path, folder: Path, largest: int
) -> tuple[HashedTree, list[Finding]]:
    """Unpack an archive; return its tree, and findings about its manifest and its bytes."""
    with open_file(plain) as stream:
        if stream.read(len(tar.GZIP)) != tar.GZIP:
            raise UserError(f"{archive}: not a {ENDING} archive, plain or encrypted")
        stream.seek(0)
        tops, is_marked = tar.untar(tar.Decompressor(stream).read, folder, largest)
    inner = folder / min(tops, default="")
    is_only = len(tops) == 1 and inner.is_dir()
    tree = tar.hash_tree(inner if is_only else folder)
    findings = list(check_manifest(tree))
    if is_marked:
        # This gives the same bytes: a change is found even in a bit that unpacking ignores.
        packed_again = hashlib.sha256()
        for data in tar.compress(tree.root.name, tree.root, tree.files):
            packed_again.update(data)
        if packed_again.hexdigest() != digest_of(plain):
            message = "packing its files again gives other bytes"
            findings.append(finding("PACK105", message, archive.name))
    else:
        message = "not packed by mlperf-pkg: only its manifest vouches for its files"
        findings.append(finding("PACK106", message, archive.name, Severity.NOTE))
    return tree, findings


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


# ---- judging ------------------------------------------------------------------------------


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
    verdict = report.verdict
    if failed:  # a tree that is not what was packed cannot pass
        is_fail = verdict.official is Verdict.FAIL
        verdict = Verdicts(Verdict.FAIL if is_fail else Verdict.NOT_CHECKED, Verdict.FAIL)
    return replace(report, findings=findings, verdict=verdict)


def _unchecked(findings: Sequence[Finding]) -> Report:
    return Report(
        tool=tool(),
        usage="training",
        round=None,
        round_reason="the files were not checked",
        verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.FAIL),
        findings=tuple(findings),
    )


# ---- integrity ----------------------------------------------------------------------------


def finding(
    code: str, message: str, path: str, severity: Severity = Severity.ERROR, **more: Any
) -> Finding:
    """Return a finding about integrity: reviewers must get what was checked and packed."""
    basis = Basis.RULES if severity is Severity.ERROR else Basis.ADVICE
    source = "mlperf-pkg: integrity of archives and trees"
    return Finding(code, message, path, None, severity, basis, source=source, **more)


def check_checksum(archive: Path) -> Iterator[Finding]:
    """Compare an archive with the checksum file beside it."""
    beside = archive.with_name(archive.name + SUFFIX)
    if not beside.exists():
        message = f"no checksum file {beside.name} beside it"
        yield finding("PACK107", message, archive.name, Severity.NOTE)
        return
    lines = read_file(beside, MAX_BYTES).decode("utf-8", "replace").splitlines()
    matches = filter(None, map(_CHECKSUM.fullmatch, lines))
    expected = next((match[1].lower() for match in matches if match[2] == archive.name), None)
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
    files = {file.path: file for file in tree.files}
    own = files.pop(manifests.MANIFEST, None)
    if own is None:
        if required:
            yield finding("PACK201", "no manifest lists the files", manifests.MANIFEST)
    elif own.size > manifests.LARGEST:
        yield finding("PACK202", f"larger than {manifests.LARGEST >> 20} MiB", manifests.MANIFEST)
    else:
        try:
            entries = manifests.read_manifest(tree.root)
        except ValueError as error:
            yield finding("PACK202", str(error), manifests.MANIFEST)
        else:
            yield from _compare(entries, files)


def _compare(
    entries: dict[str, manifests.ManifestEntry], files: dict[str, HashedFile]
) -> Iterator[Finding]:
    for path in sorted(entries.keys() | files.keys()):
        if path not in files:
            yield finding("PACK203", f"listed in {manifests.MANIFEST}, but does not exist", path)
        elif path not in entries:
            yield finding("PACK205", f"not listed in {manifests.MANIFEST}", path)
        elif (size := files[path].size) != (listed_size := entries[path].size):
            message = f"{size} bytes; expected {listed_size} as in {manifests.MANIFEST}"
            yield finding("PACK204", message, path, found=size, expected=listed_size)
        elif (digest := files[path].sha256) != (listed_digest := entries[path].sha256):
            message = f"the content differs from {manifests.MANIFEST} (SHA-256)"
            yield finding("PACK204", message, path, found=digest, expected=listed_digest)


# ---- checksums ----------------------------------------------------------------------------


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """Return the digest of a file, in hexadecimal digits."""
    with open_file(path) as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()
