"""The page in a real browser: it works, it stays silent, and no log is ever markup."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from mlperf_pkg.commands.page import html
from tests.commands.page.test_html import many
from tests.helpers.browser import needs_chromium, opened
from tests.helpers.logs import edited
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set, write_submission, write_system

pytestmark = needs_chromium

HOSTILE = (
    "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'>"
    "]]>&lt;b&gt;\u2028\u202e{{ 7 * 7 }}"
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission of three benchmarks, one set of which lacks runs."""
    root = tmp_path_factory.mktemp("good")
    tree = write_submission(root / "training_results_v2.0" / "ACME", "bert", "resnet", "ssd")
    for number in (3, 4):
        (tree / "results/bow-pod16/resnet" / f"result_{number}.txt").unlink()
    page = root / "report.html"
    assert call("report", tree, "-o", page).exit_code == 1
    return page


@pytest.fixture(scope="module")
def whole_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loose logs with hostile text in every field that holds text."""
    root = tmp_path_factory.mktemp("hostile")
    logs = [edited(log, "submission_platform", value=HOSTILE) for log in simulated("resnet")]
    logs[0] = edited(logs[0], "opt_name", value=HOSTILE, metadata={HOSTILE: HOSTILE})
    write_set(root / "logs" / "<img src=x onerror=alert(1)>", tuple(logs))
    page = root / "report.html"
    assert call("report", root / "logs", "--round", "2.0", "-o", page).exit_code == 1
    return page


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of 350 result sets."""
    page = tmp_path_factory.mktemp("large") / "report.html"
    page.write_text(html.html(many(350), "window.vegaEmbed = null;"), "utf-8")
    return page


def column(page: Any, name: str) -> list[str]:
    heads = page.locator("#table thead th").all_inner_texts()
    at = heads.index(name) + 1
    cells = page.locator(f"#table tbody tr:not([hidden]) > :nth-child({at})").all_inner_texts()
    return [str(cell) for cell in cells]


def test_it_opens_without_messages_and_draws_visible_charts(browser: Browser, good: Path) -> None:
    with opened(browser, good, viewport={"width": 1280, "height": 2000}) as shown:
        shown.page.locator("#s0 summary").click()
        shown.page.wait_for_selector("#s0 svg")
        assert shown.quiet
        assert "ACME" in shown.page.locator("#table").inner_text()


def test_it_sorts_by_a_click_on_a_head(browser: Browser, good: Path) -> None:
    with opened(browser, good) as shown:
        runs = shown.page.get_by_role("button", name="Runs")
        runs.click()
        assert column(shown.page, "Runs") == ["3/5", "5/5", "10/10"]
        runs.click()
        assert column(shown.page, "Runs") == ["10/10", "5/5", "3/5"]
        head = shown.page.locator("#table th", has_text="Runs")
        assert head.get_attribute("aria-sort") == "descending"
        assert shown.page.locator("[aria-sort]").count() == 1


FILTERS = [
    ("#search", "bert", ["bert"]),
    ("[data-column=Benchmark]", "ssd", ["ssd"]),
    ("#verdict", "official", ["resnet"]),
    ("#search", "nothing like it", []),
]


@pytest.mark.parametrize(("control", "value", "left"), FILTERS)
def test_it_filters(
    browser: Browser, good: Path, control: str, value: str, left: list[str]
) -> None:
    with opened(browser, good) as shown:
        field = shown.page.locator(control)
        field.fill(value) if control == "#search" else field.select_option(value)
        assert column(shown.page, "Benchmark") == left
        assert shown.page.locator("details.set:visible").count() == len(left)
        assert shown.page.locator("#count").inner_text() == f"{len(left)} of 3 result sets"
        shown.page.get_by_role("button", name="Clear").click()
        expect(shown.page.locator("#count")).to_have_text("3 of 3 result sets")


