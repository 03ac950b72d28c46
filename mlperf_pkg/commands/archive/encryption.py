"""Encrypt archives in one of two forms, and recognize and decrypt them."""

import hashlib
import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from mlperf_pkg.commands.archive.tar import GZIP
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import open_file, read_file
from mlperf_pkg.infra.resources import require


class Form(StrEnum):
    """How an archive is encrypted: in the age format, or as pack_submission.sh --unpack reads it.

    OFFICIAL is AES-256-CBC as ``openssl enc -aes256`` writes it. It does not protect against
    changes: the recipient of such a file needs its checksum, too.
    """

    AGE = "age"
    OFFICIAL = "official"


class Encryption(Struct, frozen=True):
    """A form, and either a passphrase or the recipients (age only) who can decrypt."""

    form: Form
    passphrase: str = ""
    recipients: tuple[str, ...] = ()


SUFFIXES = {Form.AGE: ".age", Form.OFFICIAL: ""}
Ask = Callable[[], str]
Sink = Callable[[bytes], object]

_AGE_HEAD = b"age-encryption.org/v1\n"
_AGE_ARMOR = b"-----BEGIN AGE ENCRYPTED FILE-----"
_AGE_HEADER_END = b"\n--- "
_LARGEST_AGE_HEADER = 1 << 15  # the library takes time that grows with the square of its size
_MOST_IDENTITIES = 100  # each is tried for each recipient
_TOO_LARGE = f"is larger than {_LARGEST_AGE_HEADER >> 10} KiB"
_LARGEST_BY_PASSPHRASE = 1 << 30


def form_of(path: Path) -> Form | None:
    """Return the form of an encrypted file by its first bytes; None if it is not encrypted.

    Raises:
        UserError: the file is one of age as text.
    """
    with open_file(path) as stream:
        head = stream.read(len(_AGE_ARMOR))
    if head == _AGE_ARMOR:
        raise UserError(
            f"{path}: the file is encrypted by age as text (age --armor), which is not read;"
            " decrypt the file with age -d, and verify the plain archive"
        )
    if head.startswith(_AGE_HEAD):
        return Form.AGE
    return Form.OFFICIAL if head.startswith(_SALTED) else None


@contextmanager
def encrypting(target: Path, how: Encryption | None) -> Iterator[Sink]:
    """Provide a function that encrypts bytes into a new file, or writes them as they are (None).

    Else no plaintext is written to disk. With a passphrase, age needs all bytes in memory.

    Raises:
        UserError: a recipient is not valid, age cannot use the passphrase, there are too
            many bytes for one, or the library is not installed.
    """
    with target.open("xb") as stream:
        if how is None:
            encrypted: AbstractContextManager[Sink] = nullcontext(stream.write)
        elif how.form is Form.OFFICIAL:
            encrypted = _by_aes(stream, how.passphrase)
        elif how.recipients:
            encrypted = _for_recipients(stream, recipients(how.recipients))
        else:
            encrypted = _by_passphrase(stream, how.passphrase, target.name)
        with encrypted as sink:
            yield sink


def decrypt(source: Path, target: Path, identities: Path | None, ask: Ask) -> None:
    """Decrypt a file of any form into a new one.

    Raises:
        UserError: the passphrase or identity is wrong, the file is damaged or, in AES, does not
            contain gzip, or the library is not installed.
    """
    if form_of(source) is Form.OFFICIAL:
        _decrypt_aes(source, target, _bytes(ask()))
    else:
        _decrypt_age(source, target, identities, ask)


def command(how: Encryption, archive: Path) -> str:
    """Return the shell command that decrypts an archive without this tool."""
    path = shlex.quote(str(archive))
    if how.form is Form.OFFICIAL:  # its name is that of a plain archive
        return f"openssl enc -d -aes-256-cbc -md sha256 -in {path} | tar -xz"
    plain = str(archive).removesuffix(SUFFIXES[how.form])
    if plain == str(archive):
        plain += ".decrypted"
    identity = "-i IDENTITY_FILE " if how.recipients else ""
    return f"age -d {identity}-o {shlex.quote(plain)} {path}"


# ---- AES ----------------------------------------------------------------------------------

# The file: ``Salted__``, a salt, and the data.
_SALTED = b"Salted__"
_SALT = 8
_BLOCK = 16
_HEAD = len(_SALTED) + _SALT
_KEY = 32
_VECTOR = 16
_CHUNK = 1 << 20

# The iterations of PBKDF2 with which files are read: none, as all are written; those of
# ``openssl enc -pbkdf2``; and those of files that this tool wrote once.
_ITERATIONS = (0, 10_000, 600_000)


def _derived(secret: bytes, salt: bytes, iterations: int = 0) -> bytes:
    """Return the key followed by the initialization vector.

    Without ``iterations`` they are those of EVP_BytesToKey with SHA-256, the default since OpenSSL
    1.1.0. That is a single round, so passphrases can be guessed quickly: only a long random one is
    safe.
    """
    if iterations:
        return hashlib.pbkdf2_hmac("sha256", secret, salt, iterations, _KEY + _VECTOR)
    first = hashlib.sha256(secret + salt).digest()
    return first + hashlib.sha256(first + secret + salt).digest()[:_VECTOR]


@contextmanager
def _by_aes(stream: BinaryIO, passphrase: str) -> Iterator[Sink]:
    salt = secrets.token_bytes(_SALT)
    cipher = _cipher(_derived(_bytes(passphrase), salt)).encryptor()
    padder = _padding().padder()
    stream.write(_SALTED + salt)
    yield lambda data: stream.write(cipher.update(padder.update(data)))
    stream.write(cipher.update(padder.finalize()) + cipher.finalize())


