"""A site: the pages of several rounds, of all rounds, reviews, and an index of them."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from mlperf_pkg import __version__
from mlperf_pkg.commands.notice import embargo, marked, notice
from mlperf_pkg.commands.page.content import PageContent
from mlperf_pkg.commands.page.history import history_html, published_history
from mlperf_pkg.commands.page.html import Page, html
from mlperf_pkg.commands.page.template import file, filled
from mlperf_pkg.infra.files import Content
from mlperf_pkg.infra.text import unused
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.published.results import PublishedResults

HISTORY = "history"
_INDEX_FILE = "index.html"
_TITLE = "MLPerf Training and HPC results"


class SitePage(NamedTuple):
    """A page of a site, its content without runs for the index, and the files of its review."""

    content: PageContent
    page: Page
    review: Mapping[str, str]


def site_page(
    content: PageContent, review: Mapping[str, str], runtime: str, jobs: int = 1
) -> SitePage:
    """Return a page with the files of its review; ``runtime`` and ``jobs`` are as for ``html``.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    page = html(content, runtime, _INDEX_FILE, jobs)
    return SitePage(content.without_runs(), page, review)


def page_name(content: PageContent, taken: Container[str]) -> str:
    """Return the name of a page that is not ``taken``: ``training-2.0``."""
    report = content.report
    return unused(f"{report.usage}-{report.round or 'several-rounds'}", taken)


def files(
    pages: Mapping[str, SitePage],
    published: PublishedResults | None,
    own: Sequence[PublishedSet],
) -> dict[str, Content]:
    """Return the files of a site; ``pages`` are by name.

    The page of all rounds marks ``own`` result sets, unless all of them are published.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    texts: dict[str, Content] = {_INDEX_FILE: _index(pages, has_history=published is not None)}
    if published:
        history = published_history(published, own)
        if not any(entry.is_new for entry in history.own):
            history = published_history(published)
        texts[f"{HISTORY}.html"] = history_html(history, _INDEX_FILE)
    for name, page in pages.items():
        texts[f"{name}.html"] = page.page
    for name, page in pages.items():
        texts |= {f"{name}-review/{part}": text for part, text in page.review.items()}
    return texts


def _index(pages: Mapping[str, SitePage], *, has_history: bool) -> str:
    results = [section.result for page in pages.values() for section in page.content.sections]
    values = {
        "pages": pages,
        "history": HISTORY if has_history else "",
        "title": marked(_TITLE),
        "version": __version__,
        "embargo": embargo(results),
        "notice": notice(results),
    }
    return "".join(filled("site.html", values, title=_TITLE, style=file("page.css")))
