"""AES-256-CBC as ``openssl enc`` writes and reads it: ``Salted__``, a salt, the data.

It does not protect against changes: the recipient of such a file needs its checksum, too.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from mlperf_pkg.commands.archive.compression import GZIP
from mlperf_pkg.commands.archive.tar import Sink
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import require

MAGIC = b"Salted__"
_SALT = 8
_HEAD = len(MAGIC) + _SALT
_BLOCK = 16
_KEY, _VECTOR = 32, 16
_CHUNK = 1 << 20


class Derivation(Struct, frozen=True):
    """How the key and the initialization vector are derived from passphrase and salt.

    Without ``iterations`` it is EVP_BytesToKey with SHA-256, the default since OpenSSL 1.1.0. That
    is a single round, so passphrases can be guessed quickly: only a long random one is safe.
    """

    iterations: int | None = None

    @property
    def flags(self) -> str:
        """The cipher and the derivation as options of ``openssl enc``."""
        stretched = f" -pbkdf2 -iter {self.iterations}" if self.iterations else ""
        return f"-aes-256-cbc -md sha256{stretched}"

    def derive(self, secret: bytes, salt: bytes) -> bytes:
        """Return the key followed by the initialization vector."""
        if self.iterations:
            size = _KEY + _VECTOR
            return hashlib.pbkdf2_hmac("sha256", secret, salt, self.iterations, size)
        first = hashlib.sha256(secret + salt).digest()
        return first + hashlib.sha256(first + secret + salt).digest()[:_VECTOR]


PBKDF2 = Derivation(600_000)
OLD = Derivation()
# Ours, that of -pbkdf2 without -iter, and that without either.
_TRIED = (PBKDF2, Derivation(10_000), OLD)


@contextmanager
def encrypting_aes(target: BinaryIO, passphrase: str, how: Derivation) -> Iterator[Sink]:
    """Provide a function that encrypts bytes and writes them to ``target``.

    Raises:
        MissingPackageError: cryptography is not installed.
    """
    salt = secrets.token_bytes(_SALT)
    cipher = _cipher(how.derive(_bytes(passphrase), salt)).encryptor()
    padder = _padding().padder()
    target.write(MAGIC + salt)
    yield lambda data: target.write(cipher.update(padder.update(data)))
    target.write(cipher.update(padder.finalize()) + cipher.finalize())


def decrypt_file(source: Path, target: Path, passphrase: str) -> None:
    """Decrypt a file into a new one, whatever derivation of its key was used.

    Raises:
        UserError: the passphrase is wrong, the file is damaged or does not contain gzip, or
            cryptography is not installed.
    """
    if (source.stat().st_size - _HEAD) % _BLOCK:
        raise UserError(f"{source}: cannot be decrypted: it is cut off")
    with source.open("rb") as read, target.open("xb") as write:
        salt, first = read.read(_HEAD)[len(MAGIC) :], read.read(_BLOCK)
        material = _matching(_bytes(passphrase), salt, first)
        if material is None:
            raise UserError(f"{source}: cannot be decrypted: a wrong passphrase, or it is damaged")
        cipher, unpadder = _cipher(material).decryptor(), _padding().unpadder()
        read.seek(_HEAD)
        while chunk := read.read(_CHUNK):
            write.write(unpadder.update(cipher.update(chunk)))
        try:
            write.write(unpadder.finalize())
        except ValueError as error:
            raise UserError(f"{source}: cannot be decrypted: it is damaged at its end") from error


def _bytes(passphrase: str) -> bytes:
    """Return the bytes of a passphrase, which may not be UTF-8."""
    return passphrase.encode("utf-8", "surrogateescape")


def _matching(secret: bytes, salt: bytes, first: bytes) -> bytes | None:
    """Return the key material that decrypts the first block to the beginning of a gzip file."""
    materials = (how.derive(secret, salt) for how in _TRIED)
    return next((m for m in materials if _decrypted(m, first).startswith(GZIP)), None)


def _decrypted(material: bytes, block: bytes) -> bytes:
    plain: bytes = _cipher(material).decryptor().update(block)
    return plain


def _cipher(material: bytes) -> Any:
    algorithm = _primitive("ciphers.algorithms").AES(material[:_KEY])
    return _primitive("ciphers").Cipher(algorithm, _primitive("ciphers.modes").CBC(material[_KEY:]))


def _padding() -> Any:
    return _primitive("padding").PKCS7(8 * _BLOCK)


def _primitive(name: str) -> Any:
    return require(f"cryptography.hazmat.primitives.{name}", "encrypt", "AES encryption")
