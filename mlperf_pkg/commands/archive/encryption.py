"""Encrypt archives in one of three forms, and recognize and decrypt them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field

from mlperf_pkg.commands.archive import aes
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


_DERIVATIONS = {Form.OPENSSL: aes.PBKDF2, Form.OFFICIAL: aes.OLD}
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
    return Form.OPENSSL if head.startswith(aes.MAGIC) else None


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
            with aes.encrypting_aes(stream, how.passphrase, _DERIVATIONS[how.form]) as sink:
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
        aes.decrypt_file(source, target, ask())
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
        return f"openssl enc -d {aes.OLD.flags} -in {name} | tar -xz"
    plain = shlex.quote(_without(archive.name, SUFFIXES[how.form]))
    if how.form is Form.OPENSSL:
        return f"openssl enc -d {aes.PBKDF2.flags} -in {name} -out {plain}"
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
