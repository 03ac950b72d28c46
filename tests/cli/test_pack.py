"""``mlperf-pkg pack``."""

import os
import pty
import re
import signal
import subprocess
import tarfile
import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

import pytest

from mlperf_pkg.cli.secret import VARIABLE
from mlperf_pkg.commands.archive.verification import digest_of
from mlperf_pkg.commands.builder.manifest import MANIFEST
from mlperf_pkg.config import CONFIG_NAME
from tests.helpers.program import COMMAND, call, start
from tests.helpers.trees import simulated, write_code, write_set, write_submission, write_system
from tests.helpers.workspaces import (
    bytes_below,
    closed_workspace,
    described,
    lay,
    logs_of,
    numbered,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_code(write_submission(tmp_path / "ACME"))


def beside(tree: Path) -> list[str]:
    return sorted(path.name for path in tree.parent.iterdir())


def test_packs_beside_the_tree(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    result = call("pack", ".")
    archive = tree.with_name("ACME.tar.gz")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1] == f"sha256 {digest_of(archive)}"
    assert f"packed {archive}: 12 files, " in result.stdout
    assert beside(tree) == ["ACME", "ACME.tar.gz", "ACME.tar.gz.sha256"]
    assert not (tree / MANIFEST).exists()
    first, again = archive.read_bytes(), call("pack", ".")
    assert again.exit_code == 2
    assert "exists already; --force overwrites it" in again.stderr
    assert call("pack", ".", "--force").exit_code == 0
    assert archive.read_bytes() == first


def test_an_invalid_tree_is_packed_only_on_demand(tree: Path) -> None:
    (tree / "results/bow-pod16/resnet/result_0.txt").unlink()
    result = call("pack", tree)
    assert result.exit_code == 1
    assert "SET101" in result.stdout
    assert result.stderr.startswith(
        "nothing was packed, as there are errors; fix them, or use '--invalid keep' to pack"
    )
    assert beside(tree) == ["ACME"]
    assert call("pack", tree, "--invalid", "keep").exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-o {tree}/x.tar.gz", "refusing to write inside an input folder"),
        ("-o {tree}/../a\x7fb", "the name cannot be in a checksum file"),
        ("-o {tree}/../a.zip", "the format is .tar.gz, not .zip"),
        ("--encrypt official --passphrase-file /dev/null", "the passphrase is empty"),
        ("--encrypt age --passphrase-file /dev/null", "writes the passphrase into /dev/null"),
        ("--encrypt official --recipient age1x", "--recipient applies only to --encrypt age"),
        (
            "--encrypt age --passphrase-file {tree}/not-utf-8",
            "is not UTF-8 text, which age requires",
        ),
        ("--encrypt age --recipient age1x", "'age1x' is not a recipient"),
        ("--encrypt age --recipient age1x --passphrase-file /dev/null", "cannot be used together"),
        ("--encrypt age", "no passphrase is given, and there is no terminal"),
        ("--passphrase-file /dev/null", "--passphrase-file applies only to --encrypt"),
    ],
)
def test_refusals(options: str, message: str, tree: Path) -> None:
    (tree / "not-utf-8").write_bytes(b"\xff\n")
    result = call("pack", tree, *options.format(tree=tree).split())
    assert (result.exit_code, message in result.stderr) == (2, True)
    assert beside(tree) == ["ACME"]


def test_a_folder_without_results_is_refused(tree: Path) -> None:
    assert "not a submission (no folder results/)" in call("pack", tree / "systems").stderr


@pytest.mark.parametrize("name", ["systems", "results"])
def test_an_empty_folder_without_which_it_is_not_a_submission(name: str, tree: Path) -> None:
    rmtree(tree / name)
    (tree / name).mkdir()
    result = call("pack", tree, "--invalid", "keep")
    assert (result.exit_code, beside(tree)) == (2, ["ACME"])
    assert f"{name}: is empty, and an archive has no empty folders" in result.stderr


# ---- result sets that are not valid -------------------------------------------------------


CONFIG = b"""
code: {bert: code, resnet: code}
extra_files: {LICENSE: LICENSE}
notes: {bow-pod16/resnet: a <note>, bow-pod16/bert: of no result}
"""


