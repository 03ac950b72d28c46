"""The page of a review in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from mlperf_pkg.commands.review.files import files_of, sections
from mlperf_pkg.commands.review.section import Section
from mlperf_pkg.render.table import Column, table_of
from tests.helpers.browser import needs_chromium, opened
from tests.helpers.reports import rcp
from tests.helpers.reviews import a_round, a_set, a_system

pytestmark = needs_chromium

NASTY = "<script>window.taken=1</script>\x1b"
LONG = "W" * 120  # a name without a place to break the line


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [*(f"Submitter{number}" for number in range(8)), NASTY]
    fast = rcp(official_pass=False, margin_percent=-1.0)
    rows = [a_set(name, f"b{n}", rcp=fast) for name in names for n in range(6)]
    reviewed = a_round(names, rows, map(a_system, names))
    path = tmp_path_factory.mktemp("review") / "review.html"
    table = table_of([Column("Topic")], [("Rules",)], title=f"{LONG}, reviewed by nobody")
    parts = [*sections(reviewed), Section("named", "Named", (LONG,), {"one": table})]
    path.write_text(files_of(reviewed, parts)["review.html"], "utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_is_quiet_accessible_and_fits(
    browser: Browser, page: Path, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 900}
    with opened(browser, page, color_scheme=scheme, viewport=size) as shown:
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.page.evaluate("window.taken") is None
        results = Axe().run(shown.page)
        assert results.violations_count == 0, results.generate_report()
        assert shown.quiet
