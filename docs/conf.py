"""Build the documentation as a site: ``make docs``.

Building and reading the site needs no network: the theme includes its scripts and uses system
fonts, and the search index is a script, which browsers also load from files.
"""

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import references

from mlperf_pkg import __version__

project = "mlperf-pkg"
release = __version__
extensions = ["myst_parser"]
nitpicky = True
smartquotes = False  # keep -- as in options, and quotes as in logs

myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False


# What the theme leaves out for those who read with a keyboard or a screen reader.
_ACCESSIBLE = {
    'role="heading">': 'role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Site">',
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
    '<aside class="toc-drawer': '<aside aria-label="Contents" class="toc-drawer',
}


def complete(app: Sphinx, error: Exception | None) -> None:
    """Complete the pages that were built."""
    for page in () if error else Path(app.outdir).rglob("*.html"):
        text = page.read_text("utf-8")
        for old, new in _ACCESSIBLE.items():
            text = text.replace(old, new)
        page.write_text(text, "utf-8")


def _shorten_navigation(app: Sphinx, *arguments: Any) -> None:
    """Let the navigation copy only the titles of pages: the theme drops their other headings."""
    context = arguments[2]
    toctree, with_pages = context["toctree"], app.env.toctree_includes
    pages = [app.env.metadata[name] for name in app.env.tocs if name not in with_pages]

    def titles(**options: Any) -> str:
        for page in pages:
            page["tocdepth"] = 1
        navigation: str = toctree(**options)
        for page in pages:
            del page["tocdepth"]
        return navigation

    context["toctree"] = titles


def setup(app: Sphinx) -> None:
    """Write the references before the pages are read."""
    app.connect("builder-inited", lambda app: references.write(Path(app.srcdir) / "reference"))
    app.connect("build-finished", complete)
    app.connect("html-page-context", _shorten_navigation, priority=400)  # before the theme's
