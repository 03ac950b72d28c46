"""Encrypting and back, also by the tools that others use."""

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
from mlperf_pkg.commands.archive.encryption import Encryption, Form, command
from mlperf_pkg.commands.archive.tar import HEADER
from mlperf_pkg.commands.archive.verification import verify_archive
from mlperf_pkg.errors import UserError
from tests.helpers.archives import FILES, LOG, codes, failed, flipped, packed, verified, write
from tests.helpers.examples import SHARE, examples
from tests.helpers.workspaces import lay

SECRET = "größer & $geheim"
BY_AES = Encryption(Form.OFFICIAL, SECRET)
SHORT = {**FILES, LOG: FILES[LOG][:400]}
ENV = {**os.environ, "PASS": SECRET}
CHUNK = 1 << 20

openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl here")
age = pytest.mark.skipif(not shutil.which("age"), reason="there is no age here")


def run(line: str, folder: Path) -> bytes:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env=ENV,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write(tmp_path / "plain", HEADER + b"some content")


def encrypt(source: Path, target: Path, how: Encryption = BY_AES) -> Path:
    data = source.read_bytes()
    with encryption.encrypting(target, how) as sink:
        sink(data[:7])
        sink(data[7:])
    return target


def decrypted(source: Path, key: Path | None = None, secret: str = SECRET) -> bytes:
    target = source.with_name("back")
    encryption.decrypt(source, target, key, lambda: secret)
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
@pytest.mark.parametrize(
    "flags", ["-aes256", "-aes-256-cbc -pbkdf2", "-aes-256-cbc -md sha256 -pbkdf2 -iter 600000"]
)
def test_we_read_what_openssl_writes(plain: Path, tmp_path: Path, flags: str) -> None:
    """The last one is a form that ``pack`` wrote once."""
    run(f"openssl enc -e {flags} -in plain -out theirs -pass env:PASS", tmp_path)
    assert decrypted(tmp_path / "theirs") == plain.read_bytes()


@pytest.fixture
def official_archive(tmp_path: Path) -> Path:
    """An archive in the official form, without the tree that is in it."""
    tree = lay(tmp_path / "AC ME", FILES)
    archive = packed(tree, tmp_path / "AC ME.tar.gz", BY_AES)
    shutil.rmtree(tree)
    return archive


def test_the_checksum_is_the_line_of_sha1sum(official_archive: Path, tmp_path: Path) -> None:
    """The official script compares the two."""
    line = run("sha1sum AC*.gz", tmp_path).decode()
    assert (tmp_path / "AC ME.sha1").read_text() == line


@pytest.mark.parametrize(
    ("how", "line"),
    [
        (BY_AES, "openssl enc -d -aes-256-cbc -md sha256 -in 'a b/x.tar.gz.age' | tar -xz"),
        (Encryption(Form.AGE), "age -d -o 'a b/x.tar.gz' 'a b/x.tar.gz.age'"),
    ],
)
def test_the_printed_command_has_the_path(how: Encryption, line: str) -> None:
    assert command(how, Path("a b/x.tar.gz.age")) == line


@openssl
@pytest.mark.parametrize("printed", [False, True], ids=["official script", "printed command"])
def test_the_official_script_and_the_printed_command_unpack_it(
    official_archive: Path, tmp_path: Path, printed: bool
) -> None:
    line = "openssl enc -d -aes256 -in AC*.gz -pass env:PASS | tar -xvz"
    if printed:
        line = command(BY_AES, official_archive).replace(" -in", " -pass env:PASS -in")
    run(line, tmp_path)
    assert {path: (tmp_path / "AC ME" / path).read_bytes() for path in FILES} == FILES


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
    assert encryption.form_of(cheap) is Form.AGE
    assert decrypted(cheap) == b"some content"
    with pytest.raises(UserError, match="the file needs a passphrase; the given one is wrong"):
        decrypted(cheap, secret="wrong")


