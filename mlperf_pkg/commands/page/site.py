"""A site: the pages of several rounds, of all rounds, reviews, and an index of them."""

from collections.abc import Container, Mapping, Sequence

from mlperf_pkg import __version__
from mlperf_pkg.commands.notice import embargo, marked, notice
from mlperf_pkg.commands.page.content import PageContent
from mlperf_pkg.commands.page.history import history_html, published_history
from mlperf_pkg.commands.page.html import html
from mlperf_pkg.commands.page.template import file, filled
from mlperf_pkg.infra.text import unused
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.published.results import PublishedResults

INDEX = "index"
HISTORY = "history"
_TITLE = "MLPerf Training and HPC results"


def page_name(content: PageContent, taken: Container[str]) -> str:
    """Return the name of a page that is not ``taken``: ``training-2.0``."""
    report = content.report
    return unused(f"{report.usage}-{report.round or 'several-rounds'}", taken)


def files(
    pages: Mapping[str, tuple[PageContent, Mapping[str, str]]],
    published: PublishedResults | None,
    own: Sequence[PublishedSet],
    runtime: str,
) -> dict[str, str]:
    """Return the files of a site; ``pages`` are by name, each with the files of its review.

    ``runtime`` is as for ``html``.
    The page of all rounds marks ``own`` result sets, unless all of them are published.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    index = f"{INDEX}.html"
    texts = {index: _index(pages, has_history=published is not None)}
    if published:
        history = published_history(published, own)
        if not any(entry.is_new for entry in history.own):
            history = published_history(published)
        texts[f"{HISTORY}.html"] = history_html(history, index)
    reviews: dict[str, str] = {}
    for name, (page, review) in pages.items():
        texts[f"{name}.html"] = html(page, runtime, index)
        reviews |= {f"{name}-review/{part}": text for part, text in review.items()}
    return texts | reviews


def _index(pages: Mapping[str, tuple[PageContent, Mapping[str, str]]], *, has_history: bool) -> str:
    results = [section.result for page, _ in pages.values() for section in page.sections]
    values = {
        "pages": pages,
        "history": HISTORY if has_history else "",
        "title": marked(_TITLE),
        "version": __version__,
        "embargo": embargo(results),
        "notice": notice(results),
    }
    return filled("site.html", values, title=_TITLE, style=file("page.css"))
