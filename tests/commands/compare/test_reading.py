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


def test_a_table_is_refused_with_its_line(tmp_path: Path) -> None:
    path, head = tmp_path / "scores.csv", "system,benchmark,minutes"
    for text, message in (
        ("", ":1: no column system or benchmark or minutes; expected system, benchmark, minutes"),
        ("system,benchmark\n", ":1: no column minutes; expected system, benchmark, minutes"),
        (f"{head}\na,b,x\n", ":2: minutes is 'x'; expected a number above 0"),
        (f"{head}\na,b,-1\n", ":2: minutes is '-1'"),
        (f"{head}\na,,1\n", ":2: benchmark is empty; expected a name"),
        (f"{head},nodes\na,b,1,1.5\n", ":2: nodes is '1.5'; expected a whole"),
        (f"{head},round\na,b,1,two\n", ":2: round is 'two'; expected a round"),
        (f"{head}\na,b,{'1' * 200_000}\n", "field larger than field limit"),
        ("\udcff", ": cannot be read: not text in UTF-8"),
    ):
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(UserError) as caught:
            read_published(path, 0)
        assert message in str(caught.value)
