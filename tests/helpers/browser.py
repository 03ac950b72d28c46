"""A real browser without a window, and pages for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium: install the package 'chromium'"
)
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_WATCH = "addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective));"


@dataclass(slots=True)
class Opened:
    """A page, and everything that it said or asked for since it was opened."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)

    @property
    def quiet(self) -> bool:
        """Nothing on the console, and no request but for the page itself and its empty icon."""
        others = [url for url in self.requested if not url.startswith("data:,")]
        return not self.messages and len(others) == 1


def assert_accessible(page: Page, *, only_colours: bool = False) -> None:
    """No rule of axe is broken. It reports nothing else, and skips what is like that before it."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if only_colours:
        options["runOnly"] = ["color-contrast"]
    alike = [f"{name}:nth-child(n+5)" for name in (".card", "tr", "option", "#plot a")]
    results = Axe().run(page, {"exclude": alike}, options)
    assert results.violations_count == 0, results.generate_report()


def assert_fits(page: Page) -> None:
    """Nothing is wider than the window, which would have to be moved sideways."""
    assert page.viewport_size
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, file: Path, fragment: str = "", **context: Any) -> Iterator[Opened]:
    """The page in a window of its own."""
    window = browser.new_context(**context)
    try:
        page = window.new_page()
        shown = Opened(page)
        page.add_init_script(_WATCH)
        page.on("console", lambda message: shown.messages.append(message.text))
        page.on("pageerror", lambda error: shown.messages.append(str(error)))
        page.on("request", lambda request: shown.requested.append(request.url))
        page.goto(f"{file.as_uri()}{fragment}")
        yield shown
    finally:
        window.close()
