"""Unpack tar streams by strangers strictly: files and folders, and nothing else.

What is not understood is refused rather than skipped, so that no two readers can see different
files in an archive that passes here. ``tarfile`` unpacks 15 of the hostile archives in the tests:
it skips odd pax records, padding and endings, and accepts sizes that others read differently.
"""

import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.commands.archive.compression import BadArchive, damaged
from mlperf_pkg.commands.archive.tar import BLOCK, MARK
from mlperf_pkg.infra.archives import LARGEST_NUMBER, Names

GIB = 1 << 30
LARGEST_GIB = 4  # by default

_CHUNK = 1 << 20
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


def untar(read: Read, folder: Path, largest: int) -> tuple[set[str], bool]:
    """Unpack into an existing folder what ``read`` returns, portion by portion.

    ``largest`` is the limit of the unpacked bytes. Return the names at the top of the archive, and
    whether it begins with ``MARK``.

    Raises:
        BadArchive: the archive is damaged, unsafe or too large.
        OSError: a file cannot be written.
    """
    stream = _Stream(read, largest, largest)
    names, tops, marked = Names(), set[str](), False
    for number, member in enumerate(_members(stream)):
        if isinstance(member, str):
            marked = marked or (number == 0 and member == MARK)
            continue
        if reason := names.add(member.path, folder=member.folder):
            raise BadArchive("PACK103", reason, member.path)
        tops.add(member.path.partition("/")[0])
        _write(stream, member, folder / member.path)
    return tops, marked


def _too_large(message: str) -> BadArchive:
    """Return the error of an archive that unpacks to more than is allowed."""
    return BadArchive("PACK104", message)


class _Member(Struct, frozen=True):
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
            raise _too_large(
                f"it unpacks to more than {self.largest / GIB:g} GiB; --max-unpacked sets the limit"
            )
        return data

    def portions(self, size: int) -> Iterator[bytes]:
        while size:
            if not (data := self.some(size)):
                raise damaged("it is cut off: the tar archive does not end")
            size -= len(data)
            yield data

    def exactly(self, size: int) -> bytes:
        return b"".join(self.portions(size))

    def padding(self, size: int) -> None:
        if any(self.exactly(-size % BLOCK)):
            raise damaged("there is data between two members")


def _write(stream: _Stream, member: _Member, path: Path) -> None:
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


def _members(stream: _Stream) -> Iterator[_Member | str]:
    """Yield the files and folders, and the comments of global headers as text."""
    extended: dict[str, str] = {}  # what extension headers say about the next member
    for _ in range(4 * LARGEST_NUMBER):
        block = stream.exactly(BLOCK)
        if not any(block):
            if extended:
                raise damaged("a header without its member")
            _check_end(stream)
            return
        if block[257:263] not in {b"ustar\0", b"ustar "}:
            raise damaged("it is not a tar archive")
        if sum(block[:148]) + sum(block[156:]) + 8 * ord(" ") != _number(block[148:156]):
            raise damaged("the checksum of a header is wrong")
        kind, size = block[156:157], _number(block[124:136])
        if kind == tarfile.XGLTYPE:
            yield _comment(_extension(stream, size))
        elif kind in {tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME}:
            extended |= _extended(kind, _extension(stream, size), extended)
        else:
            if member := _member(block, kind, size, extended):
                yield member
            extended = {}
    raise _too_large("it has too many headers")


def _number(text: bytes) -> int:
    if not (match := _NUMBER.fullmatch(text)):
        raise damaged("a number in a header is not octal")
    return int(match[1] or b"0", 8)


def _member(block: bytes, kind: bytes, size: int, extended: dict[str, str]) -> _Member | None:
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
        raise damaged("a folder with content")
    if folder and path in {"", "."}:
        return None
    return _Member(path, folder, size, bool(_number(block[100:108]) & 0o100))


def _name(block: bytes) -> str:
    name, prefix = (part.split(b"\0", 1)[0] for part in (block[:100], block[345:500]))
    posix = block[257:263] == b"ustar\0"
    return _text(prefix + b"/" + name if posix and prefix else name)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _extension(stream: _Stream, size: int) -> bytes:
    if size > _LONGEST_EXTENSION:
        raise _too_large(f"a header of {size} bytes")
    data = stream.exactly(size)
    stream.padding(size)
    return data


def _extended(kind: bytes, data: bytes, before: dict[str, str]) -> dict[str, str]:
    """Return ``path`` and ``size`` of the next member, as far as an extension header has them."""
    fields = {"path": _text(data.removesuffix(b"\0"))} if kind != tarfile.XHDTYPE else _pax(data)
    if before.keys() & fields.keys():
        raise damaged("two headers for one member")
    if unknown := [key for key in fields if key not in {"path", "size"}]:
        raise damaged(f"a pax header with {unknown[0]!r}")
    return fields


def _comment(data: bytes) -> str:
    """Return the comment of a global header, which must not contain anything else."""
    records = _pax(data, comment=True)
    if records.keys() - {"comment"}:
        raise damaged("a global pax header")
    return records.get("comment", "")


def _pax(data: bytes, *, comment: bool = False) -> dict[str, str]:
    """Return the records of a pax header that have an effect; with ``comment`` also that one."""
    records: dict[str, str] = {}
    while data:
        match = _RECORD.match(data)
        length = int(match[1]) if match else 0
        record = data[:length]
        if not match or match.end() > length or len(record) < length or record[-1:] != b"\n":
            raise damaged("a pax header that cannot be read")
        key = _text(match[2])
        if not _WITHOUT_EFFECT.fullmatch(key) or (comment and key == "comment"):
            if key in records:
                raise damaged("a pax header that repeats a key")
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