def test_the_keyboard_opens_a_set_and_its_charts(browser: Browser, good: Path) -> None:
    with opened(browser, good) as shown:
        shown.page.locator("#s0 summary").focus()
        shown.page.keyboard.press("Enter")
        expect(shown.page.locator("#s0 svg")).to_have_count(4)
        captions = shown.page.locator("#s0 figcaption b").all_inner_texts()
        assert captions == [
            "Convergence",
            "Times of the runs",
            "Reference convergence points",
            "Timeline of the runs",
        ]
        named = shown.page.locator("#s0 [aria-label^='Convergence. evaluation against']")
        assert named.first.is_visible()
        assert shown.quiet


def test_the_keyboard_sorts(browser: Browser, good: Path) -> None:
    with opened(browser, good) as shown:
        shown.page.get_by_role("button", name="Benchmark").focus()
        shown.page.keyboard.press("Space")
        assert column(shown.page, "Benchmark") == ["bert", "resnet", "ssd"]
        shown.page.keyboard.press("Space")
        assert column(shown.page, "Benchmark") == ["ssd", "resnet", "bert"]


def test_a_link_opens_the_set_that_it_leads_to(browser: Browser, good: Path) -> None:
    with opened(browser, good) as shown:
        shown.page.get_by_role("link", name="resnet").first.click()
        assert shown.page.locator("details.set[open] h4").inner_text().startswith("resnet")
        shown.page.locator("details.set[open] a[href^='#f']").first.click()
        assert shown.page.evaluate("document.activeElement.tagName") == "LI"


def test_it_can_be_read_without_scripts(browser: Browser, good: Path) -> None:
    with opened(browser, good, java_script_enabled=False) as shown:
        shown.page.locator("#s0 summary").click()
        assert shown.page.locator("#s0 tbody tr").count() == 10
        assert "all numbers are in the tables" in shown.page.locator("main").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_is_accessible(browser: Browser, good: Path, scheme: str, width: int) -> None:
    size = {"width": width, "height": 1500}
    with opened(browser, good, "#s0", color_scheme=scheme, viewport=size) as shown:
        expect(shown.page.locator("#s0 svg")).to_have_count(4)
        results = Axe().run(shown.page)
        assert results.violations_count == 0, results.generate_report()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_its_window(browser: Browser, good: Path, width: int) -> None:
    with opened(browser, good, "#s0", viewport={"width": width, "height": 900}) as shown:
        expect(shown.page.locator("#s0 svg")).to_have_count(4)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_log_is_ever_markup(browser: Browser, hostile: Path) -> None:
    with opened(browser, hostile, "#s0") as shown:
        page = shown.page
        expect(page.locator("#s0 svg")).to_have_count(4)
        assert page.evaluate("window.taken") is None
        assert page.locator("img, b:has-text('&lt;')").count() == 0
        assert page.locator("body script").count() == 3
        assert "<img src=x onerror=" in page.locator("#s0 h4").inner_text()
        assert "\\u2028\\u202e{{ 7 * 7 }}" in page.locator("#s0 h4").inner_text()
        expect(page.locator("#findings ~ ol pre").first).to_contain_text("</script>")
        assert shown.quiet


def test_no_description_is_ever_markup(browser: Browser, whole_round: Path) -> None:
    with opened(browser, whole_round, viewport={"width": 1280, "height": 2000}) as shown:
        page = shown.page
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
        assert shown.quiet


def test_a_round_begins_with_its_benchmarks_and_has_the_verdicts_later(
    browser: Browser, whole_round: Path, good: Path
) -> None:
    heads = {}
    for page in (whole_round, good):
        with opened(browser, page) as shown:
            heads[page] = shown.page.locator("h2").all_inner_texts()
            assert shown.page.locator("nav a").count() == len(heads[page])
    assert heads[whole_round] == [
        "Benchmarks",
        "Time against number of accelerators",
        "Results",
        "Two verdicts",
        "Result sets",
        "Findings",
    ]
    assert heads[good] == ["Two verdicts", "Results", "Result sets", "Findings"]


