"""Encrypting and back, also by the tools that others use."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import pyrage
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.archive import encryption
from mlperf_pkg.commands.archive.compression import HEADER
from mlperf_pkg.commands.archive.encryption import (
    Encryption,
    Form,
    command,
    decrypt,
    encrypting,
    form_of,
)
from mlperf_pkg.commands.archive.verification import verify_archive
from mlperf_pkg.errors import UserError
from tests.helpers.archives import (  # fmt: skip
    FILES,
    LOG,
    codes,
    failed,
    flipped,
    lay,
    names,
    packed,
    verified,
    write,
)
from tests.helpers.examples import SHARE, examples

SECRET = "größer & $geheim"
BY_AES = Encryption(Form.OFFICIAL, SECRET)
SHORT = {**FILES, LOG: FILES[LOG][:400]}
ENV = {**os.environ, "PASS": SECRET}
CHUNK = 1 << 20

openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl here")
age = pytest.mark.skipif(not shutil.which("age"), reason="there is no age here")


def run(line: str, folder: Path) -> bytes:
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=ENV, capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write(tmp_path / "plain", HEADER + b"some content")


def encrypt(source: Path, target: Path, how: Encryption = BY_AES) -> Path:
    data = source.read_bytes()
    with encrypting(target, how) as sink:
        sink(data[:7])
        sink(data[7:])
    return target


def decrypted(source: Path, key: Path | None = None, secret: str = SECRET) -> bytes:
    target = source.with_name("back")
    decrypt(source, target, key, lambda: secret)
    data = target.read_bytes()
    target.unlink()
    return data


# ---- AES ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 16, 17, CHUNK - 1, CHUNK, CHUNK + 1])
def test_aes_round_trip(tmp_path: Path, size: int) -> None:
    plain = write(tmp_path / "plain", (HEADER + os.urandom(size))[:size])
    encrypted = encrypt(plain, tmp_path / "x")
    assert encrypted.read_bytes().startswith(b"Salted__")
    assert decrypted(encrypted) == plain.read_bytes()


@openssl
@pytest.mark.parametrize("flags", ["-aes256", "-aes-256-cbc -pbkdf2", "-aes-256-cbc -md sha256 -pbkdf2 -iter 600000"])  # fmt: skip
def test_we_read_what_openssl_writes(plain: Path, tmp_path: Path, flags: str) -> None:
    """The last one is a form that ``pack`` wrote once."""
    run(f"openssl enc -e {flags} -in plain -out theirs -pass env:PASS", tmp_path)
    assert decrypted(tmp_path / "theirs") == plain.read_bytes()


@openssl
def test_what_the_official_script_does_to_unpack(tmp_path: Path) -> None:
    """Its steps: compare the line of sha1sum with the file .sha1, then openssl enc -d, then tar."""
    tree = lay(tmp_path / "ACME", FILES)
    name = "mlperf_submission_ACME"
    packed(tree, tmp_path / f"{name}.tar.gz", BY_AES)
    line = run(f"sha1sum {name}.tar.gz", tmp_path).decode()
    assert (tmp_path / f"{name}.sha1").read_text() == line
    shutil.rmtree(tree)
    run(f"openssl enc -d -aes256 -in {name}.tar.gz -pass env:PASS | tar -xvz", tmp_path)
    assert {path: (tree / path).read_bytes() for path in FILES} == FILES


@openssl
def test_the_printed_command_decrypts(tmp_path: Path) -> None:
    tree = lay(tmp_path / "AC ME", FILES)
    archive = packed(tree, tmp_path / "AC ME.tar.gz", BY_AES)
    shutil.move(tree, tmp_path / "before")
    run(command(BY_AES, archive).replace(" -in", " -pass env:PASS -in"), tmp_path)
    assert names(tree) == sorted([*names(tmp_path / "before"), "MANIFEST.json"])


@pytest.fixture(scope="module")
def in_aes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("aes")
    return packed(lay(folder / "ACME", SHORT), folder / "x", BY_AES).read_bytes()


@examples(50)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_bit_of_an_archive_in_aes(
    tmp_path_factory: pytest.TempPathFactory, in_aes: bytes, position: float, bit: int
) -> None:
    """Even without the checksum file, as the archive within is compared to the byte."""
    archive = tmp_path_factory.mktemp("aes") / "x"
    write(archive, flipped(in_aes, int(position * len(in_aes)), bit))
    with mock.patch.object(encryption, "_ITERATIONS", (0, 10)):  # more take their time on purpose
        assert failed(archive, SECRET)


def test_what_does_not_fit_its_checksum_is_not_decrypted(tmp_path: Path) -> None:
    archive = packed(lay(tmp_path / "ACME", FILES), tmp_path / "x", BY_AES)
    write(archive, flipped(archive.read_bytes(), 900, 0))

    def ask() -> str:
        raise AssertionError

    report = verify_archive(archive, Options(), ask)
    assert codes(report) == {"PACK101"}


# ---- age ----------------------------------------------------------------------------------


CHEAP = (
    b"age-encryption.org/v1\n-> scrypt AAECAwQFBgcICQoLDA0ODw 2\n"
    b"HjjelEsZbRj3cvstbaUPzVUGR1mgUcdslx0qcXsEKJ0\n"
    b"--- N8RZc+pOLSV/Bs94ZJ2ZcZ/TDp6Ijc+gAdkfLJVvSTg\n"
    + bytes(16)
    + b"\xf1\xb4.\xdb\xcb\n.:\xe1\xf1y>\xaa\x1a)|\xb7\x89VR\0*\x04\xe2[\xbf\x9e\x8a"
)
"""``some content``, by a passphrase whose work factor is 4; that of what is written is 2**18."""


def test_age_by_passphrase(plain: Path, tmp_path: Path) -> None:
    with mock.patch.object(pyrage.passphrase, "encrypt", return_value=CHEAP) as encrypted:
        cheap = encrypt(plain, tmp_path / "x", Encryption(Form.AGE, SECRET))
    encrypted.assert_called_once_with(plain.read_bytes(), SECRET)
    assert form_of(cheap) is Form.AGE
    assert decrypted(cheap) == b"some content"
    with pytest.raises(UserError, match="it needs a passphrase: a wrong one"):
        decrypted(cheap, secret="wrong")


@pytest.mark.skipif(SHARE > 1, reason="takes 7 s on purpose: only with MLPERF_PKG_FULL=1")
def test_age_by_passphrase_and_back(plain: Path, tmp_path: Path) -> None:
    encrypt(plain, tmp_path / "x", Encryption(Form.AGE, SECRET))
    assert decrypted(tmp_path / "x") == plain.read_bytes()


def identity(folder: Path, name: str = "key") -> tuple[str, Path]:
    made = pyrage.x25519.Identity.generate()
    return str(made.to_public()), write(folder / name, f"# a key\n{made}\n".encode())


def test_age_by_recipient(plain: Path, tmp_path: Path) -> None:
    public, key = identity(tmp_path)
    second, other = identity(tmp_path, "other")
    encrypt(plain, tmp_path / "x", Encryption(Form.AGE, recipients=(public, second)))
    for file in (key, other):
        assert decrypted(tmp_path / "x", file) == plain.read_bytes()
    for wrong in (identity(tmp_path, "third")[1], None):
        with pytest.raises(UserError, match="it needs an --identity"):
            decrypted(tmp_path / "x", wrong)


@pytest.mark.parametrize("key", ["AGE-SECRET-KEY-1X\n", "nonsense\n", "-----BEGIN OPENSSH PRIVATE KEY-----\n"])  # fmt: skip
def test_no_identity(plain: Path, tmp_path: Path, key: str) -> None:
    encrypt(plain, tmp_path / "x", Encryption(Form.AGE, recipients=(identity(tmp_path)[0],)))
    with pytest.raises(UserError, match="key: not an age or SSH identity"):
        decrypted(tmp_path / "x", write(tmp_path / "key", key.encode()))


@pytest.fixture(scope="module")
def in_age(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    folder = tmp_path_factory.mktemp("age")
    public, key = identity(folder)
    how = Encryption(Form.AGE, recipients=(public,))
    return packed(lay(folder / "ACME", SHORT), folder / "x", how).read_bytes(), key


@examples(40)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_bit_of_an_archive_in_age(
    tmp_path_factory: pytest.TempPathFactory,
    in_age: tuple[bytes, Path],
    position: float,
    bit: int,
) -> None:
    data, key = in_age
    archive = tmp_path_factory.mktemp("age") / "x"
    write(archive, flipped(data, int(position * len(data)), bit))
    with pytest.raises(UserError):
        verify_archive(archive, Options(), str, key)


def test_too_large_for_a_passphrase(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption, "_LARGEST_BY_PASSPHRASE", 3)
    with pytest.raises(UserError, match="use --recipient"):
        encrypt(plain, tmp_path / "x", Encryption(Form.AGE, SECRET))


@age
def test_age_reads_ours(tmp_path: Path) -> None:
    public, _ = identity(tmp_path)
    tree, how = lay(tmp_path / "ACME", FILES), Encryption(Form.AGE, recipients=(public,))
    archive = packed(tree, tmp_path / "ACME.tar.gz.age", how)
    run(command(how, archive).replace("IDENTITY_FILE", "key"), tmp_path)
    expected = packed(tree, tmp_path / "again").read_bytes()
    assert (tmp_path / "ACME.tar.gz").read_bytes() == expected


@age
def test_we_read_what_age_writes(plain: Path, tmp_path: Path) -> None:
    public, key = identity(tmp_path)
    run(f"age -r {public} -o x plain", tmp_path)
    assert decrypted(tmp_path / "x", key) == plain.read_bytes()


# ---- as a whole ---------------------------------------------------------------------------


def test_an_encrypted_archive_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing plain is left beside it."""
    archive = packed(lay(tmp_path / "ACME", FILES), tmp_path / "x", BY_AES)
    assert codes(verified(archive, SECRET)) == set()
    monkeypatch.setattr(encryption, "_ITERATIONS", (0, 10))
    with pytest.raises(UserError, match="a wrong passphrase"):
        verified(archive, "wrong")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ACME", "x", "x.sha1", "x.sha256"]
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert (tmp_path / "x.sha256").read_text() == f"{digest}  x\n"


@pytest.mark.parametrize(("form", "library"), [(Form.AGE, "pyrage"), (Form.OFFICIAL, "cryptography.hazmat.primitives.ciphers")])  # fmt: skip
def test_without_the_extra(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form, library: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    package = library.partition(".")[0]
    message = rf"needs the package {package}: pip install 'mlperf-pkg\[encrypt\]'"
    with pytest.raises(UserError, match=message):
        encrypt(plain, tmp_path / "x", Encryption(form, SECRET))