@pytest.mark.skipif(SHARE > 1, reason="takes 7 s on purpose: only with MLPERF_PKG_FULL=1")
def test_age_by_passphrase_and_back(plain: Path, tmp_path: Path) -> None:
    encrypt(plain, tmp_path / "x", Encryption(Form.AGE, SECRET))
    assert decrypted(tmp_path / "x") == plain.read_bytes()


def identity(folder: Path, name: str = "key") -> tuple[str, Path]:
    made = pyrage.x25519.Identity.generate()
    return str(made.to_public()), write(folder / name, f"# a key\n{made}\n".encode())


@pytest.fixture
def by_recipients(plain: Path, tmp_path: Path) -> dict[str, Path]:
    """Identities by name; ``plain`` is encrypted to the first two, as ``x``."""
    public, key = identity(tmp_path)
    second, other = identity(tmp_path, "other")
    encrypt(plain, tmp_path / "x", Encryption(Form.AGE, recipients=(public, second)))
    return {"first": key, "second": other, "third": identity(tmp_path, "third")[1]}


@pytest.mark.parametrize("name", ["first", "second"])
def test_age_by_recipient(
    by_recipients: dict[str, Path], plain: Path, tmp_path: Path, name: str
) -> None:
    assert decrypted(tmp_path / "x", by_recipients[name]) == plain.read_bytes()


@pytest.mark.parametrize("name", ["third", "none"])
def test_age_by_another_recipient(
    by_recipients: dict[str, Path], tmp_path: Path, name: str
) -> None:
    with pytest.raises(UserError, match="the file needs an --identity"):
        decrypted(tmp_path / "x", by_recipients.get(name))


BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("AGE-SECRET-KEY-1X\n", "not an age or SSH identity"),
        ("nonsense\n", "not an age or SSH identity"),
        ("\udcff\0\n", "not an age or SSH identity"),
        (BEGIN, "not an age or SSH identity"),
        (f"{BEGIN}b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB\n", "not an age or SSH"),
        ("x\n" * 101, "101 lines of identities; expected at most 100"),
    ],
    ids=["cut off", "nonsense", "bytes", "first line", "cut off in the middle", "many"],
)
def test_no_identity(plain: Path, tmp_path: Path, key: str, message: str) -> None:
    encrypt(plain, tmp_path / "x", Encryption(Form.AGE, recipients=(identity(tmp_path)[0],)))
    with pytest.raises(UserError, match=f"key: {message}"):
        decrypted(tmp_path / "x", write(tmp_path / "key", key.encode("utf-8", "surrogateescape")))


STANZA = b"-> X25519 ko7OHzqYJrNlRtKkQnqlYTg4Xf5CneBJ6Fc9EnInL1s\n" + b"A" * 43 + b"\n"
END = b"--- N8RZc+pOLSV/Bs94ZJ2ZcZ/TDp6Ijc+gAdkfLJVvSTg\n"
LINE = b"A" * 64 + b"\n"


@pytest.mark.parametrize(
    "header",
    [STANZA * 5000 + END, b"-> x\n" + LINE * 16_000 + b"\n" + END, STANZA, b"-> "],
    ids=["5,000 stanzas", "a stanza of 1 MB", "cut off", "cut off in a stanza"],
)
def test_a_header_that_the_library_would_take_hours_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: bytes
) -> None:
    """Its time grows with the square of the header's size, so it is not called."""
    monkeypatch.setattr(encryption, "_age", lambda: None)
    hostile = write(tmp_path / "x", b"age-encryption.org/v1\n" + header)
    with pytest.raises(
        UserError, match="as the header of the file has no end, or is larger than 32 KiB"
    ):
        decrypted(hostile, tmp_path / "key")


def test_the_largest_header_is_read(plain: Path, tmp_path: Path) -> None:
    public, key = identity(tmp_path)
    encrypt(plain, tmp_path / "x", Encryption(Form.AGE, recipients=(public,) * 300))
    assert decrypted(tmp_path / "x", key) == plain.read_bytes()
    with pytest.raises(UserError, match="400 recipients are too many: the header is larger than"):
        encryption.recipients([public] * 400)


