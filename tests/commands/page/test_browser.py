"""The page in a real browser: it works, it stays silent, and no log is ever markup.

Most tests share an opened page, and leave its table as it was.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from mlperf_pkg.commands.page import html
from tests.commands.page.test_html import many
from tests.helpers.browser import Opened, assert_accessible, assert_fits, needs_chromium, opened
from tests.helpers.logs import edited
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set, write_submission, write_system

pytestmark = needs_chromium

HOSTILE = (
    "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'>"
    "]]>&lt;b&gt;\u2028\u202e{{ 7 * 7 }}"
)
DESKTOP = {"width": 1280, "height": 2000}


@pytest.fixture(scope="module")
def good_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission of three benchmarks, one set of which lacks runs."""
    root = tmp_path_factory.mktemp("good")
    tree = write_submission(root / "training_results_v2.0" / "ACME", "bert", "resnet", "ssd")
    for number in (3, 4):
        (tree / "results/bow-pod16/resnet" / f"result_{number}.txt").unlink()
    page = root / "report.html"
    assert call("report", tree, "-o", page).exit_code == 1
    return page


@pytest.fixture(scope="module")
def good(browser: Browser, good_file: Path) -> Iterator[Opened]:
    with opened(browser, good_file, "#s0", viewport=DESKTOP) as shown:
        yield shown


@pytest.fixture(scope="module")
def round_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round of two submitters, one of which has hostile text in its system description."""
    root = tmp_path_factory.mktemp("round")
    tree = root / "training_results_v2.0"
    write_submission(tree / "ACME", "bert", "resnet")
    write_submission(tree / "Other", "resnet", seed=8)
    write_system(
        tree / "Other" / "systems",
        accelerator_model_name=HOSTILE,
        number_of_nodes="2",
        accelerators_per_node="4",
    )
    page = root / "report.html"
    assert call("report", tree, "-o", page).exit_code in {0, 1}
    return page


@pytest.fixture(scope="module")
def whole_round(browser: Browser, round_file: Path) -> Iterator[Opened]:
    with opened(browser, round_file, "#g1", viewport=DESKTOP) as shown:
        yield shown


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of 150 result sets."""
    page = tmp_path_factory.mktemp("large") / "report.html"
    page.write_text(html.html(many(150), "window.vegaEmbed = null;"), "utf-8")
    return page


def column(page: Page, name: str) -> list[str]:
    heads = page.locator("#table thead th").all_inner_texts()
    at = heads.index(name) + 1
    cells = page.locator(f"#table tbody tr:not([hidden]) > :nth-child({at})").all_inner_texts()
    return [str(cell) for cell in cells]


def test_the_keyboard_opens_a_set_and_its_visible_charts(good: Opened) -> None:
    page = good.page
    assert "ACME" in page.locator("#table").inner_text()
    page.locator("#s2 summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#s2 svg")).to_have_count(4)
    assert page.locator("#s2 figcaption b").all_inner_texts() == [
        "Convergence",
        "Times of the runs",
        "Reference convergence points",
        "Timeline of the runs",
    ]
    assert page.locator("#s2 [aria-label^='Convergence. evaluation against']").first.is_visible()
    assert good.quiet


def test_it_sorts_by_a_click_on_a_head_or_the_keyboard(good: Opened) -> None:
    page = good.page
    runs = page.locator("#table thead").get_by_role("button", name="Runs")
    runs.click()
    assert column(page, "Runs") == ["3/5", "5/5", "10/10"]
    runs.click()
    assert column(page, "Runs") == ["10/10", "5/5", "3/5"]
    head = page.locator("#table th", has_text="Runs")
    assert head.get_attribute("aria-sort") == "descending"
    assert page.locator("[aria-sort]").count() == 1
    page.get_by_role("button", name="Benchmark").focus()
    page.keyboard.press("Space")
    assert column(page, "Benchmark") == ["bert", "resnet", "ssd"]
    page.keyboard.press("Space")
    assert column(page, "Benchmark") == ["ssd", "resnet", "bert"]


FILTERS = [
    ("#search", "bert", ["bert"]),
    ("[data-column=Benchmark]", "ssd", ["ssd"]),
    ("#verdict", "official", ["resnet"]),
    ("#search", "nothing like it", []),
]


@pytest.mark.parametrize(("control", "value", "left"), FILTERS)
def test_it_filters(good: Opened, control: str, value: str, left: list[str]) -> None:
    page = good.page
    field = page.locator(control)
    field.fill(value) if control == "#search" else field.select_option(value)
    assert column(page, "Benchmark") == left
    assert page.locator("details.set:visible").count() == len(left)
    assert page.locator("#count").inner_text() == f"{len(left)} of 3 result sets"
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#count")).to_have_text("3 of 3 result sets")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    ("name", "charts", "number"),
    [("good", "#s0[open] svg", 4), ("whole_round", "#g1 svg, #scaling ~ .charts svg", 3)],
)
def test_it_is_accessible_and_no_wider_than_its_window(
    request: pytest.FixtureRequest, name: str, charts: str, number: int, width: int, scheme: Any
) -> None:
    page = request.getfixturevalue(name).page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 1500})
    expect(page.locator(charts)).to_have_count(number)
    assert_fits(page)
    assert_accessible(page)


def test_a_link_opens_the_set_that_it_leads_to(good: Opened) -> None:
    page = good.page
    page.get_by_role("link", name="resnet").first.click()
    resnet = page.locator("details.set[open]", has=page.locator("h4", has_text="resnet"))
    resnet.locator("a[href^='#f']").first.click()
    assert page.evaluate("document.activeElement.tagName") == "LI"


