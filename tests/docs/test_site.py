"""The site is built without a warning, loads nothing from elsewhere, and has no broken link."""

import re
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from mlperf_pkg.cli.main import SECTIONS
from mlperf_pkg.rulebook import explain
from mlperf_pkg.rulebook.explain import rulebook_codes
from mlperf_pkg.rulebook.load import codes
from tests.helpers.browser import CHROMIUM, assert_accessible, chromium, opened
from tests.helpers.console import DOCS
from tests.helpers.examples import SHARE
from tests.helpers.forked import forked

pytestmark = pytest.mark.skipif(not find_spec("furo"), reason="the extra 'docs' is not installed")

SOME = ("index", "guide", "howto/review-a-round", "reference/rules/SET", "reference/rules/RUN")
LOADED = ("script", "link", "img", "iframe", "source", "video", "audio", "object", "embed")


class Page(HTMLParser):
    """What a page loads, where it links to, and the names of its parts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        target = attributes.get("src") or attributes.get("href") or attributes.get("data")
        if target and tag in LOADED:
            self.loaded.append(target)
        elif target and tag == "a":
            self.links.append(target)
        self.ids |= {name for name in (attributes.get("id"),) if name}


def is_external(target: str) -> bool:
    address = urlsplit(target)
    return bool(address.netloc) or address.scheme not in ("", "data")


def broken(pages: dict[Path, Page]) -> list[str]:
    """Links within the site, and files of it that are loaded, that are not there."""
    links = []
    for path, page in pages.items():
        for target in {t for t in (*page.links, *page.loaded) if not is_external(t)}:
            address = urlsplit(target)
            to = (path.parent / unquote(address.path)).resolve() if address.path else path
            names = pages[to].ids if to in pages else {""}
            if not to.is_file() or unquote(address.fragment) not in {"", *names}:
                links.append(f"{path.name}: {target}")
    return sorted(links)


def build(pages: Sequence[str]) -> None:
    """Read all pages, and resolve their links; write only these, or all."""
    app = import_module("sphinx.application").Sphinx(
        "docs", "docs", "site", "read", "html", status=None, warningiserror=True, keep_going=True
    )
    app.builder.search = not pages  # it warns of an index that is not whole
    app.build(filenames=[f"docs/{page}.md" for page in pages])
    for page in app.env.found_docs.difference(pages) if pages else ():
        app.env.get_and_resolve_doctree(page, app.builder)
    sys.exit(app.statuscode or app._warncount)


def test_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a copy, as the references are written beside the pages.

    Of the rules of benchmarks and of the pages some are enough in ``make test``.
    """
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("reference"))
    shutil.copytree(DOCS.parent / "rules", tmp_path / "rules")
    if SHARE > 1:
        some = frozenset(code for code in rulebook_codes() if code.startswith(("RN", "RUN")))
        monkeypatch.setattr(explain, "rulebook_codes", lambda: some)
    done = forked(partial(build, SOME if SHARE > 1 else ()), tmp_path)
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    pages = {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    assert {t for page in pages.values() for t in page.loaded if is_external(t)} == set()
    if CHROMIUM:
        tried = ["index"] if SHARE > 1 else ["index", "search", "genindex", "guide/results"]
        with chromium() as browser:
            for name in tried:
                with opened(browser, site / f"{name}.html") as shown:
                    assert_accessible(shown.page)
    styles = [path.read_text("utf-8") for path in site.rglob("*.css")]
    assert [
        link
        for text in styles
        for link in re.findall(r"(?:url\(|@import)\W*(?:https?:)?//.*", text)
    ] == []
    names = set().union(*(page.ids for page in pages.values()))
    assert {path.stem for path in (tmp_path / "docs/reference/cli").iterdir()} == {
        *chain(*SECTIONS.values())
    }
    if SHARE > 1:
        assert {"set108", "run119"} <= names
    else:
        assert broken(pages) == []
        assert {code.lower() for code in codes().keys() | rulebook_codes()} <= names
        # The search reads a script, which a browser allows without a server, and knows every code.
        assert '"set108"' in (site / "searchindex.js").read_text("utf-8")


def menus() -> dict[str, list[str]]:
    """The entries of each level of the menu: those under a caption, and those below a page."""
    references = import_module("references")
    texts = {"index": (DOCS / "index.md").read_text("utf-8"), **dict(references.pages())}
    entries: dict[str, list[str]] = {}
    for page, text in texts.items():
        for number, tree in enumerate(re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL)):
            names = [line for line in tree.split("\n") if line and not line.startswith(":")]
            entries[f"{page} {number}"] = names
    return entries


def test_no_level_of_the_menu_has_more_than_nine_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    entries = menus()
    captions = [name for name in entries if name.startswith("index ")]
    assert len(captions) <= 9
    assert {name: names for name, names in entries.items() if len(names) > 9} == {}


def test_links(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<a href="page.html#here" id="here"></a><a href="#no"></a><img src="no.png">')
    assert broken({page: Page(page.read_text())}) == ["page.html: #no", "page.html: no.png"]
    assert all(map(is_external, ("https://example.org/x.js", "//example.org/x.js")))
    assert not any(map(is_external, ("_static/x.js?v=1", "#part", "data:image/png;base64,AAAA")))
