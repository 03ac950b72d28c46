"""``mlperf-pkg verify``."""

from pathlib import Path

import pytest

from tests.helpers.program import call
from tests.helpers.trees import write_submission


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = write_submission(tmp_path_factory.mktemp("packed") / "training_results_v2.1" / "ACME")
    assert call("pack", tree).exit_code == 0
    return tree.with_name("ACME.tar.gz")


def test_a_good_archive(archive: Path) -> None:
    result = call("verify", archive)
    assert result.exit_code == 0
    assert "official: pass" in result.stdout
    assert result.stdout.splitlines()[3].startswith("round 2.1: ")
    assert result.stderr == ""


def test_a_damaged_archive(archive: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(archive.read_bytes()[:-9])
    result = call("verify", cut, "--extract", tmp_path / "out")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-2:] == [
        "Errors",
        "  cut.tar.gz: it is cut off: the compressed data does not end  PACK102 [rules]",
    ]
    assert "official: not checked, not confirmed as the files that were packed" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["cut.tar.gz"]


def test_extract_and_refusals(archive: Path, tmp_path: Path) -> None:
    assert call("verify", archive, "--extract", tmp_path / "out").exit_code == 0
    assert call("verify", tmp_path / "out/ACME").exit_code == 0
    (tmp_path / "x").write_bytes(b"Salted__" + bytes(24))
    for arguments, message in (
        ((archive, "--extract", tmp_path / "out"), "exists already"),
        ((__file__,), "not a .tar.gz archive"),
        ((tmp_path, "--extract", "x"), "--extract applies only to an archive"),
        ((tmp_path / "x",), "--passphrase-file FILE or $MLPERF_PKG_PASSPHRASE"),
    ):
        result = call("verify", *arguments)
        assert (result.exit_code, message in result.stderr) == (2, True)
    without_logs = call("verify", Path(__file__).parent)
    assert (without_logs.exit_code, "PACK201" in without_logs.stdout) == (1, True)
