"""A real browser without a window, and pages for it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

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
    # Optimizing scripts takes longer than running them.
    "--js-flags=--no-turbofan --single-threaded",
]
_WATCH = "addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective));"


@dataclass(slots=True)
class Opened:
    """A page, and everything that it said or asked for since it was opened."""

    tab: Page
    messages: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)

    @property
    def page(self) -> Page:
        """In front of the others: a page behind them is drawn once in a second, and a click waits
        for that.
        """
        self.tab.bring_to_front()
        return self.tab

    @property
    def quiet(self) -> bool:
        """Nothing on the console, and no request but for the page itself and its empty icon."""
        others = [url for url in self.requested if not url.startswith("data:,")]
        return not self.messages and len(others) == 1


def assert_accessible(page: Page, within: str = "html") -> None:
    """No rule of axe is broken. What is like that before it is taken from the page: axe is slow."""
    kinds = (".card", "tr", "option", "li", "svg :is(a, g, path, line, text)")
    alike = [*(f"{kind}:nth-child(n+4)" for kind in kinds), "dl > :nth-child(n+9)"]
    remove = "alike => document.querySelectorAll(alike).forEach(one => one.remove())"
    page.evaluate(remove, ", ".join(alike))
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    results = Axe().run(page, {"include": [within]}, options)
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
def opened(
    browser: Browser,
    file: Path,
    fragment: str = "",
    viewport: ViewportSize = {"width": 1280, "height": 720},  # noqa: B006 - nobody changes it
    *,
    java_script_enabled: bool = True,
) -> Iterator[Opened]:
    """The page in a window that nothing else is open in; to start a new one takes half a second."""
    context, pages = _windows(browser, java_script_enabled)
    page = pages.pop() if pages else context.new_page()
    shown = Opened(page)
    listeners: dict[Any, Callable[[Any], None]] = {
        "console": lambda message: shown.messages.append(message.text),
        "pageerror": lambda error: shown.messages.append(str(error)),
        "request": lambda request: shown.requested.append(request.url),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    page.set_viewport_size(viewport)
    page.emulate_media(color_scheme="light")
    try:
        page.goto(f"{file.as_uri()}{fragment}")
        yield shown
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.goto("about:blank")
        pages.append(page)


@cache
def _windows(browser: Browser, java_script_enabled: bool) -> tuple[BrowserContext, list[Page]]:
    """The windows that nothing is open in."""
    context = browser.new_context(java_script_enabled=java_script_enabled)
    context.add_init_script(_WATCH)
    return context, []
