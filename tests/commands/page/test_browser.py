"""The page in a real browser: it works, it stays silent, and no log is ever markup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.helpers.browser import chromium, needs_chromium, opened
from tests.helpers.logs import edited
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set, write_submission

pytestmark = needs_chromium

HOSTILE = (
    "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'>"
    "]]>&lt;b&gt;\u2028\u202e{{ 7 * 7 }}"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as started:
        yield started


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
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loose logs with hostile text in every field that holds text."""
    root = tmp_path_factory.mktemp("hostile")
    logs = [edited(log, "submission_platform", value=HOSTILE) for log in simulated("resnet")]
    logs[0] = edited(logs[0], "opt_name", value=HOSTILE, metadata={HOSTILE: HOSTILE})
    write_set(root / "logs" / "<img src=x onerror=alert(1)>", tuple(logs))
    page = root / "report.html"
    assert call("report", root / "logs", "--round", "2.0", "-o", page).exit_code == 1
    return page


def column(page: Any, name: str) -> list[str]:
    heads = page.locator("#table thead th").all_inner_texts()
    at = heads.index(name) + 1
    cells = page.locator(f"#table tbody tr:not([hidden]) > :nth-child({at})").all_inner_texts()
    return [str(cell) for cell in cells]


def test_it_opens_without_messages_and_draws_visible_charts(browser: Browser, good: Path) -> None:
    with opened(browser, good, viewport={"width": 1280, "height": 2000}) as shown:
        shown.page.wait_for_selector("#b0 svg")
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
        assert shown.page.locator("details.set[open] h3").inner_text().startswith("resnet")
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
        page.locator("#b0").scroll_into_view_if_needed()
        page.hover("#b0 svg .mark-symbol.role-mark path")
        page.wait_for_selector("#tip:visible")
        assert page.evaluate("window.taken") is None
        assert page.locator("img, b:has-text('&lt;')").count() == 0
        assert page.locator("body script").count() == 3
        assert "<img src=x onerror=" in page.locator("#s0 h3").inner_text()
        assert "\\u2028\\u202e{{ 7 * 7 }}" in page.locator("#s0 h3").inner_text()
        assert "<img src=x onerror=" in page.locator("#tip").inner_text()
        assert "</script>" in page.locator("#findings ~ ol pre").first.inner_text()
        assert shown.quiet
