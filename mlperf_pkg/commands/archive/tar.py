"""Hash the files of a tree, and write them as a tar stream: equal files give equal bytes anywhere.

The stream contains only files, by path, without user and group, with one time for all and the modes
0644 and 0755. Names that do not fit a ustar header, because of their length or letters, are in a
pax header (POSIX.1-2001).

The zlib of an operating system may be zlib, zlib-ng or another fork, and these compress to
different bytes. So archives are compressed by libdeflate, which the package ``deflate`` contains.
Another version of it may compress to other bytes; the stream begins with a comment that names the
version. It compresses whole buffers: the content is cut into pieces of ``PIECE`` bytes, each a gzip
member of its own, as RFC 1952 allows.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.archives import LARGEST_NUMBER, Names
from mlperf_pkg.infra.paths import open_file, walk
from mlperf_pkg.infra.resources import installed_version

ENDING = ".tar.gz"
MARK = "mlperf-pkg/archive/1"
"""The comment before the first member of an archive that ``pack`` writes, without the compressor.
"""

BLOCK = tarfile.BLOCKSIZE
TIME = 315532800  # 1980-01-01: some unpackers warn about files from 1970
_CHUNK = 1 << 20


class HashedFile(Struct, frozen=True):
    """A file; ``path`` is relative to the root of its tree, ``size`` in bytes.

    ``content`` is None for a file on disk, which is read when it is packed.
    """

    path: str
    size: int
    sha256: str
    executable: bool = False
    content: bytes | None = None

    @classmethod
    def of(cls, path: str, content: bytes) -> HashedFile:
        """Return a file that is not on disk."""
        return cls(path, len(content), hashlib.sha256(content).hexdigest(), content=content)


class HashedTree(Struct, frozen=True):
    """The files of a folder that can be packed, by path, and its empty folders.

    ``unfit`` maps the paths of everything else to the reason why it cannot be packed.
    """

    root: Path
    files: tuple[HashedFile, ...]
    empty: tuple[str, ...]
    unfit: Mapping[str, str]


def hash_tree(root: Path) -> HashedTree:
    """Return every file below a folder with the SHA-256 of its content; no link is followed.

    Raises:
        UserError: a file or folder cannot be read.
    """
    names = Names()
    files = list[HashedFile]()
    unfit = {}
    try:
        entries = list(walk(root))
        folders = {entry.path for entry in entries if entry.folder and entry.link is None}
        for entry in entries:
            if entry.path in folders:
                continue
            if entry.link is not None:
                unfit[entry.path] = "a link"
            elif entry.special:
                unfit[entry.path] = "not a regular file"
            elif reason := names.add(entry.path):
                unfit[entry.path] = reason
            else:
                files.append(_hashed(root, entry.path))
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read: {error.strerror}") from error
    files.sort(key=lambda file: file.path)
    parents = {entry.path.rpartition("/")[0] for entry in entries}
    empty_folders = folders - parents
    empty = [entry.path for entry in entries if entry.path in empty_folders]
    return HashedTree(root, tuple(files), tuple(empty), unfit)


def _hashed(root: Path, path: str) -> HashedFile:
    with open_file(root / path, follow=False) as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        state = os.fstat(stream.fileno())
    executable = bool(state.st_mode & stat.S_IXUSR)
    return HashedFile(path, state.st_size, digest, executable)


def compress(top: str, tree: Path, files: Sequence[HashedFile]) -> Iterator[bytes]:
    """Yield the bytes of an archive of files below a folder ``top``, in portions.

    Raises:
        UserError: a file of ``tree`` cannot be read, or has changed since it was hashed.
    """
    return gzipped(_tar(top, tree, files))


def _tar(top: str, tree: Path, files: Sequence[HashedFile]) -> Iterator[bytes]:
    header = tarfile.TarInfo.create_pax_global_header({"comment": f"{MARK} {compressor()}"})
    yield header
    written = len(header)
    for file in files:
        info = tarfile.TarInfo(f"{top}/{file.path}")
        info.size = file.size
        info.mtime = TIME
        info.mode = 0o755 if file.executable else 0o644
        header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
        yield header
        digest = hashlib.sha256()
        size = 0
        for chunk in _chunks(tree, file):
            digest.update(chunk)
            size += len(chunk)
            yield chunk
        if (size, digest.hexdigest()) != (file.size, file.sha256):
            raise UserError(f"{tree / file.path}: the file changed while it was packed")
        yield bytes(-size % BLOCK)
        written += len(header) + size + -size % BLOCK
    end = 2 * BLOCK
    yield bytes(end + -(written + end) % tarfile.RECORDSIZE)


def _chunks(tree: Path, file: HashedFile) -> Iterator[bytes]:
    in_memory = None if file.content is None else io.BytesIO(file.content)
    try:
        with in_memory or open_file(tree / file.path, follow=False) as stream:
            yield from iter(partial(stream.read, _CHUNK), b"")
    except OSError as error:
        raise UserError(f"{tree / file.path}: cannot be read: {error.strerror}") from error


# ---- gzip: bytes that depend on the content alone, and any gzip read strictly -------------

PIECE = 4 << 20
LEVEL = 6
# No flags, no time, no extra flags, unknown operating system.
HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
GZIP = HEADER[:3]

_READ = 1 << 14
_WITH_HEADER = 16 + zlib.MAX_WBITS


class BadArchive(Exception):  # noqa: N818 - the state of a file, which becomes a finding
    """An archive cannot or must not be unpacked further.

    ``code`` is the code of the finding that it becomes; ``path`` is the member concerned, if any.
    """

    def __init__(self, code: str, message: str, path: str = "") -> None:
        """Keep all three."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