def test_it_can_be_read_without_scripts(browser: Browser, good_file: Path) -> None:
    with opened(browser, good_file, java_script_enabled=False) as shown:
        shown.page.locator("#s0 summary").click()
        assert shown.page.locator("#s0 tbody tr").count() == 10
        assert "all numbers are in the tables" in shown.page.locator("main").inner_text()


def test_no_log_is_ever_markup(browser: Browser, tmp_path: Path) -> None:
    """Loose logs with hostile text in every field that holds text."""
    logs = [edited(log, "submission_platform", value=HOSTILE) for log in simulated("resnet")]
    logs[0] = edited(logs[0], "opt_name", value=HOSTILE, metadata={HOSTILE: HOSTILE})
    write_set(tmp_path / "logs" / "<img src=x onerror=alert(1)>", tuple(logs))
    file = tmp_path / "report.html"
    assert call("report", tmp_path / "logs", "--round", "2.0", "-o", file).exit_code == 1
    with opened(browser, file, "#s0") as shown:
        page = shown.page
        expect(page.locator("#s0 svg")).to_have_count(4)
        assert page.evaluate("window.taken") is None
        assert page.locator("img, b:has-text('&lt;')").count() == 0
        assert page.locator("body script").count() == 3
        assert "<img src=x onerror=" in page.locator("#s0 h4").inner_text()
        assert "\\u2028\\u202e{{ 7 * 7 }}" in page.locator("#s0 h4").inner_text()
        expect(page.locator("#findings ~ ol pre").first).to_contain_text("</script>")
        assert shown.quiet


def test_no_description_is_ever_markup(whole_round: Opened) -> None:
    page = whole_round.page
    chart = page.locator("[data-charts=a1]")
    chart.scroll_into_view_if_needed()
    expect(chart.locator("svg")).to_be_visible()
    for mark in chart.locator("svg .mark-symbol.role-mark path").all():
        mark.hover()
        if "onerror" in page.locator("#tip").inner_text():
            break
    assert "<img src=x onerror=" in page.locator("#tip").inner_text()
    assert page.evaluate("window.taken") is None
    assert page.locator("img").count() == 0
    assert whole_round.quiet


def test_a_round_begins_with_its_benchmarks_and_has_the_verdicts_later(
    whole_round: Opened, good: Opened
) -> None:
    of_a_round = [
        "Benchmarks",
        "Time against number of accelerators",
        "Results",
        "Two verdicts",
        "Result sets",
        "Findings",
    ]
    of_one = ["Two verdicts", "Results", "Result sets", "Findings"]
    for shown, heads in ((whole_round, of_a_round), (good, of_one)):
        assert shown.page.locator("h2").all_inner_texts() == heads
        assert shown.page.locator("nav a").count() == len(heads)


def test_what_is_shown_is_downloaded(whole_round: Opened) -> None:
    page = whole_round.page
    page.locator("[data-column=Benchmark]").select_option("resnet")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "MLPerf-Training-2.0.csv"
    rows = list(csv.DictReader(Path(download.value.path()).read_text("utf-8").splitlines()))
    assert [row["Submitter"] for row in rows] == column(page, "Submitter")
    assert {row["Benchmark"] for row in rows} == {"resnet"}
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as SVG: Time against").first.click()
    assert download.value.suggested_filename == "Time-against-accelerators-bert.svg"
    assert Path(download.value.path()).read_text("utf-8").startswith("<svg")
    page.get_by_role("button", name="Clear").click()
    assert whole_round.quiet


def test_the_state_of_the_table_is_in_the_url_and_all_common_charts_are_drawn_without_scrolling(
    browser: Browser, whole_round: Opened, round_file: Path
) -> None:
    page = whole_round.page
    page.locator("[data-column=Submitter]").select_option("ACME")
    page.get_by_role("button", name="Benchmark").click()
    page.get_by_role("button", name="Benchmark").click()
    assert column(page, "Benchmark") == ["resnet", "bert"]
    fragment = page.evaluate("location.hash")
    assert fragment == "#?Submitter=ACME&down=Benchmark"
    with opened(browser, round_file, fragment, viewport={"width": 1280, "height": 400}) as shown:
        assert column(shown.page, "Benchmark") == ["resnet", "bert"]
        assert shown.page.locator("#count").inner_text() == "2 of 3 result sets"
        expect(shown.page.locator("#scaling ~ .charts svg")).to_have_count(2)
        expect(shown.page.locator(".card svg")).to_have_count(2)
        shown.page.get_by_role("button", name="Clear").click()
        expect(shown.page.locator("#count")).to_have_text("3 of 3 result sets")
        assert shown.quiet


def test_rows_are_made_when_they_are_seen_and_all_are_sorted(
    browser: Browser, large_file: Path
) -> None:
    with opened(browser, large_file) as shown:
        rows = shown.page.locator("#table tbody tr")
        assert rows.count() == 100
        assert shown.page.locator("#s0 td").count() == 0
        shown.page.locator("#more").scroll_into_view_if_needed()
        expect(rows).not_to_have_count(100)
        shown.page.locator("#search").fill("system-14")
        expect(rows).to_have_count(11)
        shown.page.get_by_role("button", name="Clear").click()
        expect(rows).to_have_count(100)
        shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert rows.count() == 150
        shown.page.get_by_role("button", name="Score").click()
        shown.page.get_by_role("button", name="Score").click()
        assert column(shown.page, "Score")[:2] == ["154.000", "153.000"]


def test_all_numbers_are_there_without_scripts(browser: Browser, large_file: Path) -> None:
    with opened(browser, large_file, java_script_enabled=False) as shown:
        assert shown.page.locator("#table tbody tr:visible").count() == 150
        shown.page.locator("#s149 summary").click()
        assert "0.0012345" in shown.page.locator("#s149 dl.pairs").inner_text()
