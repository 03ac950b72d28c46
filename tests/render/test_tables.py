"""Tables of results, as programs and spreadsheets read them."""

import csv
import io
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.infra.text import escape_cell
from mlperf_pkg.render import tables
from mlperf_pkg.render.table import csv_text, json_text
from mlperf_pkg.results.report import MAX_DEPTH, Report, as_json
from tests.helpers.reports import FAIL, NOT_CHECKED, SET, nested, report, result_set, system

OPEN = result_set(
    path="results/open/resnet",
    system="open",
    benchmark="resnet",
    division="open",
    verdict=NOT_CHECKED,
    runs_required=None,
    score_minutes=None,
    rcp=None,
    score_note="none",
)
REPORT = report(
    result_sets=(OPEN, result_set(verdict=FAIL)),
    systems=(system(), system(id="open", path="systems/open.json", accelerators=None)),
)


def test_json_is_written_as_the_standard_library_does() -> None:
    for value in (
        REPORT,
        *(nested(levels) for levels in range(MAX_DEPTH - 3, MAX_DEPTH + 3)),
        [{"\x7f\u2028": "größer \U0001f600", "x": []}, {}, -0.0, 1e300, 1e-7, 1e16, 10**30, True],
        [math.nan, math.inf, None, "\ud800", {"\udcff": "\x00"}],
    ):
        assert json_text(value) == json.dumps(as_json(value), indent=2) + "\n"


def accelerators_in(made: Report) -> list[int | None]:
    return [row["accelerators"] for row in json.loads(tables.results_json(made))["results"]]


def test_accelerators_are_those_of_the_same_submission() -> None:
    for path, accelerators in (
        ("results/dgx/bert", 8),
        ("a/results/dgx/bert", 16),
        ("b/results/dgx/strong/cosmoflow", 32),
        ("logs", None),
    ):
        systems = (
            system(),
            system(path="a/systems/dgx.json", accelerators=16),
            system(path="b/systems/dgx.json", accelerators=32),
        )
        changes: dict[str, Any] = {"submitter": None, "system": "other"} if path == "logs" else {}
        given_ = report(result_sets=(result_set(path=path, **changes),), systems=systems)
        assert accelerators_in(given_) == [accelerators]


@pytest.mark.parametrize(
    ("paths", "system_by", "accelerators"),
    [
        (["systems/dgx.json"], "the folder name", 8),
        (["../systems/dgx.json"], "the folder name", 8),
        (["a/systems/dgx.json", "b/systems/dgx.json"], "the folder name", None),
        (["../systems/dgx.json"], None, None),
    ],
    ids=["workspace", "a folder in a workspace", "two workspaces", "another system"],
)
def test_accelerators_of_raw_logs(
    paths: list[str], system_by: str | None, accelerators: int | None
) -> None:
    systems = tuple(system(path=path) for path in paths)
    made = report(result_sets=(result_set(path=".", system_by=system_by),), systems=systems)
    assert accelerators_in(made) == [accelerators]


def test_csv() -> None:
    header, bert, resnet = tables.results_csv(REPORT).splitlines()
    assert header == (
        "submitter,system,benchmark,division,round,accelerators,runs_found,runs_required,"
        "score_minutes,unscaled_minutes,scaling_factor,official_minutes,rcp,rcp_margin_percent,"
        "rcp_message,official,rules,note,path,id"
    )
    assert bert == (
        "ACME,dgx,bert,closed,2.0,8,10,10,20.5,20.5,1.0,20.5,pass,10.0,RCP found,"
        "fail,pass,,results/dgx/bert,ACME/dgx/bert/closed"
    )
    assert resnet == (
        "ACME,open,resnet,open,2.0,,10,,,20.5,1.0,20.5,,,,not_checked,not_checked,none,"
        "results/open/resnet,ACME/open/resnet/open"
    )


@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=1))
def test_csv_round_trips(texts: list[str]) -> None:
    written = csv_text(["name"], [["x", *texts]])
    read = list(csv.reader(io.StringIO(written)))
    assert read[1] == ["x", *map(escape_cell, texts)]


def test_json() -> None:
    read = json.loads(tables.results_json(REPORT))
    assert read["format"] == "mlperf-pkg/results/1"
    assert [row["system"] for row in read["results"]] == ["dgx", "open"]
    assert read["results"][1]["score_minutes"] is None
    assert read["results"][1]["official"] == "not_checked"
    assert [row["id"] for row in read["results"]] == [SET, "ACME/open/resnet/open"]


def test_markdown() -> None:
    header, rule, bert, resnet = tables.results_markdown(REPORT).splitlines()
    assert header == (
        "| Submitter | System | Benchmark | Division | Round | Accelerators | Runs | Minutes |"
        " RCP margin | Official | Rules |"
    )
    assert rule == "| --- | --- | --- | --- | --- | ---: | ---: | ---: | --- | --- | --- |"
    assert bert == (
        "| ACME | dgx | bert | closed | 2.0 | 8 | 10/10 | 20.500 | pass +10.0 % | FAIL | pass |"
    )
    assert resnet == (
        "| ACME | open | resnet | open | 2.0 | - | 10 | - | - | not checked | not checked |"
    )


def test_html_takes_nothing_for_markup() -> None:
    name = "</td><script>alert('x')</script>\x1b[31m"
    page = tables.results_html(report(result_sets=[result_set(system=name)]))
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;\\x1b[31m" in page
