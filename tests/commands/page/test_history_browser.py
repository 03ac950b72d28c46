"""The page of all rounds in a real browser; tests of one opened page share it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from mlperf_pkg.commands.charts import drawing
from mlperf_pkg.commands.page.history_html import history_html
from tests.commands.page.test_history import entry, of
from tests.helpers.browser import Opened, assert_accessible, assert_fits, needs_chromium, opened
from tests.helpers.program import call

pytestmark = needs_chromium

RESNET = "training_results_v4.0/NVIDIA/results/eos_n316_ngc24.04_mxnet/resnet"
HOSTILE = "=1+1</script><img src=x onerror='window.taken = 1'>{{ 7 * 7 }}"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("history") / "history.html"
    assert call("report", "--history", "-o", file).exit_code == 0
    return file


@pytest.fixture(scope="module")
def shown(browser: Browser, file: Path) -> Iterator[Opened]:
    with opened(browser, file, "#b=resnet") as shown:
        expect(shown.page.locator("#drawn svg")).to_have_count(3)
        yield shown


def scores(page: Page) -> list[str]:
    return page.locator("#table td.score").all_inner_texts()


def test_it_opens_quickly_silently_and_makes_rows_when_they_are_seen(
    browser: Browser, file: Path
) -> None:
    with opened(browser, file) as shown:
        expect(shown.page.locator("#count")).to_have_text("2,195 of 2,195 results")
        paint = shown.page.evaluate("performance.getEntriesByType('paint')[0].startTime")
        assert paint < 1000
        assert shown.page.locator("#table tbody tr").count() == 60
        shown.page.locator("#end").scroll_into_view_if_needed()
        expect(shown.page.locator("#table tbody tr")).to_have_count(120)
        assert shown.quiet


def test_a_benchmark_has_its_charts(shown: Opened) -> None:
    shown.page.locator("#b").select_option("hpc-openfold")
    expect(shown.page.locator("#drawn figure")).to_have_count(2)
    assert "b=hpc-openfold" in shown.page.url
    shown.page.locator(".card[href='#b=bert']").click()
    expect(shown.page.locator("#drawn svg")).to_have_count(3)
    assert "no line joins them" in shown.page.locator("#drawn figcaption").first.inner_text()
    assert shown.quiet


def test_every_benchmark_can_be_drawn(shown: Opened) -> None:
    values = shown.page.locator("#b option").evaluate_all("all => all.map((one) => one.value)")
    for value in values:
        shown.page.locator("#b").select_option(value)
        expect(shown.page.locator("#drawn svg").first).to_be_visible()
        assert "cannot be drawn" not in shown.page.locator("#drawn").inner_text()
    assert shown.quiet


def test_filters_and_order_are_in_the_address(browser: Browser, file: Path) -> None:
    address = "#round=1.0&benchmark=resnet&accelerators=16&sort=minutes"
    with opened(browser, file, address) as shown:
        page = shown.page
        expect(page.locator("#count")).to_contain_text(" of 2,195 results")
        minutes = [float(score) for score in scores(page)]
        assert minutes == sorted(minutes)
        assert 37.115 in minutes
        page.locator("#table thead").get_by_role("button", name="Minutes").click()
        assert [float(score) for score in scores(page)] == minutes[::-1]
        expect(page).to_have_url(re.compile("sort=-minutes"))
        page.locator("#q").fill("graphcore")
        expect(page.locator("#table tbody tr")).to_have_count(1)
        expect(page).to_have_url(re.compile("q=graphcore"))
        page.get_by_role("button", name="Clear").click()
        expect(page.locator("#count")).to_have_text("2,195 of 2,195 results")


def test_a_permalink_opens_a_result_with_its_source(browser: Browser, file: Path) -> None:
    with opened(browser, file, f"#r={RESNET}") as shown:
        page = shown.page
        expect(page.locator("#details")).to_be_visible()
        expect(page.locator("#details-title")).to_have_text("NVIDIA: resnet, round 4.0")
        source = page.locator("#details a", has_text="Source").get_attribute("href")
        assert source == f"https://github.com/mlcommons/{RESNET}".replace(
            "v4.0/", "v4.0/tree/HEAD/"
        )
        page.keyboard.press("Escape")
        expect(page.locator("#details")).to_be_hidden()
        expect(page).not_to_have_url(re.compile("r="))
        assert shown.quiet


def test_a_point_and_a_number_lead_to_their_result(shown: Opened) -> None:
    page = shown.page
    page.locator("#b").select_option("resnet")
    expect(page.locator("#drawn svg")).to_have_count(3)
    page.locator("#drawn .mark-symbol.role-mark path").first.click()
    expect(page.locator("#details-title")).to_have_text("Google: resnet, round 0.7")
    page.get_by_role("button", name="Close").click()
    page.locator(".rounds a", has_text="0.229").click()
    expect(page.locator("#details-title")).to_have_text("Google: resnet, round 1.0")
    page.get_by_role("link", name="Its benchmark over rounds").click()
    expect(page.locator("#details")).to_be_hidden()
    expect(page).to_have_url(re.compile("b=resnet"))


def test_the_table_is_saved_as_csv(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    sets = [entry("5.0", 20.0), entry("5.0", 9.8065, submitter=HOSTILE, path=f"{HOSTILE}/resnet")]
    file.write_text(history_html(of(*sets), drawing.runtime()), "utf-8")
    with opened(browser, file, "#sort=minutes") as shown:
        assert scores(shown.page) == ["9.807", "20.000"]
        assert shown.page.evaluate("window.taken") is None
        assert HOSTILE in shown.page.locator("#table").inner_text()
        with shown.page.expect_download() as download:
            shown.page.get_by_role("button", name="Download CSV").click()
        lines = Path(download.value.path()).read_text("utf-8-sig").splitlines()
        assert lines[0].startswith("minutes,unscaled,official,round,benchmark,")
        assert lines[1].startswith("9.8065,")
        assert "\"'=1+1" in lines[1]
        assert len(lines) == 3


def test_it_can_be_read_without_scripts(browser: Browser, file: Path) -> None:
    with opened(browser, file, java_script_enabled=False) as shown:
        assert shown.page.locator(".card").count() == 22
        assert "0.229" in shown.page.locator(".rounds").first.inner_text()
        assert "require JavaScript" in shown.page.locator("main").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_is_accessible_and_no_wider_than_its_window(
    shown: Opened, scheme: Any, width: int
) -> None:
    page = shown.page
    page.get_by_role("button", name="Clear").click()  # the table has its first rows again
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 1500})
    page.locator("#all-benchmarks").scroll_into_view_if_needed()
    expect(page.locator("#all-benchmarks svg")).to_be_visible()
    assert_fits(page)
    assert_accessible(page)
    page.locator("#table tbody button").first.click()
    expect(page.locator("#details")).to_be_visible()
    assert_accessible(page)
    page.keyboard.press("Escape")
