"""Write an archive and its checksum file: both or neither; leave out sets that are not valid."""

import shutil
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate
from pathlib import Path

from msgspec.structs import replace

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.archive import encryption, tar, verification
from mlperf_pkg.commands.archive.encryption import Encryption, Form
from mlperf_pkg.commands.archive.tar import ENDING, HashedFile, HashedTree
from mlperf_pkg.commands.builder import manifest as manifests
from mlperf_pkg.commands.builder.plan import failures, line_of
from mlperf_pkg.commands.builder.writing import tables
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Verdict
from mlperf_pkg.infra.archives import unfit
from mlperf_pkg.infra.files import private_folder, scratch_folder
from mlperf_pkg.infra.streams import temporary_files
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, description_path, name
from mlperf_pkg.submission.model import OFFICIAL_ARCHIVE

_OTHERS = (".7z", ".bz2", ".rar", ".tar", ".xz", ".zip", ".zst")  # what is not written


def name_of(tree: Path) -> str:
    """Return the name of a tree, which is also the only folder at the top of its archive.

    Raises:
        UserError: the name cannot be in an archive.
    """
    name = tree.resolve().name
    reason = unfit(name)
    if reason:
        raise UserError(f"{tree}: cannot be packed under its name {name!r}: {reason}")
    return name


def default_target(tree: Path, form: Form | None) -> Path:
    """Return the default path of an archive, beside its tree.

    The official pack_submission.sh finds an archive by its name, so OFFICIAL has that name.
    """
    prefix = OFFICIAL_ARCHIVE if form is Form.OFFICIAL else ""
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
    names = []
    if form is Form.OFFICIAL:
        names.append(target.name.removesuffix(ENDING) + ".sha1")
    return [*names, target.name + verification.SUFFIX, target.name]


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
    files = tree.files
    if all(file.path != manifests.MANIFEST for file in files):
        files = _with_manifest(files)
    names = written_names(target, how.form if how else None)
    with private_folder(target.parent, names, replace=force) as new:
        archive = new / target.name
        with encryption.encrypting(archive, how) as sink:
            for data in tar.compress(name_of(tree.root), tree.root, files):
                sink(data)
        checksum = _write_checksums(archive, names[:-1])
        size = archive.stat().st_size
    unpacked = sum(file.size for file in files)
    packed = f"{wording.counted(len(files), 'file')}, {unpacked:,} bytes in {size:,}"
    lines = [f"packed {target}: {packed}", f"sha256 {checksum}"]
    if how:
        lines.append(f"decrypt with: {encryption.command(how, target)}")
    return lines


def _write_checksums(archive: Path, names: Iterable[str]) -> str:
    """Write checksum files beside an archive, named after the algorithm; return the last one."""
    checksum = ""
    for file_name in names:
        checksum = verification.digest_of(archive, file_name.rpartition(".")[2])
        archive.with_name(file_name).write_text(f"{checksum}  {archive.name}\n")
    return checksum


def _with_manifest(
    files: Collection[HashedFile], origins: Mapping[str, str | None] | None = None
) -> tuple[HashedFile, ...]:
    """Return files and a manifest of them, by path."""
    origins = origins or {}
    entries = []
    for file in files:
        origin = origins.get(file.path)
        entries.append(manifests.ManifestEntry(file.path, file.size, file.sha256, origin))
    text = manifests.manifest_text(entries)
    manifest = HashedFile.of(manifests.MANIFEST, text.encode())
    return tuple(sorted((*files, manifest), key=lambda file: file.path))


# ---- result sets that are not valid -------------------------------------------------------


def reasons(report: Report) -> dict[str, str]:
    """Return why ``build`` would leave out result sets of a tree, by their ids."""
    of_subjects: dict[str | None, list[Finding]] = {}
    of_sets: dict[str | None, list[Finding]] = {}
    for finding in report.findings:
        of_subjects.setdefault(finding.subject, []).append(finding)
        of_sets.setdefault(finding.set, []).append(finding)
    by_set = {}
    for row in report.result_sets:
        of_system = of_subjects.get(description_path(row), [])
        of_set = of_sets.get(row.id, [])
        rejected = row.verdict.official is Verdict.FAIL
        failed = failures(of_system, rejected=True) + failures(of_set, rejected=rejected)
        if failed:
            lines = [f"{row.path.removeprefix('results/')} is not valid:", *map(line_of, failed)]
            by_set[row.id] = "\n  ".join(lines)
    return by_set


def without_sets(
    tree: HashedTree, report: Report, ids: Collection[str], options: Options
) -> tuple[HashedTree, Report]:
    """Return a tree without some of its result sets, and the report on the rest.

    Descriptions and code that only these sets need are left out, too. The manifest and the tables
    that ``build`` wrote list the rest.

    Raises:
        OSError: a file cannot be copied to be checked.
    """
    needed: set[str] = set()
    dropped: set[str] = set()
    for row in report.result_sets:
        tops = dropped if row.id in ids else needed
        tops.add(row.path)
        tops.add(f"results/{row.system}")
        tops.add(description_path(row))
        tops.add(f"benchmarks/{name(row.path)}")
    unneeded = dropped - needed
    files = []
    for file in tree.files:
        above = accumulate(file.path.split("/"), "{}/{}".format)
        if unneeded.isdisjoint(above):
            files.append(file)
    left = replace(tree, files=tuple(files))
    options = replace(options, usage=report.usage, round=report.round)
    checked = _checked(left, options)
    return replace(left, files=_listing(left, checked, options)), checked


def _checked(tree: HashedTree, options: Options) -> Report:
    """Check a copy of the files in a tree of the same name.

    Raises:
        OSError: a file cannot be copied.
    """
    with temporary_files() as temporary, scratch_folder(temporary) as work:
        root = work / tree.root.resolve().name
        for file in tree.files:
            source = tree.root / file.path
            target = root / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target, follow_symlinks=False)
        return verification.report_on(root, str(tree.root), options)


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
    origins = {path: entry.origin for path, entry in entries.items()}
    return _with_manifest(files.values(), origins)


# ---- messages -----------------------------------------------------------------------------


def refusal(report: Report, invalid: str | None) -> str | None:
    """Return why a tree is not packed, None if it may be; ``invalid`` is ``drop`` or ``keep``."""
    if verification.integrity_failed(report.findings):
        return "the files do not match the manifest, or one of the files cannot be packed"
    if invalid == "keep" or not report.has_errors:
        return None
    advice = "fix them, or use '--invalid keep' to pack the whole submission"
    if invalid == "drop":
        if reasons(report):  # none is left out then
            return f"no result set is valid; {advice}"
        return f"leaving out result sets does not remove the errors; {advice}"
    return f"there are errors; {advice}, or '--invalid drop' to pack only its valid result sets"
