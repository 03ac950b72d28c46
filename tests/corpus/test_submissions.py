"""Whole published submissions: package and repository checker, live on copies, against our
verdict.
"""

import shutil
from pathlib import Path

import pytest

from mlperf_pkg.findings import Verdict, verdicts_of
from tests.helpers.corpus import CORPUS, FULL, ROUNDS, checked, expected, kind_of, needs_corpus
from tests.helpers.official import official_verdict

pytestmark = needs_corpus

SMALL_BYTES = 700_000
"""What is larger is judged with ``MLPERF_PKG_FULL=1`` only."""


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def submissions() -> list[str]:
    folders = sorted(path.parent for path in CORPUS.glob("*v[0-9]*/*/results"))
    return [str(p.relative_to(CORPUS)) for p in folders if FULL or size(p) < SMALL_BYTES]


@pytest.mark.filterwarnings("ignore:Result file .* logs more than one seeds")
@pytest.mark.parametrize("name", submissions())
def test_verdict_of_the_upload(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    report = checked(name).report
    kind = (kind_of(name)[0], f"{report.round}.0")
    official, message = official_verdict(CORPUS / name, tmp_path, caplog, *kind)
    shutil.rmtree(tmp_path / "copy")
    assert report.verdict.official.value == official, message


@pytest.mark.parametrize("name", ROUNDS)
def test_systems(name: str) -> None:
    """Their official verdicts, and that the accelerators of all that can be read are counted."""
    systems = {system.path: system for system in checked(name).systems}
    verdicts = {path: verdicts_of(system.findings).official for path, system in systems.items()}
    assert verdicts == {
        path: Verdict.of(answer != "pass") for path, answer in expected(name)["systems"].items()
    }
    assert all(system.accelerators for system in systems.values() if system.contents is not None)
