"""Templates that escape each value, and the files beside them: what every page is made from."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from mlperf_pkg.infra.resources import require
from mlperf_pkg.infra.text import escape_html, visible

if TYPE_CHECKING:
    import jinja2

MAX_TEXT = 1000  # characters

_PACKAGE = "mlperf_pkg.commands.page"
_HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {scripts}\
style-src {style_source}; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>"""


def library() -> Any:
    """Import the library of templates.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    return require("jinja2", "report", "a page")


def environment(package: str = _PACKAGE) -> jinja2.Environment:
    """Return the environment of the templates in a package.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    jinja = library()
    environment: jinja2.Environment = jinja.Environment(
        loader=jinja.FunctionLoader(lambda name: file(name, package)),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment


def file(name: str, package: str = _PACKAGE) -> str:
    """Return the text of a file among the templates of a package."""
    return (resources.files(package) / "templates" / name).read_text("utf-8")


def raw(text: str) -> Any:
    """Mark text as HTML, so that it is not escaped again: heads, scripts, Base64.

    Text from a log must already be escaped in it.
    """
    import markupsafe

    return markupsafe.Markup(text)  # noqa: S704 - text from logs is already escaped


def page_head(title: str, style: str, *scripts: str) -> str:
    """Return a page up to ``</head>``; its policy allows this style, these scripts, no request."""
    sources = " ".join(map(_hash_source, scripts))
    return _HEAD.format(
        scripts=f"script-src {sources}; " if scripts else "",
        style_source=_hash_source(style),
        title=escape_html(title),
        style=style,
    )


def _hash_source(text: str) -> str:
    """Return a source of the content security policy: the script or style with this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def short(text: str) -> str:
    """Return a string from a log, cut to ``MAX_TEXT`` characters."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def parameter(text: str) -> str:
    """Return text from a log as the page shows it, quoted for the state in its URL."""
    return quote_plus(visible(short(text)))


def _printable(value: Any) -> Any:
    """Return a value of the page with the characters that do not print spelled out."""
    return visible(short(value)) if type(value) is str else value
