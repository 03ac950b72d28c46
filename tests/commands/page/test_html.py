"""The text of a page: its policy, its size, and that every value in it is escaped."""

import re
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.commands.page import html as module
from mlperf_pkg.commands.page.html import columns
from mlperf_pkg.commands.page.template import page_head
from mlperf_pkg.findings import Finding, Severity, Waiver
from mlperf_pkg.infra import streams
from mlperf_pkg.infra.streams import FilePart, kept
from tests.helpers.charts import drawn
from tests.helpers.pages import (
    RUNTIME,
    assert_policy,
    assert_policy_of_page,
    html_of,
    many,
    page_of,
    several,
)


def test_the_policy_allows_the_scripts_of_the_page_and_nothing_else() -> None:
    assert_policy_of_page(html_of(page_of(drawn("bert"))))
    head = page_head("<b>", "p {}")
    assert "<title>&lt;b&gt;</title>\n<style>p {}</style>" in head
    assert_policy(head, "p {}")


FINDING = Finding(code="X101", message="<i>odd</i>", path="a/b.txt", line=7)


@pytest.mark.parametrize(
    ("findings", "texts"),
    [
        pytest.param(
            (FINDING,),
            ("&lt;i&gt;odd&lt;", "<code>&lt;b&gt;raw&lt;/b&gt;</code>", "a/b.txt:7"),
            id="with its raw line",
        ),
        pytest.param(
            (), ("No result set.", "No findings.", "<strong>pass</strong></dd>"), id="none"
        ),
    ],
)
def test_findings_are_shown(findings: tuple[Finding, ...], texts: tuple[str, ...]) -> None:
    page = html_of(page_of(findings=findings))
    assert [text for text in texts if text not in page] == []
    assert 'id="benchmarks"' not in page


def test_long_texts_are_cut() -> None:
    one = drawn("bert")
    row = replace(one.row, system="x" * 10**6, benchmark="y" * 10**6)
    runs = tuple(replace(run, row=replace(run.row, path="z" * 10**6)) for run in one.runs)
    assert len(html_of(page_of(replace(one, row=row, runs=runs)))) < 10**5


def test_every_finding_is_shown_errors_first_and_waived_ones_last() -> None:
    waiver = Waiver("agreed", "Jane", "2026-12-31")
    severities = [Severity.NOTE, *[Severity.WARNING] * 1000, *[Severity.ERROR] * 5]
    findings = tuple(
        Finding(code="X101", message=f"number {i}.", path=f"{i}", severity=severity)
        for i, severity in enumerate(severities)
    )
    page = page_of(findings=(replace(findings[0], waiver=waiver), *findings))
    text = html_of(page)
    shown = re.findall(r'<li id=.*\n<p><span class="severity">([a-z ]+)<', text)
    assert shown == [*["error"] * 5, *["warning"] * 1000, "note", "waived note"]
    assert all(f"number {i}." in text for i in range(len(severities)))


def test_too_large_a_page_shows_less_of_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(drawn("bert"))
    whole = html_of(page)
    monkeypatch.setattr(module, "MAX_BYTES", len(whole.encode()) - 1)
    assert len(html_of(page)) < len(whole)


@pytest.mark.parametrize(
    ("changes", "jobs"),
    [
        pytest.param({"_TEXTS": 1}, 1, id="each text is a piece"),
        pytest.param({"_PIECE": 1}, 1, id="each table is kept alone"),
        pytest.param({"_MANY_RUNS": 0}, 1, id="the least detail first"),
        pytest.param({"_MANY_RUNS": 0, "_SECTIONS": 2}, 2, id="two processes"),
    ],
)
def test_a_page_is_the_same_however_it_is_made(
    changes: dict[str, int], jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = html_of(many(5))
    for name, value in changes.items():
        monkeypatch.setattr(module, name, value)
    assert html_of(many(5), jobs=jobs) == whole


def test_a_large_page_is_in_a_temporary_file(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = html_of(many(5))
    monkeypatch.setattr(streams, "MOST_IN_MEMORY", 0)
    page = module.html(many(5), RUNTIME)
    assert set(map(type, page)) == {FilePart}
    assert b"".join(map(kept, page)).decode() == whole


def test_a_page_keeps_within_its_budget_for_every_result_set() -> None:
    few, more = (len(html_of(many(number)).encode()) for number in (10, 60))
    assert few < 110_000
    assert more - few < 50 * 5_000


def test_sets_are_ordered_by_round_submitter_system_benchmark() -> None:
    sets = [("B", "x", "2.0"), ("A", "y", "2.0"), ("C", "z", "1.1")]
    page = several({"submitter": s, "system": name, "round": r} for s, name, r in sets)
    assert [section.row.submitter for section in page.sections] == ["C", "A", "B"]
    assert page.choices["Round"] == ["1.1", "2.0"]


# ---- the data of charts ----------------------------------------------------------------------


def values(kind: str, *parts: Any) -> list[Any]:
    """The column as the page reads it."""
    if kind == "v":
        return [v for v, n in zip(parts[::2], parts[1::2], strict=True) for _ in range(n)]
    decimals, *steps = parts
    return [round(unit / 10**decimals, decimals) for unit in accumulate(steps)]


def rows(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    cells = {name: values(*column) for name, column in table.items()}
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 5)) | st.integers(-(10**7), 10**7)
CELLS = st.fixed_dictionaries({"a": NUMBERS, "b": st.text(max_size=3) | st.none() | NUMBERS})


@example([{"a": 1e300}, {"a": 2}])  # too large to be counted in decimals
@given(st.lists(CELLS, max_size=20))
def test_columns_lose_nothing(table: list[dict[str, Any]]) -> None:
    assert rows(columns(table)) == table