def test_bytes_are_not_a_recipient() -> None:
    with pytest.raises(UserError, match="is not a recipient; expected age1"):
        encryption.recipients(["age1\udcff"])


@pytest.mark.parametrize("part", [1, 2], ids=["whole", "cut off"])
def test_age_as_text_is_refused_with_what_helps(tmp_path: Path, part: int) -> None:
    key = pyrage.x25519.Identity.generate().to_public()
    text = pyrage.encrypt(b"some content", [key], armored=True)
    with pytest.raises(UserError, match="decrypt the file with age -d"):
        verify_archive(write(tmp_path / "x", text[: len(text) // part]), Options(), mock.Mock())


def test_too_large_for_a_passphrase(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption, "_LARGEST_BY_PASSPHRASE", 3)
    with pytest.raises(UserError, match="use --recipient"):
        encrypt(plain, tmp_path / "x", Encryption(Form.AGE, SECRET))


@age
def test_age_reads_ours_and_we_what_age_writes(plain: Path, tmp_path: Path) -> None:
    public, key = identity(tmp_path)
    run(f"age -r {public} -o x plain", tmp_path)
    assert decrypted(tmp_path / "x", key) == plain.read_bytes()
    tree, how = lay(tmp_path / "ACME", FILES), Encryption(Form.AGE, recipients=(public,))
    archive = packed(tree, tmp_path / "ACME.tar.gz.age", how)
    run(command(how, archive).replace("IDENTITY_FILE", "key"), tmp_path)
    expected = packed(tree, tmp_path / "again").read_bytes()
    assert (tmp_path / "ACME.tar.gz").read_bytes() == expected


# ---- as a whole ---------------------------------------------------------------------------


@pytest.fixture(scope="module", params=Form)
def encrypted(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Path, bytes, Path | None]:
    """A folder, an archive, and the identity it needs."""
    folder = tmp_path_factory.mktemp("encrypted")
    public, key = identity(folder)
    by_age = request.param is Form.AGE
    how = Encryption(Form.AGE, recipients=(public,)) if by_age else BY_AES
    data = packed(lay(folder / "ACME", SHORT), folder / "x", how).read_bytes()
    return folder, data, key if by_age else None


@examples(45)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_bit(encrypted: tuple[Path, bytes, Path | None], position: float, bit: int) -> None:
    """Even without the checksum file, as the archive within is compared to the byte."""
    folder, data, key = encrypted
    archive = write(folder / "changed", flipped(data, int(position * len(data)), bit))
    with mock.patch.object(encryption, "_ITERATIONS", (0, 10)):  # more take their time on purpose
        assert failed(archive, SECRET, key)


def test_an_encrypted_archive_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing plain is left beside it."""
    archive = packed(lay(tmp_path / "ACME", FILES), tmp_path / "x", BY_AES)
    assert codes(verified(archive, SECRET)) == set()
    monkeypatch.setattr(encryption, "_ITERATIONS", (0, 10))
    with pytest.raises(UserError, match="the passphrase is wrong"):
        verified(archive, "wrong")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ACME", "x", "x.sha1", "x.sha256"]
    # What does not fit its checksum is not decrypted: nobody is asked for a passphrase.
    write(archive, flipped(archive.read_bytes(), 900, 0))
    report = verify_archive(archive, Options(), mock.Mock(side_effect=AssertionError))
    assert codes(report) == {"PACK101"}


@pytest.mark.parametrize(
    ("form", "library"),
    [(Form.AGE, "pyrage"), (Form.OFFICIAL, "cryptography.hazmat.primitives.ciphers")],
)
def test_without_the_extra(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form, library: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    package = library.partition(".")[0]
    message = f"needs the package {package}: pip install 'cryptography<51"
    with pytest.raises(UserError, match=message):
        encrypt(plain, tmp_path / "x", Encryption(form, SECRET))
