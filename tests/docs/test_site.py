"""The site is built without a warning, loads nothing from elsewhere, and has no broken link."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from mlperf_pkg.cli.main import COMMANDS
from mlperf_pkg.rulebook.explain.describe import rulebook_codes
from mlperf_pkg.rulebook.load import codes
from tests.helpers.console import DOCS

pytestmark = pytest.mark.skipif(not find_spec("furo"), reason="the extra 'docs' is not installed")

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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built of a copy, as the references are written beside the pages."""
    folder = tmp_path_factory.mktemp("site").resolve()
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("reference"))
    shutil.copytree(DOCS.parent / "rules", folder / "rules")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "site"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_the_site(site: Path) -> None:
    pages = {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    assert {t for page in pages.values() for t in page.loaded if is_external(t)} == set()
    assert broken(pages) == []
    styles = [path.read_text("utf-8") for path in site.rglob("*.css")]
    assert [link for text in styles for link in re.findall(r"(?:url\(|@import)\W*(?:https?:)?//.*", text)] == []  # fmt: skip
    names = set().union(*(page.ids for page in pages.values()))
    assert {code.lower() for code in codes().keys() | rulebook_codes()} <= names
    assert {path.stem for path in (site / "reference" / "cli").iterdir()} == COMMANDS.keys()
    # The search reads a script, which a browser allows without a server, and knows every code.
    assert '"set108"' in (site / "searchindex.js").read_text("utf-8")


@pytest.mark.parametrize(
    ("target", "external"),
    [
        ("https://example.org/x.js", True),
        ("//example.org/x.js", True),
        ("_static/x.js?v=1", False),
        ("#part", False),
        ("data:image/png;base64,AAAA", False),
    ],
)
def test_is_external(target: str, external: bool) -> None:
    assert is_external(target) is external


def test_broken(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<a href="page.html#here" id="here"></a><a href="#no"></a><img src="no.png">')
    assert broken({page: Page(page.read_text())}) == ["page.html: #no", "page.html: no.png"]
