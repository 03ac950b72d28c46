"""Small trees, and archives made of them by this tool and by others."""

import gzip
import io
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.archive.encryption import Encryption
from mlperf_pkg.commands.archive.packing import pack
from mlperf_pkg.commands.archive.tar import hash_tree
from mlperf_pkg.commands.archive.verification import verify_archive
from mlperf_pkg.commands.builder.manifest import MANIFEST, ManifestEntry, manifest_text
from mlperf_pkg.errors import UserError
from mlperf_pkg.results.report import Report
from tests.helpers.logs import good_log

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LOG = "results/box/bert/result_0.txt"
FILES = {LOG: good_log(), "systems/box.json": b"{}\n", "notes/größe.txt": b""}


def zstandard(content: bytes) -> bytes:
    """The content, compressed by the library that this Python has."""
    return zstd.compress(content)


def with_manifest(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same files and a manifest that lists them."""
    return {**files, MANIFEST: manifest_of(files).encode()}


def manifest_of(files: Mapping[str, bytes]) -> str:
    members = ((name, data) for name, data in files.items() if name != MANIFEST)
    return manifest_text(ManifestEntry(n, len(d), sha256(d).hexdigest(), None) for n, d in members)


def packed(tree: Path, target: Path | None = None, how: Encryption | None = None) -> Path:
    """The archive of a tree, by default beside it."""
    target = target or tree.with_name(f"{tree.name}.tar.gz")
    pack(hash_tree(tree), target, how, force=False)
    return target


def in_archive(folder: Path, target: Path) -> Path:
    """An archive of a folder with its name at the top, in the folder ``target``."""
    name = str(target / folder.name)
    return Path(shutil.make_archive(name, "gztar", folder.parent, folder.name))


def in_folder_of_archives(root: Path, target: Path) -> Path:
    """A folder with one archive of each submission of a round."""
    for submission in root.iterdir():
        in_archive(submission, target)
    return target


ARCHIVES = {"an archive of the round": in_archive, "archives of its parts": in_folder_of_archives}
"""What puts a round into archives; both take the round and an empty folder."""


def verified(
    archive: Path, passphrase: str = "", key: Path | None = None, extract: Path | None = None
) -> Report:
    """What verifying says."""
    return verify_archive(archive, Options(), lambda: passphrase, key, extract)


def codes(report: Report) -> set[str]:
    """The codes of integrity among its findings."""
    return {finding.code for finding in report.findings if finding.code.startswith("PACK")}


def failed(archive: Path, passphrase: str = "", key: Path | None = None) -> bool:
    """Whether verifying fails for integrity's sake, as a finding or as a failure to work."""
    try:
        reported = codes(verified(archive, passphrase, key))
    except UserError:
        return True
    return bool(reported - {"PACK106", "PACK107"})


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """A member of an archive as ``tarfile`` writes it."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar(*members: tuple[tarfile.TarInfo, bytes], format_: int = tarfile.GNU_FORMAT) -> bytes:
    """A tar archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=format_) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def tree_tar(files: Mapping[str, bytes], top: str = "ACME/", **how: int) -> bytes:
    """A tar archive of files, with their folders."""
    members = [member(f"{top}{name}", content) for name, content in files.items()]
    return tar(*members, **how)


def tree_zip(files: Mapping[str, bytes]) -> bytes:
    """A zip archive of files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def zipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def names(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def flipped(data: bytes, position: int, bit: int) -> bytes:
    return data[:position] + bytes([data[position] ^ (1 << bit)]) + data[position + 1 :]


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
