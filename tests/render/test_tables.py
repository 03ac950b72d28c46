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
from tests.helpers.reports import FAIL, NOT_CHECKED, nested, report, result_set, system

NAMES = {"path": "results/open/resnet", "system": "open", "benchmark": "resnet", "division": "open"}
NOTHING = {"verdict": NOT_CHECKED, "runs_required": None, "score_minutes": None, "rcp": None}
OPEN = result_set(**NAMES, **NOTHING, score_note="none")
REPORT = report(
    result_sets=(OPEN, result_set(verdict=FAIL)),
    systems=(system(), system(id="open", path="systems/open.json", accelerators=None)),
)


@pytest.mark.parametrize(
    "value",
    [
        REPORT,
        *(nested(levels) for levels in range(MAX_DEPTH - 3, MAX_DEPTH + 3)),
        [{"\x7f\u2028": "größer \U0001f600", "x": []}, {}, -0.0, 1e300, 1e-7, 1e16, 10**30, True],
        [math.nan, math.inf, None, "\ud800", {"\udcff": "\x00"}],
    ],
)
def test_json_is_written_as_the_standard_library_does(value: Any) -> None:
    assert json_text(value) == json.dumps(as_json(value), indent=2) + "\n"


def accelerators_in(made: Report) -> list[int | None]:
    return [row["accelerators"] for row in json.loads(tables.results_json(made))["results"]]


PATHS = ["systems/dgx.json", "a/systems/dgx.json", "b/systems/dgx.json"]
ABOVE = ["../systems/dgx.json"]
BY = "the folder name"


@pytest.mark.parametrize(
    ("systems", "path", "system_by", "accelerators"),
    [
        pytest.param(PATHS, "results/dgx/bert", None, 8, id="at the top"),
        pytest.param(PATHS, "a/results/dgx/bert", None, 16, id="in a submission"),
        pytest.param(PATHS, "b/results/dgx/strong/cosmoflow", None, 24, id="in one of HPC"),
        pytest.param(PATHS[1:], "results/dgx/bert", None, None, id="only in others"),
        pytest.param(PATHS[:1], ".", BY, 8, id="loose logs"),
        pytest.param(ABOVE, ".", BY, 8, id="loose logs below a workspace"),
        pytest.param(PATHS[1:], ".", BY, None, id="loose logs beside submissions"),
        pytest.param(ABOVE, ".", None, None, id="loose logs of no system"),
    ],
)
def test_accelerators_are_those_of_the_same_submission_or_workspace(
    systems: list[str], path: str, system_by: str | None, accelerators: int | None
) -> None:
    rows = [
        system(path=system_path, accelerators=8 * number)
        for number, system_path in enumerate(systems, 1)
    ]
    made = report(result_sets=(result_set(path=path, system_by=system_by),), systems=rows)
    assert accelerators_in(made) == [accelerators]


CSV = """\
submitter,system,benchmark,division,round,accelerators,runs_found,runs_required,score_minutes,\
unscaled_minutes,scaling_factor,official_minutes,rcp,rcp_margin_percent,rcp_message,official,\
rules,note,path,id
ACME,dgx,bert,closed,2.0,8,10,10,20.5,20.5,1.0,20.5,pass,10.0,RCP found,\
fail,pass,,results/dgx/bert,ACME/dgx/bert/closed
ACME,open,resnet,open,2.0,,10,,,20.5,1.0,20.5,,,,not_checked,not_checked,none,\
results/open/resnet,ACME/open/resnet/open
"""


def test_csv_and_json() -> None:
    assert tables.results_csv(REPORT) == CSV
    read = json.loads(tables.results_json(REPORT))
    assert read["format"] == "mlperf-pkg/results/1"
    rows = list(csv.DictReader(io.StringIO(CSV)))
    texts = [
        {key: "" if v is None else str(v) for key, v in row.items()} for row in read["results"]
    ]
    assert texts == rows


@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=1))
def test_csv_round_trips(texts: list[str]) -> None:
    written = csv_text(["name"], [["x", *texts]])
    read = list(csv.reader(io.StringIO(written)))
    assert read[1] == ["x", *map(escape_cell, texts)]


def test_a_table_tells_weak_scaling_from_strong() -> None:
    modes = [result_set(benchmark="cosmoflow", scaling=mode) for mode in ("strong", "weak")]
    lines = tables.results_markdown(report(result_sets=tuple(modes))).splitlines()[2:]
    assert [line.split(" | ")[2] for line in lines] == ["cosmoflow", "cosmoflow (weak)"]


MARKDOWN = """\
| Submitter | System | Benchmark | Division | Round | Accelerators | Runs | Minutes | RCP margin \
| Official | Rules |
| --- | --- | --- | --- | --- | ---: | ---: | ---: | --- | --- | --- |
| ACME | dgx | bert | closed | 2.0 | 8 | 10/10 | 20.500 | pass +10.0 % | FAIL | pass |
| ACME | open | resnet | open | 2.0 | - | 10 | - | - | not checked | not checked |
"""


def test_markdown() -> None:
    assert tables.results_markdown(REPORT) == MARKDOWN


def test_html_takes_nothing_for_markup() -> None:
    name = "</td><script>alert('x')</script>\x1b[31m"
    page = tables.results_html(report(result_sets=[result_set(system=name)]))
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;\\x1b[31m" in page