def damaged(message: str) -> BadArchive:
    """Return the error of an archive that is cut off, changed, or not an archive."""
    return BadArchive("PACK102", message)


def compressor() -> str:
    """Return the name and version of what compresses here, as an archive records it."""
    return f"deflate {installed_version('deflate')}"


def gzipped(portions: Iterable[bytes]) -> Iterator[bytes]:
    """Yield portions of any size as gzip members."""
    held = bytearray()
    for data in portions:
        held += data
        while len(held) >= PIECE:
            yield _gzip_member(bytes(held[:PIECE]))
            del held[:PIECE]
    if held:
        yield _gzip_member(bytes(held))


def _gzip_member(data: bytes) -> bytes:
    from deflate import deflate_compress

    checksum = zlib.crc32(data).to_bytes(4, "little")
    size = (len(data) % (1 << 32)).to_bytes(4, "little")
    return HEADER + bytes(deflate_compress(data, LEVEL)) + checksum + size


class GzipDecompressor:
    """Reads gzip of one or more members, to the last byte of the file.

    Its reads raise ``BadArchive`` if the file is cut off or changed, or if anything follows it.
    ``gzip`` of the standard library reads on after zeros between two members, where GNU gzip
    ends, so that two readers would see different files.
    """

    def __init__(self, stream: BinaryIO) -> None:
        """Read compressed bytes from ``stream``, which stays open."""
        self._stream = stream
        self._left = b""
        self._inflate = zlib.decompressobj(_WITH_HEADER)

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; none only at the end."""
        while True:
            data = self._left or self._stream.read(_READ)
            if self._inflate.eof:
                if not data:
                    return b""
                if not data.startswith(GZIP[: len(data)]):
                    raise damaged("other data follows the end of the compressed data")
                self._inflate = zlib.decompressobj(_WITH_HEADER)
            elif not data:
                raise damaged("the archive is cut off, as the compressed data does not end")
            try:
                inflated = self._inflate.decompress(data, size)
            except zlib.error as error:
                raise damaged(f"the compressed data is damaged ({error})") from error
            self._left = self._inflate.unused_data or self._inflate.unconsumed_tail
            if inflated:
                return inflated


# ---- unpacking ------------------------------------------------------------------------------

# Tar streams by strangers are unpacked strictly: files and folders, and nothing else. What is not
# understood is refused rather than skipped, so that no two readers can see different files in an
# archive that passes here. ``tarfile`` unpacks 15 of the hostile archives in the tests: it skips
# odd pax records, padding and endings, and accepts sizes that others read differently.

GIB = 1 << 30
LARGEST_GIB = 4  # by default

_LONGEST_EXTENSION = 1 << 16
_NUMBER = re.compile(rb" *([0-7]+)[ \0]*|[ \0]*")
_RECORD = re.compile(rb"(\d{1,6}) ([^=\n]+)=")
# Records of pax headers, besides path and size, that do not affect the unpacked files.
_WITHOUT_EFFECT = re.compile(
    r"[amc]time|[ug](id|name)|comment|(hdr)?charset"
    r"|SCHILY\.((xattr|acl)\..+|dev|ino|nlink|fflags)|LIBARCHIVE\.(creationtime|xattr\..+)"
)
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}

Read = Callable[[int], bytes]


def untar(read: Read, folder: Path, largest: int) -> tuple[set[str], str | None]:
    """Unpack into an existing folder what ``read`` returns, portion by portion.

    ``largest`` is the limit of the unpacked bytes. Return the names at the top of the archive, and
    what compressed it; None if it does not begin with ``MARK``.

    Raises:
        BadArchive: the archive is damaged, unsafe or too large.
        OSError: a file cannot be written.
    """
    stream = _Stream(read, largest, largest)
    names = Names()
    tops = set[str]()
    packed_by = None
    for number, member in enumerate(_members(stream)):
        if isinstance(member, str):
            if number == 0 and member.startswith(MARK):
                packed_by = member.removeprefix(MARK).strip()
            continue
        reason = names.add(member.path, folder=member.folder)
        if reason:
            raise BadArchive("PACK103", reason, member.path)
        tops.add(member.path.partition("/")[0])
        _write(stream, member, folder / member.path)
    return tops, packed_by


_TOO_LARGE = "PACK104"  # an archive that unpacks to more than is allowed


class _TarMember(Struct, frozen=True):
    path: str
    folder: bool
    size: int
    executable: bool


class _Stream(Struct):
    """Read exact sizes, up to ``largest`` bytes in all; ``left`` is what remains."""

    read: Read
    largest: int
    left: int

    def some(self, size: int) -> bytes:
        data = self.read(min(size, _CHUNK))
        self.left -= len(data)
        if self.left < 0:
            limit = f"{self.largest / GIB:g} GiB; --max-unpacked sets the limit"
            raise BadArchive(_TOO_LARGE, f"the archive unpacks to more than {limit}")
        return data

    def portions(self, size: int) -> Iterator[bytes]:
        while size:
            data = self.some(size)
            if not data:
                raise damaged("the archive is cut off, as the tar data does not end")
            size -= len(data)
            yield data

    def exactly(self, size: int) -> bytes:
        return b"".join(self.portions(size))

    def padding(self, size: int) -> None:
        if any(self.exactly(-size % BLOCK)):
            raise damaged("there is unexpected data between two members")


def _write(stream: _Stream, member: _TarMember, path: Path) -> None:
    (path if member.folder else path.parent).mkdir(parents=True, exist_ok=True)
    if member.folder:
        return
    with path.open("xb") as file:
        for data in stream.portions(member.size):
            file.write(data)
    stream.padding(member.size)
    if member.executable:
        path.chmod(0o755)


# ---- headers ------------------------------------------------------------------------------


def _members(stream: _Stream) -> Iterator[_TarMember | str]:
    """Yield the files and folders, and the comments of global headers as text."""
    extended: dict[str, str] = {}  # what extension headers say about the next member
    for _ in range(4 * LARGEST_NUMBER):
        block = stream.exactly(BLOCK)
        if not any(block):
            if extended:
                raise damaged("a header is not followed by the member that it describes")
            _check_end(stream)
            return
        if block[257:263] not in {b"ustar\0", b"ustar "}:
            raise damaged("the decompressed file is not a tar archive")
        if sum(block[:148]) + sum(block[156:]) + 8 * ord(" ") != _number(block[148:156]):
            raise damaged("the checksum of a header is wrong")
        kind = block[156:157]
        size = _number(block[124:136])
        if kind == tarfile.XGLTYPE:
            yield _comment(_extension(stream, size))
        elif kind in {tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME}:
            extended |= _extended(kind, _extension(stream, size), extended)
        else:
            member = _member(block, kind, size, extended)
            if member:
                yield member
            extended = {}
    raise BadArchive(_TOO_LARGE, "the archive has too many headers")


def _number(text: bytes) -> int:
    match = _NUMBER.fullmatch(text)
    if not match:
        raise damaged("a number in a header is not octal")
    return int(match[1] or b"0", 8)


def _member(block: bytes, kind: bytes, size: int, extended: dict[str, str]) -> _TarMember | None:
    """Return the member of a header; None for the folder that contains everything."""
    folder = kind == tarfile.DIRTYPE
    # Without what ``tar -C tree .`` puts before each name, and the ``/`` after a folder's.
    path = re.sub(r"\A(\./)*", "", extended.get("path", _name(block)))
    path = path.removesuffix("/") if folder else path
    if kind not in {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE}:
        raise BadArchive("PACK103", _KINDS.get(kind, "neither a file nor a folder"), path)
    if "size" in extended:
        if not re.fullmatch(r"[0-9]{1,15}", extended["size"]):
            raise damaged("a size in a pax header is not a number")
        size = int(extended["size"])
    if folder and size:
        raise damaged("a folder has content of its own")
    if folder and path in {"", "."}:
        return None
    return _TarMember(path, folder, size, bool(_number(block[100:108]) & 0o100))


def _name(block: bytes) -> str:
    name, prefix = (part.split(b"\0", 1)[0] for part in (block[:100], block[345:500]))
    posix = block[257:263] == b"ustar\0"
    return _text(prefix + b"/" + name if posix and prefix else name)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _extension(stream: _Stream, size: int) -> bytes:
    if size > _LONGEST_EXTENSION:
        raise BadArchive(_TOO_LARGE, f"a header has {size} bytes, which is too many")
    data = stream.exactly(size)
    stream.padding(size)
    return data


def _extended(kind: bytes, data: bytes, before: dict[str, str]) -> dict[str, str]:
    """Return ``path`` and ``size`` of the next member, as far as an extension header has them."""
    fields = {"path": _text(data.removesuffix(b"\0"))} if kind != tarfile.XHDTYPE else _pax(data)
    if before.keys() & fields.keys():
        raise damaged("a member has two headers for the same field")
    unknown = [key for key in fields if key not in {"path", "size"}]
    if unknown:
        raise damaged(
            f"a pax header has the field {unknown[0]!r}, which an archive of files does not need"
        )
    return fields


def _comment(data: bytes) -> str:
    """Return the comment of a global header, which must not contain anything else."""
    records = _pax(data, comment=True)
    if records.keys() - {"comment"}:
        raise damaged("a global pax header has more than a comment")
    return records.get("comment", "")


def _pax(data: bytes, *, comment: bool = False) -> dict[str, str]:
    """Return the records of a pax header that have an effect; with ``comment`` also that one."""
    records: dict[str, str] = {}
    while data:
        match = _RECORD.match(data)
        length = int(match[1]) if match else 0
        record = data[:length]
        if not match or match.end() > length or len(record) < length or record[-1:] != b"\n":
            raise damaged("a pax header cannot be read")
        key = _text(match[2])
        if not _WITHOUT_EFFECT.fullmatch(key) or (comment and key == "comment"):
            if key in records:
                raise damaged("a pax header repeats a key")
            records[key] = _text(record[match.end() : -1])
        data = data[length:]
    return records


def _check_end(stream: _Stream) -> None:
    """Check that the archive ends with two blocks of zeros and nothing but zeros after them."""
    data = stream.exactly(BLOCK)
    while data:
        if any(data):
            raise damaged("data follows the end of the tar archive")
        data = stream.some(_CHUNK)
