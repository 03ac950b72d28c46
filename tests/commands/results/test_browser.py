"""The page of a summary in a real browser: silent, readable by everyone, on any screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.helpers.browser import needs_chromium, opened
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, write_submission, write_system

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The summary of a round with long names, notes and a set without a score."""
    folder = tmp_path_factory.mktemp("round")
    tree = write_submission(folder / "training_results_v2.0" / "ACME", "bert", "resnet", "ssd")
    write_system(tree / "systems", hw_notes="long " * 100, system_name="x" * 200)
    for number in (3, 4):
        (tree / "results" / SYSTEM / "resnet" / f"result_{number}.txt").unlink()
    assert call("results", tree.parent, "-o", folder / "out").exit_code == 1
    return folder / "out" / "results.html"


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_fits(browser: Browser, page: Path, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900}
    with opened(browser, page, viewport=size, color_scheme=scheme) as shown:
        assert shown.quiet
        assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        assert "SET101" in shown.page.locator("main").inner_text()
        results = Axe().run(shown.page)
        assert results.violations_count == 0, results.generate_report()
