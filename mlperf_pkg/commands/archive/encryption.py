"""Encrypt archives in one of three forms, and recognize and decrypt them."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field

from mlperf_pkg.commands.archive.compression import GZIP
from mlperf_pkg.commands.archive.tar import Sink
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import require

AGE_HEAD = b"age-encryption.org/v1\n"

_LARGEST_BY_PASSPHRASE = 1 << 30


class Form(StrEnum):
    """How an archive is encrypted.

    AGE: the age format. OPENSSL: ``openssl enc -aes-256-cbc -pbkdf2``. OFFICIAL: the older key
    derivation of ``openssl enc -aes256``, which pack_submission.sh --unpack reads.
    """

    AGE = "age"
    OPENSSL = "openssl"
    OFFICIAL = "official"


_DERIVATIONS = {Form.OPENSSL: PBKDF2, Form.OFFICIAL: OLD}
SUFFIXES = {Form.AGE: ".age", Form.OPENSSL: ".enc", Form.OFFICIAL: ""}

Ask = Callable[[], str]


class Encryption(Struct, frozen=True):
    """A form, and either a passphrase or the recipients (age only) who can decrypt."""

    form: Form
    passphrase: str = ""
    recipients: tuple[str, ...] = ()


def form_of(path: Path) -> Form | None:
    """Return the form of an encrypted file by its first bytes; None if it is not encrypted.

    OPENSSL and OFFICIAL look alike: the result for both is OPENSSL.
    """
    with path.open("rb") as stream:
        head = stream.read(len(AGE_HEAD))
    if head == AGE_HEAD:
        return Form.AGE
    return Form.OPENSSL if head.startswith(MAGIC) else None


@contextmanager
def encrypting(target: Path, how: Encryption) -> Iterator[Sink]:
    """Provide a function that encrypts bytes into a new file.

    No plaintext is written to disk. With a passphrase, age needs all bytes in memory.

    Raises:
        UserError: a recipient is not valid, age cannot use the passphrase, there are too
            many bytes for one, or the library is not installed.
    """
    with target.open("xb") as stream:
        if how.form is not Form.AGE:
            with encrypting_aes(stream, how.passphrase, _DERIVATIONS[how.form]) as sink:
                yield sink
        elif how.recipients:
            with _age_for(stream, recipients(how.recipients)) as sink:
                yield sink
        else:
            whole = _Whole(target.name)
            _age()
            yield whole.write
            stream.write(_age().passphrase.encrypt(bytes(whole.data), _of_age(how.passphrase)))


@contextmanager
def _age_for(stream: BinaryIO, keys: Sequence[object]) -> Iterator[Sink]:
    """Encrypt in a thread, because the library reads from a stream."""
    age, (reading, writing) = _age(), os.pipe()

    def encrypt() -> None:
        with os.fdopen(reading, "rb") as plain:
            age.encrypt_io(plain, stream, keys)

    with ThreadPoolExecutor(1) as thread:
        encrypted = thread.submit(encrypt)
        try:
            with os.fdopen(writing, "wb") as pipe:
                yield pipe.write
        except BrokenPipeError:  # the thread failed: its error is the reason
            encrypted.result()
            raise
        encrypted.result()


class _Whole(Struct):
    """Collect the bytes of the file ``name``."""

    name: str
    data: bytearray = field(default_factory=bytearray)

    def write(self, data: bytes) -> None:
        _refuse_large(self.name, len(self.data) + len(data))
        self.data += data


def decrypt(source: Path, target: Path, identities: Path | None, ask: Ask) -> None:
    """Decrypt a file of any form into a new one.

    Raises:
        UserError: the passphrase or identity is wrong, or the file is damaged.
    """
    if form_of(source) is not Form.AGE:
        decrypt_file(source, target, ask())
        return
    age = _age()
    try:
        if identities is not None:
            age.decrypt_file(str(source), str(target), _identities(identities))
        else:
            target.write_bytes(age.passphrase.decrypt(_whole(source), _of_age(ask())))
    except (age.DecryptError, OSError) as error:
        if getattr(error, "errno", None):  # the library's own have none
            raise
        raise UserError(f"{source}: cannot be decrypted: {_reason(source, error)}") from error


def recipients(texts: Sequence[str]) -> list[object]:
    """Parse the keys to encrypt for: ``age1...`` or a public SSH key.

    Raises:
        UserError: a key is not valid, or the library is not installed.
    """
    age = _age()
    keys: list[object] = []
    for text in texts:
        kind = age.ssh if text.startswith("ssh-") else age.x25519
        try:
            keys.append(kind.Recipient.from_str(text))
        except age.RecipientError as error:
            raise UserError(f"{text!r} is not a recipient; expected age1... or ssh-...") from error
    return keys


def command(how: Encryption, archive: Path) -> str:
    """Return the shell command that decrypts an archive without this tool."""
    name = shlex.quote(archive.name)
    if how.form is Form.OFFICIAL:  # its name is that of a plain archive
        return f"openssl enc -d {OLD.flags} -in {name} | tar -xz"
    plain = shlex.quote(_without(archive.name, SUFFIXES[how.form]))
    if how.form is Form.OPENSSL:
        return f"openssl enc -d {PBKDF2.flags} -in {name} -out {plain}"
    identity = "-i IDENTITY_FILE " if how.recipients else ""
    return f"age -d {identity}-o {plain} {name}"


def _without(name: str, suffix: str) -> str:
    """Return the name of the decrypted file, which is never that of the encrypted one."""
    return name.removesuffix(suffix) if name.endswith(suffix) else f"{name}.decrypted"


def _reason(source: Path, error: Exception) -> str:
    with source.open("rb") as stream:
        by_passphrase = b"-> scrypt " in stream.read(1 << 10)
    needs = "a passphrase" if by_passphrase else "an --identity"
    return f"{error} (it needs {needs}: a wrong one, or the file is damaged)"


def _identities(path: Path) -> list[object]:
    age = _age()
    text = path.read_text("utf-8", "replace")
    try:
        if "-----BEGIN" in text:
            return [age.ssh.Identity.from_buffer(text.encode())]
        lines = [line.strip() for line in text.splitlines()]
        return [age.x25519.Identity.from_str(line) for line in lines if line and line[0] != "#"]
    except age.IdentityError as error:
        raise UserError(f"{path}: not an age or SSH identity: {error}") from error


def _whole(path: Path) -> bytes:
    """Return a whole file: with a passphrase, the library only decrypts in memory."""
    _refuse_large(path.name, path.stat().st_size)
    return path.read_bytes()


def _refuse_large(name: str, size: int) -> None:
    if size > _LARGEST_BY_PASSPHRASE:
        raise UserError(
            f"{name}: larger than {_LARGEST_BY_PASSPHRASE >> 30} GiB, the limit of age by"
            " passphrase: use --recipient, or --encrypt openssl"
        )


def _of_age(passphrase: str) -> str:
    try:
        passphrase.encode()
    except UnicodeEncodeError as error:
        raise UserError("the passphrase is not UTF-8, as age expects") from error
    return passphrase


def _age() -> Any:
    return require("pyrage", "encrypt", "age encryption")


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