def _decrypt_aes(source: Path, target: Path, secret: bytes) -> None:
    if (source.stat().st_size - _HEAD) % _BLOCK:
        raise UserError(f"{source}: cannot be decrypted, as the file is cut off")
    with open_file(source) as read, target.open("xb") as write:
        salt = read.read(_HEAD)[len(_SALTED) :]
        first = read.read(_BLOCK)
        ciphers = (_cipher(_derived(secret, salt, number)) for number in _ITERATIONS)
        cipher = next((c for c in ciphers if c.decryptor().update(first).startswith(GZIP)), None)
        if cipher is None:
            raise UserError(
                f"{source}: cannot be decrypted; the passphrase is wrong, or the file is damaged"
            )
        decryptor = cipher.decryptor()
        unpadder = _padding().unpadder()
        read.seek(_HEAD)
        while chunk := read.read(_CHUNK):
            write.write(unpadder.update(decryptor.update(chunk)))
        try:
            write.write(unpadder.finalize())
        except ValueError as error:
            raise UserError(
                f"{source}: cannot be decrypted, as the end of the file is damaged"
            ) from error


def _bytes(passphrase: str) -> bytes:
    """Return the bytes of a passphrase, which may not be UTF-8."""
    return passphrase.encode("utf-8", "surrogateescape")


def _cipher(material: bytes) -> Any:
    algorithm = _primitive("ciphers.algorithms").AES(material[:_KEY])
    return _primitive("ciphers").Cipher(algorithm, _primitive("ciphers.modes").CBC(material[_KEY:]))


def _padding() -> Any:
    return _primitive("padding").PKCS7(8 * _BLOCK)


def _primitive(name: str) -> Any:
    return require(f"cryptography.hazmat.primitives.{name}", "encrypt", "AES encryption")


# ---- age ----------------------------------------------------------------------------------


def recipients(texts: Sequence[str]) -> list[object]:
    """Parse the keys to encrypt for: ``age1...`` or a public SSH key.

    Raises:
        UserError: a key is not valid, there are too many, or the library is not installed.
    """
    age = _age()
    keys: list[object] = []
    for text in texts:
        kind = age.ssh if text.startswith("ssh-") else age.x25519
        try:
            keys.append(kind.Recipient.from_str(text))
        except (age.RecipientError, UnicodeEncodeError) as error:
            raise UserError(f"{text!r} is not a recipient; expected age1... or ssh-...") from error
    if len(age.encrypt(b"", keys)) > _LARGEST_AGE_HEADER:
        raise UserError(f"{len(keys)} recipients are too many: the header {_TOO_LARGE}")
    return keys


@contextmanager
def _for_recipients(stream: BinaryIO, keys: Sequence[object]) -> Iterator[Sink]:
    """Encrypt in a thread, because the library reads from a stream."""
    age = _age()
    reading, writing = os.pipe()

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


@contextmanager
def _by_passphrase(stream: BinaryIO, passphrase: str, name: str) -> Iterator[Sink]:
    age = _age()
    whole = bytearray()

    def collect(data: bytes) -> None:
        _refuse_large(name, len(whole) + len(data))
        whole.extend(data)

    yield collect
    stream.write(age.passphrase.encrypt(bytes(whole), _of_age(passphrase)))


def _decrypt_age(source: Path, target: Path, identities: Path | None, ask: Ask) -> None:
    age = _age()
    with open_file(source) as stream:
        if _AGE_HEADER_END not in stream.read(_LARGEST_AGE_HEADER):
            raise UserError(
                f"{source}: cannot be decrypted, as the header of the file has no end, or"
                f" {_TOO_LARGE}"
            )
    try:
        if identities is not None:
            age.decrypt_file(str(source), str(target), _identities(identities))
        else:  # the library does so in memory only
            _refuse_large(source.name, source.stat().st_size)
            data = read_file(source, _LARGEST_BY_PASSPHRASE)
            target.write_bytes(age.passphrase.decrypt(data, _of_age(ask())))
    except (age.DecryptError, OSError) as error:
        if getattr(error, "errno", None):  # the library's own have none
            raise
        with open_file(source) as stream:
            needs = "a passphrase" if b"-> scrypt " in stream.read(1 << 10) else "an --identity"
        raise UserError(
            f"{source}: cannot be decrypted: {error}"
            f" (the file needs {needs}; the given one is wrong, or the file is damaged)"
        ) from error


def _identities(path: Path) -> list[object]:
    age = _age()
    text = read_file(path, MAX_BYTES).decode("utf-8", "replace")
    try:
        if "-----BEGIN" in text:
            return [age.ssh.Identity.from_buffer(text.encode())]
        lines = [line.strip() for line in text.splitlines()]
        keys = [line for line in lines if line and line[0] != "#"]
        if len(keys) > _MOST_IDENTITIES:
            raise UserError(
                f"{path}: {len(keys)} lines of identities; expected at most {_MOST_IDENTITIES}"
            )
        return [age.x25519.Identity.from_str(key) for key in keys]
    except age.IdentityError as error:
        raise UserError(f"{path}: not an age or SSH identity: {error}") from error


def _refuse_large(name: str, size: int) -> None:
    if size > _LARGEST_BY_PASSPHRASE:
        raise UserError(
            f"{name}: larger than {_LARGEST_BY_PASSPHRASE >> 30} GiB, the limit of age with a"
            " passphrase; use --recipient, or --encrypt official"
        )


def _of_age(passphrase: str) -> str:
    try:
        passphrase.encode()
    except UnicodeEncodeError as error:
        raise UserError("the passphrase is not UTF-8 text, which age requires") from error
    return passphrase


def _age() -> Any:
    return require("pyrage", "encrypt", "age encryption")
