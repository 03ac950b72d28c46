"""Published scores in CSV files."""

from pathlib import Path

import pytest

from mlperf_pkg.commands.compare.reading import read_published
from mlperf_pkg.errors import UserError


def test_scores_are_read_by_the_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(
        b"\xef\xbb\xbfbenchmark,system,minutes,round,submitter,accelerators,source\r\n"
        b"resnet,dgx,28.771,v1.0,NVIDIA,8,press\r\nbert,dgx,,1.0,NVIDIA,8,\r\nbert,dgx,2,,,,\r\n"
    )
    one, two = read_published(path, 3)
    assert (one.benchmark, one.system, one.minutes) == ("resnet", "dgx", 28.771)
    assert (one.round, one.submitter, one.accelerators, one.argument) == ("1.0", "NVIDIA", 8, 3)
    assert (two.round, two.submitter, two.accelerators, two.path) == (None, None, None, f"{path}:4")


HEAD = "system,benchmark,minutes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "",
            ":1: no column system or benchmark or minutes; expected system, benchmark, minutes",
            id="empty",
        ),
        pytest.param(
            "system,benchmark\n",
            ":1: no column minutes; expected system, benchmark, minutes",
            id="a column lacks",
        ),
        pytest.param(
            f"{HEAD}\na,b,x\n",
            ":2: minutes is 'x'; expected a number above 0",
            id="minutes not a number",
        ),
        pytest.param(f"{HEAD}\na,b,-1\n", ":2: minutes is '-1'", id="negative minutes"),
        pytest.param(f"{HEAD}\na,,1\n", ":2: benchmark is empty; expected a name", id="no name"),
        pytest.param(
            f"{HEAD},nodes\na,b,1,1.5\n",
            ":2: nodes is '1.5'; expected a whole",
            id="half a node",
        ),
        pytest.param(
            f"{HEAD},round\na,b,1,two\n", ":2: round is 'two'; expected a round", id="not a round"
        ),
        pytest.param(
            f"{HEAD}\na,b,{'1' * 200_000}\n", "field larger than field limit", id="a large field"
        ),
        pytest.param("\udcff", ": cannot be read: the file is not UTF-8 text", id="not UTF-8"),
    ],
)
def test_a_table_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError) as refused:
        read_published(path, 0)
    assert message in str(refused.value)
