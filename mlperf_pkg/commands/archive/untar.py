"""A strict reader of tar streams by strangers: files and folders, and nothing else.

What is not understood is refused rather than skipped, so that no two readers can see different
files in an archive that passes here.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.commands.archive.errors import damaged, too_large, unsafe
from mlperf_pkg.commands.archive.names import LARGEST_NUMBER, Names
from mlperf_pkg.commands.archive.tar import BLOCK, MARK

ALWAYS_ALLOWED = 1 << 30
LARGEST_RATIO = 100

_CHUNK = 1 << 20
_LONGEST_EXTENSION = 1 << 16
_NUMBER = re.compile(rb" *([0-7]+)[ \0]*|[ \0]*")
_RECORD = re.compile(rb"(\d{1,6}) ([^=\n]+)=")
# What pax headers may say besides path and size, without effect on what is unpacked.
_IDLE = re.compile(
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


class Unpacked(Struct, frozen=True):
    """The names at the top of an archive, and whether it begins with the mark of ours."""

    tops: frozenset[str]
    marked: bool


def untar(read: Read, folder: Path, packed_size: int) -> Unpacked:
    """Unpack into an empty folder, and read on to the end of the stream.

    ``packed_size`` in bytes is that of the compressed archive, against which the ratio counts.

    Raises:
        BadArchive: it is damaged, would do harm, or is too large.
        OSError: a file cannot be written.
    """
    stream = _Stream(read, max(ALWAYS_ALLOWED, LARGEST_RATIO * packed_size))
    names, tops, marked = Names(), set(), False
    for number, member in enumerate(_members(stream)):
        if isinstance(member, str):
            marked = marked or (number == 0 and member == MARK)
            continue
        if wrong := names.add(member.path, folder=member.folder):
            raise unsafe(member.path, wrong)
        tops.add(member.path.partition("/")[0])
        _write(stream, member, folder / member.path)
    return Unpacked(frozenset(tops), marked)


class _Member(Struct, frozen=True):
    path: str
    folder: bool
    size: int
    executable: bool


class _Stream(Struct):
    """Exact reads, up to ``left`` bytes in all."""

    read: Read
    left: int

    def some(self, size: int) -> bytes:
        data = self.read(min(size, _CHUNK))
        self.left -= len(data)
        if self.left < 0:
            raise too_large(
                f"it unpacks to more than {ALWAYS_ALLOWED >> 30} GiB and more than"
                f" {LARGEST_RATIO} times its size"
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
            raise damaged("something lies between two members")


def _write(stream: _Stream, member: _Member, path: Path) -> None:
    if member.folder:
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        for data in stream.portions(member.size):
            file.write(data)
    stream.padding(member.size)
    if member.executable:
        path.chmod(0o755)


# ---- headers ------------------------------------------------------------------------------


def _members(stream: _Stream) -> Iterator[_Member | str]:
    """Files and folders; and the comments of global headers, as text."""
    said: dict[str, str] = {}
    for _ in range(4 * LARGEST_NUMBER):
        block = stream.exactly(BLOCK)
        if not any(block):
            if said:
                raise damaged("a header without its member")
            _end(stream)
            return
        kind, size = _checked(block)
        if kind == tarfile.XGLTYPE:
            yield _comment(_extension(stream, size))
        elif kind in {tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME}:
            said |= _said(kind, _extension(stream, size), said)
        else:
            if member := _member(block, kind, size, said):
                yield member
            said = {}
    raise too_large("it has too many headers")


def _checked(block: bytes) -> tuple[bytes, int]:
    """Type and size in a header whose checksum is right."""
    if block[257:263] not in {b"ustar\0", b"ustar "}:
        raise damaged("it is no tar archive")
    if sum(block[:148]) + sum(block[156:]) + 8 * ord(" ") != _number(block[148:156]):
        raise damaged("the checksum of a header is wrong")
    return block[156:157], _number(block[124:136])


def _number(text: bytes) -> int:
    if not (found := _NUMBER.fullmatch(text)):
        raise damaged("a number in a header is none")
    return int(found[1] or b"0", 8)


def _member(block: bytes, kind: bytes, size: int, said: dict[str, str]) -> _Member | None:
    """None of the folder that everything is in."""
    name = said.get("path", _name(block))
    folder = kind == tarfile.DIRTYPE
    path = _plain(name, folder)
    if kind not in {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE}:
        raise unsafe(path, _KINDS.get(kind, "neither a file nor a folder"))
    if "size" in said:
        if not re.fullmatch(r"[0-9]{1,15}", said["size"]):
            raise damaged("a size in a pax header is no number")
        size = int(said["size"])
    if folder and size:
        raise damaged("a folder with content")
    if folder and not path:
        return None
    return _Member(path, folder, size, bool(_number(block[100:108]) & 0o100))


def _name(block: bytes) -> str:
    name, prefix = (part.split(b"\0", 1)[0] for part in (block[:100], block[345:500]))
    posix = block[257:263] == b"ustar\0"
    return _text(prefix + b"/" + name if posix and prefix else name)


def _plain(name: str, folder: bool) -> str:
    """Without what ``tar -C tree .`` puts before each name, and the ``/`` after a folder's."""
    while name.startswith("./"):
        name = name[2:]
    if folder:
        name = name.removesuffix("/")
        return "" if name == "." else name
    return name


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _extension(stream: _Stream, size: int) -> bytes:
    if size > _LONGEST_EXTENSION:
        raise too_large(f"a header of {size} bytes")
    data = stream.exactly(size)
    stream.padding(size)
    return data


def _said(kind: bytes, data: bytes, said: dict[str, str]) -> dict[str, str]:
    """What a header before a member says of it: ``path`` and ``size``."""
    found = {"path": _text(data.removesuffix(b"\0"))} if kind != tarfile.XHDTYPE else _pax(data)
    if said.keys() & found.keys():
        raise damaged("two headers for one member")
    if strange := [key for key in found if key not in {"path", "size"}]:
        raise damaged(f"a pax header with {strange[0]!r}")
    return found


def _comment(data: bytes) -> str:
    """Of a global header only the comment is allowed, which means nothing."""
    records = _pax(data, comment=True)
    if records.keys() - {"comment"}:
        raise damaged("a global pax header")
    return records.get("comment", "")


def _pax(data: bytes, *, comment: bool = False) -> dict[str, str]:
    records: dict[str, str] = {}
    while data:
        found = _RECORD.match(data)
        length = int(found[1]) if found else 0
        record = data[:length]
        if not found or found.end() > length or len(record) < length or record[-1:] != b"\n":
            raise damaged("a pax header that cannot be read")
        key = _text(found[2])
        if not _IDLE.fullmatch(key) or (comment and key == "comment"):
            if key in records:
                raise damaged("a pax header that says something twice")
            records[key] = _text(record[found.end() : -1])
        data = data[length:]
    return records


def _end(stream: _Stream) -> None:
    """Two blocks of zeros, and then nothing but zeros."""
    if any(stream.exactly(BLOCK)):
        raise damaged("something follows the end of the tar archive")
    while data := stream.some(_CHUNK):
        if any(data):
            raise damaged("something follows the end of the tar archive")
