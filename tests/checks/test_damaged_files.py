"""Files that are not runs until they are repaired, beside the number of runs."""

from itertools import chain
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from tests.helpers.raw_logs import OWN, RAW
from tests.helpers.workspaces import lay


def damaged(count: int) -> dict[str, bytes]:
    """The logs of a set, of which the first few lack the space after the marker."""
    files = dict(RAW)
    for name in list(RAW)[:count]:
        files[name] = RAW[name].replace(b":::MLLOG {", b":::MLLOG{")
    return files


@pytest.mark.parametrize(
    ("count", "hint"),
    [
        (0, None),
        (1, "this follows from TREE115 in logs/0.log; fix TREE115 first"),
        (2, "this follows from TREE115 in logs/0.log; fix TREE115 first"),
    ],
    ids=["none", "one", "two"],
)
def test_the_number_of_runs_names_damaged_files(
    tmp_path: Path, count: int, hint: str | None
) -> None:
    folder = lay(tmp_path, damaged(count), OWN)
    report = check([str(folder)], Options(round="2.0")).report
    hints = [finding.hint for finding in report.findings if finding.code == "SET101"]
    assert hints == ([hint] if count else [])
    places = [f.occurrences for f in report.findings if f.code == "TREE115"]
    assert [place.path for place in chain.from_iterable(places)] == list(RAW)[:count]
