"""The forms in which an archive may be encrypted, and how each is known again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.archive import aes
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
    """A form, and the passphrase or else the recipients (age only) that can decrypt."""

    form: Form
    passphrase: str = ""
    recipients: tuple[str, ...] = ()


def form_of(path: Path) -> Form | None:
    """The form of an encrypted file, by its first bytes; None if it is not encrypted.

    The two of OpenSSL look alike: OPENSSL stands for both.
    """
    with path.open("rb") as stream:
        head = stream.read(len(AGE_HEAD))
    if head == AGE_HEAD:
        return Form.AGE
    return Form.OPENSSL if head.startswith(aes.MAGIC) else None


def encrypt(source: Path, target: Path, how: Encryption) -> None:
    """Encrypt a file into a new one.

    Raises:
        UserError: a recipient is none, or the library for it is not installed.
    """
    if how.form is not Form.AGE:
        aes.encrypt_file(source, target, how.passphrase, _DERIVATIONS[how.form])
    elif how.recipients:
        _age().encrypt_file(str(source), str(target), recipients(how.recipients))
    else:
        data = _age().passphrase.encrypt(_whole(source), how.passphrase)
        target.write_bytes(data)


def decrypt(source: Path, target: Path, identities: Path | None, ask: Ask) -> None:
    """Decrypt a file of any form into a new one.

    Raises:
        UserError: the passphrase or identity is not the right one, or the file is damaged.
    """
    if form_of(source) is not Form.AGE:
        aes.decrypt_file(source, target, ask())
        return
    age = _age()
    try:
        if identities is not None:
            age.decrypt_file(str(source), str(target), _identities(identities))
        else:
            target.write_bytes(age.passphrase.decrypt(_whole(source), ask()))
    except (age.DecryptError, OSError) as error:
        if getattr(error, "errno", None):  # the library's own have none
            raise
        raise UserError(f"{source}: cannot be decrypted: {_reason(source, error)}") from error


def recipients(texts: Sequence[str]) -> list[object]:
    """The keys to encrypt for: ``age1...`` or a public key of SSH.

    Raises:
        UserError: one is none, or the library is not installed.
    """
    age = _age()
    found: list[object] = []
    for text in texts:
        kind = age.ssh if text.startswith("ssh-") else age.x25519
        try:
            found.append(kind.Recipient.from_str(text))
        except age.RecipientError as error:
            raise UserError(f"{text!r} is no recipient: age1... or ssh-...") from error
    return found


def command(how: Encryption, archive: Path) -> str:
    """What decrypts an archive without this tool, on any machine."""
    name = shlex.quote(archive.name)
    if how.form is Form.OFFICIAL:  # its name is that of a plain archive
        return f"openssl enc -d {aes.OLD.flags} -in {name} | tar -xz"
    plain = shlex.quote(_without(archive.name, SUFFIXES[how.form]))
    if how.form is Form.OPENSSL:
        return f"openssl enc -d {aes.PBKDF2.flags} -in {name} -out {plain}"
    identity = "-i IDENTITY_FILE " if how.recipients else ""
    return f"age -d {identity}-o {plain} {name}"


def _without(name: str, suffix: str) -> str:
    """The name of what comes out, never that of what goes in."""
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
        raise UserError(f"{path}: no age or SSH identity: {error}") from error


def _whole(path: Path) -> bytes:
    """The library encrypts by passphrase in memory only."""
    if path.stat().st_size > _LARGEST_BY_PASSPHRASE:
        raise UserError(
            f"{path.name}: larger than {_LARGEST_BY_PASSPHRASE >> 30} GiB, which age by passphrase"
            " does not take here: use --recipient, or --encrypt openssl"
        )
    return path.read_bytes()


def _age() -> Any:
    return require("pyrage", "encrypt", "age encryption")