def test_all_common_charts_of_a_round_are_drawn_without_scrolling(
    browser: Browser, whole_round: Path
) -> None:
    with opened(browser, whole_round, viewport={"width": 1280, "height": 400}) as shown:
        expect(shown.page.locator("#scaling ~ .charts svg")).to_have_count(2)
        expect(shown.page.locator(".card svg")).to_have_count(2)
        assert shown.quiet


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_round_is_accessible_and_as_wide_as_its_window(
    browser: Browser, whole_round: Path, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 1500}
    with opened(browser, whole_round, "#g1", color_scheme=scheme, viewport=size) as shown:
        expect(shown.page.locator("#g1 svg")).to_have_count(1)
        expect(shown.page.locator("#scaling ~ .charts svg")).to_have_count(2)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        results = Axe().run(shown.page)
        assert results.violations_count == 0, results.generate_report()


def test_the_state_of_the_table_is_in_the_url(browser: Browser, whole_round: Path) -> None:
    with opened(browser, whole_round) as shown:
        shown.page.locator("[data-column=Submitter]").select_option("ACME")
        shown.page.get_by_role("button", name="Benchmark").click()
        shown.page.get_by_role("button", name="Benchmark").click()
        assert column(shown.page, "Benchmark") == ["resnet", "bert"]
        fragment = shown.page.evaluate("location.hash")
    assert fragment == "#?Submitter=ACME&down=Benchmark"
    with opened(browser, whole_round, fragment) as shown:
        assert column(shown.page, "Benchmark") == ["resnet", "bert"]
        assert shown.page.locator("#count").inner_text() == "2 of 3 result sets"
        shown.page.get_by_role("button", name="Clear").click()
        expect(shown.page.locator("#count")).to_have_text("3 of 3 result sets")


def test_the_shown_results_are_downloaded_as_csv(browser: Browser, whole_round: Path) -> None:
    with opened(browser, whole_round) as shown:
        shown.page.locator("[data-column=Benchmark]").select_option("resnet")
        with shown.page.expect_download() as download:
            shown.page.get_by_role("button", name="CSV").click()
        assert download.value.suggested_filename == "MLPerf-Training-2.0.csv"
        text = Path(download.value.path()).read_text("utf-8")
        rows = list(csv.DictReader(text.splitlines()))
        assert [row["Submitter"] for row in rows] == column(shown.page, "Submitter")
        assert {row["Benchmark"] for row in rows} == {"resnet"}
        assert shown.quiet


def test_a_chart_is_downloaded_as_svg(browser: Browser, whole_round: Path) -> None:
    with opened(browser, whole_round) as shown:
        with shown.page.expect_download() as download:
            shown.page.get_by_role("button", name="Download as SVG: Time against").first.click()
        assert download.value.suggested_filename == "Time-against-accelerators-bert.svg"
        assert Path(download.value.path()).read_text("utf-8").startswith("<svg")
        assert shown.quiet


def test_rows_are_made_when_they_are_seen(browser: Browser, large: Path) -> None:
    with opened(browser, large) as shown:
        rows = shown.page.locator("#table tbody tr")
        assert rows.count() == 100
        assert shown.page.locator("#s0 td").count() == 0
        shown.page.locator("#more").scroll_into_view_if_needed()
        expect(rows).not_to_have_count(100)
        shown.page.locator("#search").fill("system-34")
        expect(rows).to_have_count(11)
        shown.page.get_by_role("button", name="Clear").click()
        expect(rows).to_have_count(100)
        shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert rows.count() == 350


def test_sorting_is_of_all_results(browser: Browser, large: Path) -> None:
    with opened(browser, large) as shown:
        shown.page.get_by_role("button", name="Score").click()
        shown.page.get_by_role("button", name="Score").click()
        assert column(shown.page, "Score")[:2] == ["354.000", "353.000"]


def test_all_numbers_are_there_without_scripts(browser: Browser, large: Path) -> None:
    with opened(browser, large, java_script_enabled=False) as shown:
        assert shown.page.locator("#table tbody tr:visible").count() == 350
        shown.page.locator("#s349 summary").click()
        assert "0.0012345" in shown.page.locator("#s349 dl.pairs").inner_text()
