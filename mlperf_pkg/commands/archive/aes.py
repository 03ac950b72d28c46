"""AES-256-CBC as ``openssl enc`` writes and reads it: ``Salted__``, a salt, the data.

It has no protection against change: whoever receives such a file needs its checksum, too.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from mlperf_pkg.commands.archive.compression import GZIP
from mlperf_pkg.errors import UserError

MAGIC = b"Salted__"
_SALT = 8
_HEAD = len(MAGIC) + _SALT
_BLOCK = 16
_KEY, _VECTOR = 32, 16
_CHUNK = 1 << 20


class Derivation(Struct, frozen=True):
    """How key and initialization vector come out of passphrase and salt.

    ``flags`` are those of ``openssl enc``; without ``iterations`` it is EVP_BytesToKey with
    SHA-256, the default since OpenSSL 1.1.0: one round, so that passphrases are tried fast. Only
    a long random one is safe then.
    """

    iterations: int | None = None

    @property
    def flags(self) -> str:
        """Cipher and derivation, as the command line of OpenSSL wants them."""
        stretched = f" -pbkdf2 -iter {self.iterations}" if self.iterations else ""
        return f"-aes-256-cbc -md sha256{stretched}"

    def derive(self, secret: bytes, salt: bytes) -> bytes:
        """The key and, after it, the initialization vector."""
        if self.iterations:
            size = _KEY + _VECTOR
            return hashlib.pbkdf2_hmac("sha256", secret, salt, self.iterations, size)
        first = hashlib.sha256(secret + salt).digest()
        return first + hashlib.sha256(first + secret + salt).digest()[:_VECTOR]


PBKDF2 = Derivation(600_000)
OLD = Derivation()
# Ours, what -pbkdf2 does without -iter, and what is done without either.
_KNOWN = (PBKDF2, Derivation(10_000), OLD)


def encrypt_file(source: Path, target: Path, passphrase: str, how: Derivation) -> None:
    """Encrypt a file into a new one.

    Raises:
        UserError: the library for it is not installed.
    """
    salt = secrets.token_bytes(_SALT)
    cipher = _cipher(how.derive(passphrase.encode(), salt)).encryptor()
    with source.open("rb") as read, target.open("xb") as write:
        write.write(MAGIC + salt)
        for chunk in _padded(read):
            write.write(cipher.update(chunk))
        write.write(cipher.finalize())


def decrypt_file(source: Path, target: Path, passphrase: str) -> None:
    """Decrypt a file, whose key derivation is found out, into a new one.

    Raises:
        UserError: the passphrase is wrong, or the file is damaged or holds no gzip.
    """
    if (source.stat().st_size - _HEAD) % _BLOCK:
        raise UserError(f"{source}: cannot be decrypted: it is cut off")
    with source.open("rb") as read, target.open("xb") as write:
        salt, first = read.read(_HEAD)[len(MAGIC) :], read.read(_BLOCK)
        material = _found(passphrase.encode(), salt, first)
        if material is None:
            raise UserError(f"{source}: cannot be decrypted: a wrong passphrase, or it is damaged")
        read.seek(_HEAD)
        for data in _unpadded(read, _cipher(material).decryptor(), source):
            write.write(data)


def _found(secret: bytes, salt: bytes, first: bytes) -> bytes | None:
    """The key material with which the first block becomes the beginning of a gzip file."""
    tried = (how.derive(secret, salt) for how in _KNOWN)
    return next(
        (each for each in tried if _cipher(each).decryptor().update(first).startswith(GZIP)), None
    )


def _padded(stream: BinaryIO) -> Iterator[bytes]:
    """PKCS #7: as many bytes as are missing in the last block, each of them that number."""
    size = 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        yield chunk
    missing = _BLOCK - size % _BLOCK
    yield bytes([missing]) * missing


def _unpadded(stream: BinaryIO, cipher: Any, source: Path) -> Iterator[bytes]:
    held = b""
    while chunk := stream.read(_CHUNK):
        if held:
            yield held
        held = cipher.update(chunk)
    missing = held[-1] if held else 0
    if not 0 < missing <= _BLOCK or held[-missing:] != bytes([missing]) * missing:
        raise UserError(f"{source}: cannot be decrypted: it is damaged at its end")
    yield held[:-missing]


def _cipher(material: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers import (  # noqa: PLC0415 - an extra
            Cipher,
            algorithms,
            modes,
        )
    except ImportError as error:
        raise UserError(
            "AES needs cryptography, which is not installed: pip install 'mlperf-pkg[encrypt]'"
        ) from error
    return Cipher(algorithms.AES(material[:_KEY]), modes.CBC(material[_KEY:]))