def test_what_is_packed_is_as_if_it_had_been_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same bytes: manifest, tables, systems and code, too."""
    pod64 = {
        **numbered(logs_of("bow-pod64", "resnet", runs=4, seed=64), "logs/pod64_{}.log"),
        "systems/bow-pod64.json": described("bow-pod64"),
    }
    code = {"code/README.md": b"", "code/run_and_time.sh": b"", "LICENSE": b"x"}
    root = lay(closed_workspace(tmp_path), pod64, code, {CONFIG_NAME: CONFIG})
    (root / "logs/b0.log").unlink()
    monkeypatch.chdir(root)
    assert [
        invalid
        for invalid in ("keep", "drop")
        if call("build", "--invalid", invalid, "-o", invalid).exit_code != 0
    ] == []
    before = bytes_below(root / "keep")
    result = call("pack", "keep/Graphcore", "--invalid", "drop", "-o", "a.tar.gz")
    assert (result.exit_code, bytes_below(root / "keep")) == (0, before)
    pattern = r"note: a result set is left out, because (\S+) is not valid:\n  \S+: (\w+): "
    left_out = re.findall(pattern, result.stderr)
    assert left_out == [("bow-pod16/bert", "SET101"), ("bow-pod64/resnet", "SET101")]
    assert call("pack", "drop/Graphcore", "-o", "b.tar.gz").exit_code == 0
    assert Path("a.tar.gz").read_bytes() == Path("b.tar.gz").read_bytes()


@pytest.mark.parametrize(
    ("change", "left", "reason"),
    [
        ({"results/other/resnet/result_0.txt": b""}, {"bow-pod16/resnet", "bow-pod16/bert"}, ""),
        ({"systems/bow-pod16.json": b"{}"}, {"other/resnet"}, ""),
        (
            {"systems/bow-pod16.json": b"{}", "systems/other.json": b"{}"},
            set(),
            "no result set is valid",
        ),
        (
            {"results/other/resnet/a b.txt": b""},
            set(),
            "leaving out result sets does not remove the errors",
        ),
    ],
)
def test_left_out(tmp_path: Path, change: dict[str, bytes], left: set[str], reason: str) -> None:
    """Sets, and descriptions with all their sets; other errors refuse the tree as before."""
    tree = write_submission(tmp_path / "ACME", "resnet", "bert")
    write_code(tree, "resnet", "bert")
    write_system(tree / "systems", "other")
    write_set(tree / "results/other/resnet", simulated(seed=8))
    lay(tree, change)
    result = call("pack", tree, "--invalid", "drop")
    archive = tree.with_name("ACME.tar.gz")
    assert (result.exit_code, archive.exists()) == ((0, True) if left else (1, False))
    if left:
        with tarfile.open(archive) as tar:
            names = [name.split("/")[2:4] for name in tar.getnames() if "/results/" in name]
        assert {"/".join(parts) for parts in names} == left
    else:
        assert result.stderr.endswith(
            f"nothing was packed, as {reason}; fix them, or use '--invalid keep' to pack the"
            " whole submission\n"
        )


# ---- passphrases --------------------------------------------------------------------------


def test_a_passphrase_is_all_bytes_to_the_line_feed(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a file comes before that of the environment."""
    secret = b"\xef\xbb\xbf a\xff\x0b\x85b\xe2\x80\xa8\r "
    (tmp_path / "secret").write_bytes(secret + b"\nmore")
    monkeypatch.setenv(VARIABLE, "something else")
    file = ("--passphrase-file", tmp_path / "secret")
    packed = call("pack", tree, "--encrypt", "official", *file)
    assert packed.stdout.splitlines()[2].startswith("decrypt with: openssl enc -d -aes-256-cbc -md")
    archive = tree.with_name("mlperf_submission_ACME.tar.gz")
    line = f"openssl enc -d -aes256 -in {archive} -pass file:{tmp_path / 'secret'}"
    assert subprocess.run(line.split(), capture_output=True, check=False).returncode == 0
    assert call("verify", archive).exit_code == 2
    monkeypatch.setenv(VARIABLE, secret.decode("utf-8", "surrogateescape"))
    assert [
        source for source in ((), file) if call("verify", archive, *source).exit_code != 0
    ] == []


def test_the_passphrase_is_asked_for_twice_and_hidden(tree: Path) -> None:
    terminal, inner = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "pack", str(tree), "--encrypt", "official"],
        start_new_session=True,
        stdin=inner,
        stdout=inner,
        stderr=inner,
    )
    shown = b""
    for prompt in (b"Passphrase: ", b"Repeat for confirmation: "):
        while prompt not in shown:
            shown += os.read(terminal, 1024)
        os.write(terminal, b"secret\n")
    assert process.wait() == 0
    os.close(inner)
    with suppress(OSError):  # its end
        while more := os.read(terminal, 4096):
            shown += more
    os.close(terminal)
    assert b"decrypt with: openssl" in shown
    assert b"secret" not in shown
    assert tree.with_name("mlperf_submission_ACME.tar.gz").exists()


# ---- the end ------------------------------------------------------------------------------


def test_killed_half_way_it_leaves_nothing(tree: Path) -> None:
    with (tree / "large").open("wb") as stream:
        stream.truncate(1 << 29)
    process = start("pack", tree, "--invalid", "keep")
    while process.poll() is None and len(beside(tree)) == 1:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)  # as SIGINT, of which tests/cli/test_streams.py is
    process.communicate()
    assert process.returncode == 130
    assert beside(tree) == ["ACME"]
