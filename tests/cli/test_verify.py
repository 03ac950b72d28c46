"""``mlperf-pkg verify``."""

from pathlib import Path

import pytest

from tests.helpers.program import call
from tests.helpers.trees import write_code, write_submission


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    round_folder = tmp_path_factory.mktemp("packed") / "training_results_v2.1"
    tree = write_code(write_submission(round_folder / "ACME"))
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
        "  cut.tar.gz: the archive is cut off, as the compressed data does not end  PACK102"
        " [rules]",
    ]
    assert "official: not checked, as it is not known whether these files are" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["cut.tar.gz"]


def test_extract(archive: Path, tmp_path: Path) -> None:
    assert call("verify", archive, "--extract", tmp_path / "out").exit_code == 0
    assert call("verify", tmp_path / "out/ACME").exit_code == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{archive} --extract out", "exists already"),
        ("not-an-archive", "not a .tar.gz archive"),
        ("out --extract x", "--extract applies only to an archive"),
        ("encrypted", "--passphrase-file FILE or $MLPERF_PKG_PASSPHRASE"),
    ],
)
def test_refusals(
    line: str, message: str, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("not-an-archive").write_text("text")
    Path("encrypted").write_bytes(b"Salted__" + bytes(24))
    result = call("verify", *line.format(archive=archive).split())
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_a_folder_without_logs() -> None:
    without_logs = call("verify", Path(__file__).parent)
    assert (without_logs.exit_code, "PACK201" in without_logs.stdout) == (1, True)
