"""Templates that escape each value, and the files beside them: what every page is made from."""

import base64
import hashlib
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from mlperf_pkg import __version__
from mlperf_pkg.infra.files import cached, write_cached
from mlperf_pkg.infra.resources import installed_version, require
from mlperf_pkg.infra.text import escape_html, visible
from mlperf_pkg.results import wording

MAX_TEXT = 1000  # characters

_TEMPLATES = Path(__file__).parent / "templates"
_OPTIONS = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
_GZIP = 31  # of zlib: a gzip stream, with neither name nor time in its header
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


def filled(
    template: str,
    values: Mapping[str, Any],
    *,
    title: str,
    style: str,
    scripts: Iterable[str] = (),
    runtime: str = "",
) -> Iterator[str]:
    """Yield a template with values, its style and the files of its scripts, in small pieces.

    ``runtime`` is as for ``html``; empty for a page without one.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    jinja = library()
    environment = jinja.Environment(
        loader=jinja.FunctionLoader(_versioned),
        bytecode_cache=jinja.MemcachedBytecodeCache(_TemplateCache(), "template-"),
        undefined=jinja.StrictUndefined,
        finalize=_printable,
        **_OPTIONS,
    )
    script = "".join(map(file, scripts))
    yield from environment.get_template(template).generate(
        values,
        wording=wording,
        head=raw(page_head(title, style, *filter(None, (script, runtime)))),
        script=raw(script),
        runtime=raw(_packed_runtime(runtime)),
    )


class _TemplateCache:
    """Keeps compiled templates in the user's cache, as Python keeps modules; a client for Jinja.

    To compile those of a page takes as long as to check 20 logs. Jinja compiles what the cache
    lacks, and what is damaged.
    """

    def get(self, key: str) -> bytes:
        """Return a compiled template; raise an error if there is none."""
        return zlib.decompress(base64.b64decode(cached(key, _refuse)), _GZIP)

    def set(self, key: str, data: bytes) -> None:
        """Keep a compiled template, also in place of a damaged one."""
        write_cached(key, packed([data]))


def _refuse() -> str:
    raise LookupError


def _versioned(name: str) -> tuple[str, str, None]:
    """Return the text of a template and, as its path, what its code depends on.

    That includes this package: Jinja applies ``_printable`` to constants when it compiles.
    """
    source = file(name)
    versions = (sys.version, installed_version("jinja2"), __version__, _OPTIONS, source)
    return source, f"{name}-{hashlib.sha256(repr(versions).encode()).hexdigest()}", None


def _packed_runtime(runtime: str) -> str:
    """Return the packed script of charts, which takes long to pack, from the user's cache."""
    if not runtime:
        return ""
    digest = hashlib.sha256(runtime.encode()).hexdigest()
    return cached(f"vega-{digest}.gz.txt", lambda: packed([runtime.encode()]))


def packed(pieces: Iterable[bytes]) -> str:
    """Return text as gzip in Base64, the same each time, for ``DecompressionStream``."""
    compressor = zlib.compressobj(9, wbits=_GZIP)
    data = b"".join(map(compressor.compress, pieces)) + compressor.flush()
    return base64.b64encode(data).decode("ascii")


def file(name: str) -> str:
    """Return the text of a file among the templates."""
    return (_TEMPLATES / name).read_text("utf-8")


def raw(text: str) -> Any:
    """Mark text as HTML, so that it is not escaped again: heads, scripts, Base64.

    Text from a log must already be escaped in it.
    """
    import markupsafe

    return markupsafe.Markup(text)  # noqa: S704 - text from logs is already escaped


def page_head(title: str, style: str, *scripts: str) -> str:
    """Return a page up to ``</head>``; its policy allows this style, these scripts, no request."""
    script_sources = ""
    if scripts:
        script_sources = f"script-src {' '.join(map(_hash_source, scripts))}; "
    return _HEAD.format(
        scripts=script_sources,
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
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[: MAX_TEXT - 3]}..."


def parameter(text: str) -> str:
    """Return text from a log as the page shows it, quoted for the state in its URL."""
    return quote_plus(visible(short(text)))


def _printable(value: Any) -> Any:
    """Return a value of the page with the characters that do not print spelled out."""
    if type(value) is not str:
        return value
    return visible(short(value))
